{{/* The sidecar's container, without the restartPolicy that makes it a native one. */}}

{{/*
preStop runs when the pod's end begins, beside the application's own. It gives every lease away at once
and lets new connections in for lingerSeconds, so that nodes which still send here are served (a standby
forwards). 0 done, 3 a step-down is under way already, 6 not the holder: all as it should be. The rest is
an event of the pod (FailedPreStopHook); the SIGTERM that follows steps down in any case.
*/}}
{{- define "leasehold.preStopScript" -}}
linger=$1; timeout=$2; shift 2
sleep "$linger" &
asked=""
for lease in "$@"; do
  leasehold step-down "$lease" -c /etc/leasehold/sidecar.conf --wait --no-take-back --yes --timeout "$timeout" &
  asked="$asked $!"
done
result=0
for pid in $asked; do
  code=0; wait "$pid" || code=$?
  case $code in 0 | 3 | 6) ;; *) result=$code ;; esac
done
wait
exit "$result"
{{- end -}}

{{- define "leasehold.probe" -}}
httpGet:
  path: {{ .path }}
  port: admin
{{- end -}}

{{- define "leasehold.sidecar" -}}
{{- $ports := include "leasehold.ports" . | fromJson -}}
{{- $config := .Values.config -}}
{{- $admin := dig "admin" "listen" "127.0.0.1:9090" $config -}}
{{- $own := and .Values.sidecar.startupProbe .Values.sidecar.livenessProbe .Values.sidecar.readinessProbe -}}
{{- if and (not (include "leasehold.adminOpen" .)) (not $own) -}}
{{- fail (printf "config.admin.listen: %q cannot be reached by the kubelet's probes: listen on 0.0.0.0:9090 (the token of secrets.adminToken guards all but the probes), or give sidecar.startupProbe, livenessProbe and readinessProbe of your own" $admin) -}}
{{- end -}}
name: leasehold
image: {{ include "leasehold.image" (dict "image" .Values.sidecar.image "tag" .Chart.AppVersion "name" "sidecar" "hint" "no registry carries an image of Leasehold; build one with helm/Dockerfile") | quote }}
imagePullPolicy: {{ .Values.sidecar.image.pullPolicy }}
command: [leasehold, run, -c, /etc/leasehold/sidecar.conf]
env:
  - name: POD_NAME
    valueFrom: {fieldRef: {fieldPath: metadata.name}}
  - name: POD_NAMESPACE
    valueFrom: {fieldRef: {fieldPath: metadata.namespace}}
  - name: POD_IP
    valueFrom: {fieldRef: {fieldPath: status.podIP}}
  {{- with .Values.sidecar.env }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
{{- with .Values.sidecar.envFrom }}
envFrom:
  {{- toYaml . | nindent 2 }}
{{- end }}
ports:
  {{- range $ports.gates }}
  - containerPort: {{ .port }}
    protocol: TCP
    {{- if le (len .name) 15 }}
    name: {{ .name | quote }}
    {{- end }}
  {{- end }}
  {{- range $ports.peers }}
  - containerPort: {{ .port }}
    protocol: TCP
    {{- if le (len .name) 15 }}
    name: {{ .name | quote }}
    {{- end }}
  {{- end }}
  {{- if include "leasehold.adminOpen" . }}
  - containerPort: {{ include "leasehold.adminPort" . }}
    protocol: TCP
    name: admin
  {{- end }}
startupProbe:
  {{- if .Values.sidecar.startupProbe }}
  {{- toYaml .Values.sidecar.startupProbe | nindent 2 }}
  {{- else }}
  {{- /* /livez, never /readyz: a native sidecar must have started before the application is started. */}}
  {{- include "leasehold.probe" (dict "path" "/livez") | nindent 2 }}
  periodSeconds: 1
  timeoutSeconds: 2
  failureThreshold: 60
  {{- end }}
livenessProbe:
  {{- if .Values.sidecar.livenessProbe }}
  {{- toYaml .Values.sidecar.livenessProbe | nindent 2 }}
  {{- else }}
  {{- include "leasehold.probe" (dict "path" "/livez") | nindent 2 }}
  periodSeconds: 10
  timeoutSeconds: 3
  failureThreshold: 3
  # A loop that hangs drains nothing: no use in waiting for it as long as for a pod's planned end.
  terminationGracePeriodSeconds: 10
  {{- end }}
readinessProbe:
  {{- if .Values.sidecar.readinessProbe }}
  {{- toYaml .Values.sidecar.readinessProbe | nindent 2 }}
  {{- else }}
  {{- include "leasehold.probe" (dict "path" "/readyz") | nindent 2 }}
  periodSeconds: 2
  timeoutSeconds: 2
  failureThreshold: 2
  {{- end }}
lifecycle:
  preStop:
    exec:
      command:
        - /bin/sh
        - -c
        - |
          {{- include "leasehold.preStopScript" . | nindent 10 }}
        - pre-stop
        - {{ .Values.shutdown.lingerSeconds | toString | quote }}
        - {{ printf "%ds" (include "leasehold.gracePeriod" . | int) | quote }}
        {{- range $config.lease }}
        - {{ .name | quote }}
        {{- end }}
{{- with .Values.sidecar.resources }}
resources:
  {{- toYaml . | nindent 2 }}
{{- end }}
securityContext:
  {{- toYaml .Values.sidecar.securityContext | nindent 2 }}
volumeMounts:
  # Single files: a change of ConfigMap or Secret never reaches a running container, so that process and
  # preStop always read the same ones; a change rolls the pods (checksum/config).
  - name: leasehold-config
    mountPath: /etc/leasehold/sidecar.conf
    subPath: sidecar.conf
    readOnly: true
  {{- if include "leasehold.mountsAdminToken" . }}
  - name: leasehold-admin-token
    mountPath: /etc/leasehold/admin-token
    subPath: token
    readOnly: true
  {{- end }}
  {{- if include "leasehold.secretSources" . }}
  - name: leasehold-secrets
    mountPath: /etc/leasehold/secrets
    readOnly: true
  {{- end }}
  - name: leasehold-run
    mountPath: /run/leasehold
  - name: leasehold-state
    mountPath: /var/lib/leasehold
  {{- if .Values.fileStore.volumeName }}
  - name: {{ .Values.fileStore.volumeName | quote }}
    mountPath: {{ dig "store" "file" "dir" "/var/lib/leasehold-store" $config | quote }}
  {{- end }}
  {{- with .Values.sidecar.volumeMounts }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
{{- end -}}

{{/* The sources of the projected volume /etc/leasehold/secrets; empty: there is none. */}}
{{- define "leasehold.secretSources" -}}
{{- with .Values.secrets.redisPassword }}
{{- if .secretName }}
- secret:
    name: {{ .secretName | quote }}
    items: [{key: {{ .key | quote }}, path: redis-password}]
{{- end }}
{{- end }}
{{- with .Values.secrets.peerSecret }}
{{- if .secretName }}
- secret:
    name: {{ .secretName | quote }}
    items: [{key: {{ .key | quote }}, path: peer-secret}]
{{- end }}
{{- end }}
{{- range .Values.secrets.files }}
- secret:
    name: {{ .secretName | quote }}
    items: [{key: {{ .key | quote }}, path: {{ .path | quote }}}]
{{- end }}
{{- end -}}
