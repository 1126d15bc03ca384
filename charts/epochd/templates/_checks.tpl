{{- /* Refuses what Kubernetes would accept and users would regret. Prints nothing. */ -}}
{{- define "epochd.checks" -}}
{{- $hot := .Values.hotRestart -}}
{{- $marginMs := 5000 -}}
{{- if and $hot.surge (not $hot.crossPod) -}}
{{- fail "hotRestart.surge true: expected hotRestart.crossPod true too, two pods of a node can't take over from each other without it" -}}
{{- end -}}
{{- if and $hot.crossPod (not $hot.enabled) -}}
{{- fail "hotRestart.crossPod true: expected hotRestart.enabled true too" -}}
{{- end -}}
{{- if and $hot.crossPod (not .Values.hostNetwork) -}}
{{- fail "hotRestart.crossPod true: expected hostNetwork true too, epochs hand over through sockets of one network namespace" -}}
{{- end -}}
{{- if and .Values.hostNetwork .Values.ports -}}
{{- fail "ports: expected none with hostNetwork, a surge pod would stay Pending for want of free ports; listeners need no declaration" -}}
{{- end -}}
{{- if and .Values.hostNetwork .Values.networkPolicy.enabled -}}
{{- fail "networkPolicy.enabled true: expected hostNetwork false, network policies don't apply to pods on the node's network" -}}
{{- end -}}
{{- if not .Values.podSecurityContext.runAsUser -}}
{{- fail "podSecurityContext.runAsUser: expected a number over 0, Envoy runs as a user other than root" -}}
{{- end -}}
{{- if $hot.enabled -}}
{{- $drain := .Values.settings.drain_time -}}
{{- $parent := .Values.settings.parent_shutdown_time -}}
{{- $delay := .Values.settings.pre_drain_delay | default "0s" -}}
{{- $drainMs := int (include "epochd.ms" $drain) -}}
{{- $parentMs := int (include "epochd.ms" $parent) -}}
{{- $delayMs := int (include "epochd.ms" $delay) -}}
{{- $grace := int .Values.terminationGracePeriodSeconds -}}
{{- $graceMs := sub (mul 1000 $grace) $marginMs -}}
{{- if ge $drainMs $parentMs -}}
{{- fail (printf "settings.drain_time %s: expected less than settings.parent_shutdown_time, which is %s: a predecessor would end before it has drained" $drain $parent) -}}
{{- end -}}
{{- if ge $parentMs $graceMs -}}
{{- fail (printf "settings.parent_shutdown_time %s: expected less than terminationGracePeriodSeconds (%d) less 5 s: kubelet would kill a predecessor that still drains" $parent $grace) -}}
{{- end -}}
{{- if ge (add $delayMs $drainMs) $graceMs -}}
{{- fail (printf "settings.pre_drain_delay %s: expected less than terminationGracePeriodSeconds (%d) less settings.drain_time (%s) and 5 s" $delay $grace $drain) -}}
{{- end -}}
{{- end -}}
{{- include "epochd.checkMetrics" . -}}
{{- if $hot.surge -}}
{{- include "epochd.checkTransition" . -}}
{{- end -}}
{{- end }}

{{- define "epochd.checkMetrics" -}}
{{- $metrics := .Values.metrics -}}
{{- range $gate := list "podMonitor" "prometheusRule" "dashboard" -}}
{{- if and (get $metrics $gate).enabled (not $metrics.enabled) -}}
{{- fail (printf "metrics.%s.enabled true: expected metrics.enabled true too, without it epochd answers nobody outside its pod" $gate) -}}
{{- end -}}
{{- end -}}
{{- if $metrics.enabled -}}
{{- if not .Values.hotRestart.enabled -}}
{{- fail "metrics.enabled true: expected hotRestart.enabled true too, the metrics are epochd's" -}}
{{- end -}}
{{- if not $metrics.tls.secretName -}}
{{- fail "metrics.tls.secretName: expected a Secret with certificate and private key, epochd sends nothing in the clear" -}}
{{- end -}}
{{- if not $metrics.keys.secretName -}}
{{- fail "metrics.keys.secretName: expected a Secret with a keys file, epochd lets nobody in unknown: epochd key create prometheus --role read --file keys" -}}
{{- end -}}
{{- range $key := list "api_listen" "api_tls_cert" "api_tls_key" "api_keys_file" -}}
{{- if hasKey $.Values.settings $key -}}
{{- fail (printf "settings.%s: expected none with metrics.enabled, which sets it" $key) -}}
{{- end -}}
{{- end -}}
{{- with $metrics.podMonitor -}}
{{- if .enabled -}}
{{- if not .authorization.secretName -}}
{{- fail "metrics.podMonitor.authorization.secretName: expected a Secret with the key that Prometheus sends" -}}
{{- end -}}
{{- if not (or .tlsConfig.ca .tlsConfig.serverName .tlsConfig.insecureSkipVerify) -}}
{{- fail "metrics.podMonitor.tlsConfig: expected ca, serverName or insecureSkipVerify, pods are scraped by an IP that no public certificate names" -}}
{{- end -}}
{{- if and $.Values.settings.api_client_ca (not (and .tlsConfig.cert .tlsConfig.keySecret)) -}}
{{- fail "metrics.podMonitor.tlsConfig: expected cert and keySecret with settings.api_client_ca, which lets nobody in without a client certificate" -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end }}

{{- /* A surge pod beside one that can't hand over to it would be a second Envoy on the same ports. Sees the cluster on install and
       upgrade; `helm template` has none, so whoever applies its output keeps this rule himself. */ -}}
{{- define "epochd.checkTransition" -}}
{{- $identity := include "epochd.identity" . -}}
{{- $selector := include "epochd.selectorLabels" . | fromYaml -}}
{{- $others := list -}}
{{- range (lookup "v1" "Pod" .Release.Namespace "").items -}}
{{- $labels := .metadata.labels | default dict -}}
{{- $mine := true -}}
{{- range $key, $value := $selector -}}
{{- if ne (get $labels $key) $value -}}{{- $mine = false -}}{{- end -}}
{{- end -}}
{{- if and $mine (ne (get (.metadata.annotations | default dict) "epochd/identity") $identity) -}}
{{- $others = append $others .metadata.name -}}
{{- end -}}
{{- end -}}
{{- if $others -}}
{{- fail (printf "hotRestart.surge true: expected every pod to hand over already, %d can't (%s): upgrade with hotRestart.surge=false first, wait until that roll has ended, then set surge. Expected of each pod: %s" (len $others) (join ", " $others) $identity) -}}
{{- end -}}
{{- end }}
