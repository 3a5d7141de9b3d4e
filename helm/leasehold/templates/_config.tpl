{{/* sidecar.conf: the effective `config`, the ports it opens, and its text. */}}

{{/* "true" for a Unix socket, and for "host:port" or "[v6]:port" that only this pod reaches. */}}
{{- define "leasehold.isLoopback" -}}
{{- if or (hasPrefix "unix:" .) (regexMatch "^(127\\.[0-9.]+|localhost|\\[::1\\]):[0-9]+$" .) -}}true{{- end -}}
{{- end -}}

{{/* dict "address", "what": its port, a number from 1 on. */}}
{{- define "leasehold.port" -}}
{{- $port := regexFind "[0-9]+$" .address -}}
{{- if or (not (regexMatch "^(\\[[0-9a-fA-F:.]+\\]|[^:/\\[\\]]+):[0-9]+$" .address)) (eq (int $port) 0) -}}
{{- fail (printf "%s: %q must be \"host:port\" or \"[v6]:port\" with the port in figures, since Service and probes name it" .what .address) -}}
{{- end -}}
{{- $port -}}
{{- end -}}

{{/* True where the API can be reached from beyond the pod. */}}
{{- define "leasehold.adminOpen" -}}
{{- $listen := dig "admin" "listen" "127.0.0.1:9090" .Values.config -}}
{{- if and $listen (not (include "leasehold.isLoopback" $listen)) -}}true{{- end -}}
{{- end -}}

{{/* True where the chart mounts the token: wanted, and not named by the user already. */}}
{{- define "leasehold.mountsAdminToken" -}}
{{- if not (dig "admin" "token_file" "" .Values.config) -}}
{{- if or .Values.secrets.adminToken.secretName (include "leasehold.adminOpen" .) -}}true{{- end -}}
{{- end -}}
{{- end -}}

{{- define "leasehold.adminTokenSecret" -}}
{{- .Values.secrets.adminToken.secretName | default (printf "%s-admin" (include "leasehold.fullname" .)) -}}
{{- end -}}

{{/*
store.prefix where none is given: two releases with a lease "app" in one Redis must not meet. At most 64
bytes, and beginning with "leasehold:", so that one ACL fits all.
*/}}
{{- define "leasehold.storePrefix" -}}
{{- $name := printf "leasehold:%s:%s" .Release.Namespace (include "leasehold.fullname" .) -}}
{{- if gt (len $name) 64 -}}
{{- $name = printf "leasehold:%s" (sha256sum $name | trunc 40) -}}
{{- end -}}
{{- $name -}}
{{- end -}}

{{/* `config` with what the chart fills in. JSON. */}}
{{- define "leasehold.config" -}}
{{- $config := deepCopy .Values.config -}}
{{- $secrets := .Values.secrets -}}
{{- if not (hasKey $config.store "prefix") -}}
  {{- $_ := set $config.store "prefix" (include "leasehold.storePrefix" .) -}}
{{- end -}}
{{- if eq (dig "store" "type" "file" $config) "file" -}}
  {{- $_ := unset $config.store "redis" -}}
  {{- if not (dig "store" "file" "dir" "" $config) -}}
    {{- $_ := set $config.store "file" (mergeOverwrite (dict) (dig "store" "file" (dict) $config) (dict "dir" "/var/lib/leasehold-store")) -}}
  {{- end -}}
{{- else if eq $config.store.type "redis" -}}
  {{- $_ := unset $config.store "file" -}}
  {{- $_ := unset $config.store "dynamodb" -}}
  {{- if and $secrets.redisPassword.secretName (not (dig "store" "redis" "password_file" "" $config)) -}}
    {{- $_ := set $config.store.redis "password_file" "/etc/leasehold/secrets/redis-password" -}}
  {{- end -}}
{{- else -}}
  {{- $_ := unset $config.store "file" -}}
  {{- $_ := unset $config.store "redis" -}}
{{- end -}}
{{- if include "leasehold.mountsAdminToken" . -}}
  {{- $_ := set $config "admin" (mergeOverwrite (dict) (dig "admin" (dict) $config) (dict "token_file" "/etc/leasehold/admin-token")) -}}
{{- end -}}
{{- $upstream := "" -}}
{{- range $gate := $config.gate -}}
  {{- if and $secrets.peerSecret.secretName $gate.peer_listen (not $gate.peer_secret_file) -}}
    {{- $_ := set $gate "peer_secret_file" "/etc/leasehold/secrets/peer-secret" -}}
  {{- end -}}
  {{- if and (not $upstream) (ne (default "http" $gate.type) "sqs") (ne (default "inbound" $gate.direction) "outbound") (not (hasPrefix "unix:" $gate.upstream)) -}}
    {{- $upstream = $gate.upstream -}}
  {{- end -}}
{{- end -}}
{{- if and $upstream (not (hasKey (dig "app" (dict) $config) "check")) -}}
  {{- $_ := set $config "app" (mergeOverwrite (dict) (dig "app" (dict) $config) (dict "check" (printf "tcp://%s" $upstream))) -}}
{{- end -}}
{{- toJson $config -}}
{{- end -}}

{{/* The ports that pods open: {"gates": [{name, type, port}], "peers": [{name, port}]}, JSON. */}}
{{- define "leasehold.ports" -}}
{{- $gates := list -}}
{{- $peers := list -}}
{{- $names := dict -}}
{{- range $gate := .Values.config.gate -}}
  {{- $name := $gate.name | lower | replace "_" "-" | replace "." "-" | trunc 57 | trimAll "-" -}}
  {{- if hasKey $names $name -}}
    {{- fail (printf "config.gate: %q and %q give the Service two ports of one name, %q; rename one" (get $names $name) $gate.name $name) -}}
  {{- end -}}
  {{- $_ := set $names $name $gate.name -}}
  {{- if not (include "leasehold.isLoopback" $gate.listen) -}}
    {{- $port := include "leasehold.port" (dict "address" $gate.listen "what" (printf "config.gate %q, listen" $gate.name)) | int -}}
    {{- $gates = append $gates (dict "name" $name "gate" $gate.name "type" (default "http" $gate.type) "port" $port) -}}
  {{- end -}}
  {{- if and $gate.peer_listen (not (include "leasehold.isLoopback" $gate.peer_listen)) -}}
    {{- $port := include "leasehold.port" (dict "address" $gate.peer_listen "what" (printf "config.gate %q, peer_listen" $gate.name)) | int -}}
    {{- $peers = append $peers (dict "name" (printf "%s-peer" $name) "gate" $gate.name "port" $port) -}}
  {{- end -}}
{{- end -}}
{{- dict "gates" $gates "peers" $peers | toJson -}}
{{- end -}}

{{- define "leasehold.adminPort" -}}
{{- include "leasehold.port" (dict "address" (dig "admin" "listen" "127.0.0.1:9090" .Values.config) "what" "config.admin.listen") -}}
{{- end -}}

{{/* JSON's strings are TOML's basic strings, but for DEL. Numbers and booleans are written alike. */}}
{{- define "leasehold.tomlValue" -}}
{{- if kindIs "slice" . -}}
{{- $items := list -}}
{{- range . }}{{ $items = append $items (include "leasehold.tomlValue" .) }}{{ end -}}
[{{ join ", " $items }}]
{{- else -}}
{{- toRawJson . | replace "\u007f" "\\u007f" -}}
{{- end -}}
{{- end -}}

{{/*
dict "prefix", "map": one line an option, what names the table first; maps become dotted keys; null is
"leave it out".
*/}}
{{- define "leasehold.tomlTable" -}}
{{- $prefix := .prefix -}}
{{- $map := .map -}}
{{- $first := list "id" "name" "type" -}}
{{- range $key := concat $first (without (keys $map | sortAlpha) "id" "name" "type") -}}
{{- $value := get $map $key -}}
{{- if not (hasKey $map $key) -}}
{{- else if kindIs "map" $value -}}
{{- include "leasehold.tomlTable" (dict "prefix" (printf "%s%s." $prefix $key) "map" $value) -}}
{{- else if not (kindIs "invalid" $value) -}}
{{- printf "%s%s = %s\n" $prefix $key (include "leasehold.tomlValue" $value) -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{- define "leasehold.sidecarConf" -}}
{{- $config := include "leasehold.config" . | fromJson -}}
# Written by the chart from .Values.config.
{{- range $section := list "node" "store" "lease" "gate" "app" "admin" "signal" "hooks" "audit" "log" }}
{{- $value := get $config $section }}
{{- if kindIs "slice" $value }}
{{- range $value }}

[[{{ $section }}]]
{{ include "leasehold.tomlTable" (dict "prefix" "" "map" .) | trimSuffix "\n" }}
{{- end }}
{{- else if $value }}

[{{ $section }}]
{{ include "leasehold.tomlTable" (dict "prefix" "" "map" $value) | trimSuffix "\n" }}
{{- end }}
{{- end }}
{{- end -}}
