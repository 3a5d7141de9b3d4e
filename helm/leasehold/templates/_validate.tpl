{{/* What spans several values, so that values.schema.json cannot say it. One message at a time. */}}
{{- define "leasehold.validate" -}}
{{- $config := .Values.config -}}
{{- $type := dig "store" "type" "file" $config -}}
{{- $statefulSet := eq .Values.workload.kind "StatefulSet" -}}

{{- if eq $type "redis" -}}
  {{- $url := dig "store" "redis" "url" "" $config -}}
  {{- if not $url -}}
    {{- fail "config.store.redis.url is missing: the Redis that keeps the leases, like redis://redis.data:6379/0" -}}
  {{- end -}}
  {{- if and (regexMatch "^[a-z]+://[^/@]*:[^/@]+@" $url) (not (regexMatch "^[a-z]+://[^/@:]*:\\$\\{[A-Za-z_][A-Za-z0-9_]*\\}@" $url)) -}}
    {{- fail "config.store.redis.url holds a password, which the ConfigMap would show: put it into a Secret and name that in secrets.redisPassword" -}}
  {{- end -}}
  {{- $user := or (regexMatch "^[a-z]+://[^/@:]+@" $url) (dig "store" "redis" "username" "" $config) -}}
  {{- if and $user (not .Values.secrets.redisPassword.secretName) (not (dig "store" "redis" "password" "" $config)) (not (dig "store" "redis" "password_file" "" $config)) -}}
    {{- fail "config.store.redis names a user, but no password: name its Secret in secrets.redisPassword" -}}
  {{- end -}}
{{- else if eq $type "file" -}}
  {{- if gt (int .Values.workload.replicas) 1 -}}
    {{- fail (printf "workload.replicas: %d pods cannot share the file store, which is for one machine; use config.store.type: redis" (int .Values.workload.replicas)) -}}
  {{- end -}}
  {{- $volume := .Values.fileStore.volumeName -}}
  {{- if not $volume -}}
    {{- fail "fileStore.volumeName is missing: config.store.type: file needs a volume that outlives the pod, or fencing tokens begin at 1 again; name one of pod.volumes or workload.volumeClaimTemplates" -}}
  {{- end -}}
  {{- $known := list -}}
  {{- range .Values.pod.volumes }}{{ $known = append $known .name }}{{ end -}}
  {{- if $statefulSet }}{{ range .Values.workload.volumeClaimTemplates }}{{ $known = append $known (dig "metadata" "name" "" .) }}{{ end }}{{ end -}}
  {{- if not (has $volume $known) -}}
    {{- fail (printf "fileStore.volumeName: there is no volume %q in pod.volumes (there are: %s)" $volume (join ", " $known)) -}}
  {{- end -}}
  {{- if and (not $statefulSet) (ne (dig "type" "Recreate" .Values.workload.strategy) "Recreate") -}}
    {{- fail "workload.strategy: with the file store it must be Recreate, or an upgrade has two pods at once" -}}
  {{- end -}}
{{- end -}}
{{- if and .Values.fileStore.volumeName (ne $type "file") -}}
  {{- fail (printf "fileStore.volumeName is given, but config.store.type is %q" $type) -}}
{{- end -}}

{{- if and .Values.workload.volumeClaimTemplates (not $statefulSet) -}}
  {{- fail "workload.volumeClaimTemplates needs workload.kind: StatefulSet" -}}
{{- end -}}

{{- range $lease := $config.lease -}}
  {{- if contains "${" $lease.name -}}
    {{- fail (printf "config.lease: %q must be written out, since preStop names the leases" $lease.name) -}}
  {{- end -}}
{{- end -}}

{{- $ports := include "leasehold.ports" . | fromJson -}}
{{- $seen := dict -}}
{{- range concat $ports.gates $ports.peers -}}
  {{- $key := .port | int | toString -}}
  {{- if hasKey $seen $key -}}
    {{- fail (printf "config.gate: %s and %s both take port %s of the pod" (get $seen $key) .name $key) -}}
  {{- end -}}
  {{- $_ := set $seen $key .name -}}
{{- end -}}
{{- if include "leasehold.adminOpen" . -}}
  {{- $key := include "leasehold.adminPort" . -}}
  {{- if hasKey $seen $key -}}
    {{- fail (printf "config.admin.listen takes port %s, which is that of %s" $key (get $seen $key)) -}}
  {{- end -}}
{{- else if .Values.podMonitor.enabled -}}
  {{- fail "podMonitor.enabled: Prometheus cannot reach config.admin.listen on loopback" -}}
{{- end -}}
{{- range $gate, $port := .Values.service.ports -}}
  {{- $names := list -}}
  {{- range $ports.gates }}{{ $names = append $names .gate }}{{ end -}}
  {{- if not (has $gate $names) -}}
    {{- fail (printf "service.ports: there is no gate %q that others can reach (there are: %s)" $gate (join ", " $names)) -}}
  {{- end -}}
{{- end -}}
{{- end -}}
