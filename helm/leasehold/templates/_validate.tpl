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
    {{- fail (printf "workload.replicas: %d pods cannot share the file store, which is for one machine; use config.store.type: redis or dynamodb" (int .Values.workload.replicas)) -}}
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

{{- range $gate := $config.gate -}}
  {{- if and (eq (default "http" $gate.type) "sqs") (not (include "leasehold.isLoopback" $gate.listen)) -}}
    {{- fail (printf "config.gate %q, listen: %s can be reached from beyond the pod, and an sqs gate signs whatever comes with the pod's own AWS credentials: write 127.0.0.1:9324" $gate.name $gate.listen) -}}
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
{{- include "leasehold.validatePeers" . -}}
{{- range $gate, $port := .Values.service.ports -}}
  {{- $names := list -}}
  {{- range $ports.gates }}{{ $names = append $names .gate }}{{ end -}}
  {{- if not (has $gate $names) -}}
    {{- fail (printf "service.ports: there is no gate %q that others can reach (there are: %s)" $gate (join ", " $names)) -}}
  {{- end -}}
{{- end -}}
{{- end -}}

{{/* "true" for the host of an address that listens everywhere and so leads nowhere. */}}
{{- define "leasehold.isWildcard" -}}
{{- if regexMatch "^(0\\.0\\.0\\.0|\\[[0:]+\\]|\\*|):[0-9]+$" . -}}true{{- end -}}
{{- end -}}

{{/* What gates need to forward to one another: where the others' traffic arrives, and what leads there. */}}
{{- define "leasehold.validatePeers" -}}
{{- range $gate := .Values.config.gate -}}
  {{- $what := printf "config.gate %q" $gate.name -}}
  {{- $forwards := eq (default "" $gate.standby) "forward" -}}
  {{- $peer := default "" $gate.peer_listen -}}
  {{- $advertise := default "" $gate.advertise -}}
  {{- if and $forwards (eq (default "inbound" $gate.direction) "outbound") -}}
    {{- fail (printf "%s, standby: forward cannot go with direction: outbound, since what the application sends out is not another pod's; use refuse, close or hold" $what) -}}
  {{- end -}}
  {{- if and (not $peer) $forwards -}}
    {{- fail (printf "%s, standby: forward needs peer_listen beside it, like 0.0.0.0:8081, and advertise, like \"${POD_IP}:8081\": the other pods forward there while this one holds" $what) -}}
  {{- else if and (not $peer) (or $advertise $gate.peer_secret_file) -}}
    {{- fail (printf "%s, %s needs peer_listen beside it, like 0.0.0.0:8081" $what (ternary "advertise" "peer_secret_file" (ne $advertise ""))) -}}
  {{- end -}}
  {{- if and $peer (not $advertise) (include "leasehold.isWildcard" $peer) -}}
    {{- fail (printf "%s, peer_listen: %s listens everywhere, which is no address to connect to; give advertise too, like \"${POD_IP}:%s\"" $what $peer (regexFind "[0-9]+$" $peer)) -}}
  {{- end -}}
  {{- if include "leasehold.isWildcard" $advertise -}}
    {{- fail (printf "%s, advertise: %s is no address to connect to; write the pod's own, like \"${POD_IP}:%s\"" $what $advertise (regexFind "[0-9]+$" (default "8081" $peer))) -}}
  {{- end -}}
  {{- $leads := default $peer $advertise -}}
  {{- if and $leads (include "leasehold.isLoopback" $leads) -}}
    {{- fail (printf "%s, %s: %s leads every other pod to itself; let peer_listen be like 0.0.0.0:8081, and advertise \"${POD_IP}:8081\"" $what (ternary "advertise" "peer_listen" (ne $advertise "")) $leads) -}}
  {{- end -}}
  {{- $port := regexFind ":[0-9]+$" $advertise -}}
  {{- if and $port (not (include "leasehold.isLoopback" $gate.listen)) (eq $port (regexFind ":[0-9]+$" $gate.listen)) -}}
    {{- fail (printf "%s, advertise: %s names the port of listen, where clients connect; the holder refuses what is forwarded there: write the port of peer_listen, like \"${POD_IP}%s\"" $what $advertise (regexFind ":[0-9]+$" $peer)) -}}
  {{- end -}}
{{- end -}}
{{- end -}}
