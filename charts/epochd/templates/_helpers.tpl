{{- define "epochd.name" -}}
{{- .Values.nameOverride | default .Chart.Name | trunc 63 | trimSuffix "-" -}}
{{- end }}

{{- define "epochd.fullname" -}}
{{- $name := include "epochd.name" . -}}
{{- $full := contains $name .Release.Name | ternary .Release.Name (printf "%s-%s" .Release.Name $name) -}}
{{- .Values.fullnameOverride | default $full | trunc 63 | trimSuffix "-" -}}
{{- end }}

{{- define "epochd.selectorLabels" -}}
app.kubernetes.io/name: {{ include "epochd.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "epochd.labels" -}}
{{ include "epochd.selectorLabels" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" | trunc 63 | trimSuffix "-" }}
{{- end }}

{{- define "epochd.serviceAccountName" -}}
{{- $own := .Values.serviceAccount.create | ternary (include "epochd.fullname" .) "default" -}}
{{- .Values.serviceAccount.name | default $own -}}
{{- end }}

{{- define "epochd.bootstrapName" -}}
{{- .Values.envoy.existingConfigMap | default (printf "%s-bootstrap" (include "epochd.fullname" .)) -}}
{{- end }}

{{- define "epochd.stateHostPath" -}}
{{- .Values.hotRestart.stateHostPath | default (printf "/run/epochd/%s-%s" .Release.Namespace (include "epochd.fullname" .)) -}}
{{- end }}

{{- define "epochd.shmHostPath" -}}
{{- .Values.hotRestart.shmHostPath | default (printf "/dev/shm/epochd/%s-%s" .Release.Namespace (include "epochd.fullname" .)) -}}
{{- end }}

{{- /* Takes {image, tag}. */ -}}
{{- define "epochd.imageRef" -}}
{{- if .image.digest -}}
{{ .image.repository }}@{{ .image.digest }}
{{- else -}}
{{ .image.repository }}:{{ .tag }}
{{- end -}}
{{- end }}

{{- /* What two pods must have in common to hand over to each other. */ -}}
{{- define "epochd.identity" -}}
{{- $user := printf "%d:%d" (int .Values.podSecurityContext.runAsUser) (int .Values.podSecurityContext.runAsGroup) -}}
{{- printf "base-id=%d user=%s state=%s shm=%s" (int .Values.settings.base_id) $user (include "epochd.stateHostPath" .) (include "epochd.shmHostPath" .) -}}
{{- end }}

{{- /* Milliseconds of a duration such as 1m30s. */ -}}
{{- define "epochd.ms" -}}
{{- $ms := 0 -}}
{{- range regexFindAll "[0-9]+(\\.[0-9]+)?(ms|s|m|h)" (toString .) -1 -}}
{{- $unit := regexFind "[a-z]+" . -}}
{{- $ms = addf $ms (mulf (float64 (trimSuffix $unit .)) (get (dict "ms" 1 "s" 1000 "m" 60000 "h" 3600000) $unit)) -}}
{{- end -}}
{{- int64 $ms -}}
{{- end }}

{{- /* The container's part that nobody may loosen. */ -}}
{{- define "epochd.containerSecurityContext" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities:
  drop: [ALL]
{{- end }}

{{- /* This release's series: Kubernetes names a pod of a DaemonSet by at most 58 characters of it and five of its own. */ -}}
{{- define "epochd.seriesSelector" -}}
{{- $own := printf "namespace=\"%s\",pod=~\"%s[a-z0-9]{5}\"" .Release.Namespace (printf "%s-" (include "epochd.fullname" .) | trunc 58) -}}
{{- .Values.metrics.prometheusRule.selector | default $own -}}
{{- end }}
