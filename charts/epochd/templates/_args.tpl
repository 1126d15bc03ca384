{{- /* Arguments of `epochd run`: what the chart decides, then the settings, sorted by name. */ -}}
{{- define "epochd.runArgs" -}}
- run
- --envoy-path
- {{ .Values.envoy.path | quote }}
- --envoy-config
- {{ printf "/etc/envoy/%s" .Values.envoy.configMapKey | quote }}
- --state-dir
- /run/epochd/state
- --ready-marker
- /run/epochd/ready
- --grace-period
- {{ printf "%ds" (int .Values.terminationGracePeriodSeconds) }}
{{- if .Values.hotRestart.crossPod }}
- --cross-pod
- --when-superseded
- wait
{{- end }}
{{- with .Values.metrics }}
{{- if .enabled }}
- --api-listen
- {{ printf "%s:%d" .address (int .port) | quote }}
- --api-tls-cert
- /etc/epochd/tls/tls.crt
- --api-tls-key
- /etc/epochd/tls/tls.key
- --api-keys-file
- /etc/epochd/keys/keys
{{- end }}
{{- end }}
{{- range $key, $value := .Values.settings }}
{{- $flag := $key | replace "_" "-" }}
{{- if kindIs "bool" $value }}
- {{ printf "--%s%s" ($value | ternary "" "no-") $flag }}
{{- else if not (kindIs "invalid" $value) }}
- --{{ $flag }}
- {{ kindIs "float64" $value | ternary (int64 $value | toString) (toString $value) | quote }}
{{- end }}
{{- end }}
{{- range .Values.envoy.args }}
{{- /* One word, so that a value that begins with a dash is no flag of epochd. */}}
- {{ printf "--envoy-arg=%s" (toString .) | quote }}
{{- end }}
{{- end }}

{{- /* Arguments of Envoy itself, where it runs alone. */ -}}
{{- define "epochd.envoyArgs" -}}
- -c
- {{ printf "/etc/envoy/%s" .Values.envoy.configMapKey | quote }}
{{- range .Values.envoy.args }}
- {{ toString . | quote }}
{{- end }}
{{- end }}
