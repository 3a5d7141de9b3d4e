{{/* The pod template, the same for Deployment and StatefulSet. */}}

{{- define "leasehold.application" -}}
{{- $app := .Values.application -}}
{{- $delay := include "leasehold.applicationDelay" . | int -}}
{{- $hasStop := hasKey $app.lifecycle "preStop" -}}
name: {{ $app.name | quote }}
image: {{ include "leasehold.image" (dict "image" $app.image "tag" "" "name" "application" "hint" "it is the application that Leasehold makes highly available") | quote }}
imagePullPolicy: {{ $app.image.pullPolicy }}
{{- with $app.command }}
command:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with $app.args }}
args:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with $app.workingDir }}
workingDir: {{ . | quote }}
{{- end }}
{{- with $app.env }}
env:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with $app.envFrom }}
envFrom:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with $app.ports }}
ports:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- range $probe := list "startupProbe" "livenessProbe" "readinessProbe" }}
{{- with get $app $probe }}
{{ $probe }}:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}
{{- if or $app.lifecycle (gt $delay 0) }}
lifecycle:
  {{- with $app.lifecycle }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
  {{- if and (not $hasStop) (gt $delay 0) }}
  # Its SIGTERM waits until the sidecar has drained: both hooks start at once.
  preStop:
    {{- if semverCompare ">=1.30.0-0" .Capabilities.KubeVersion.Version }}
    sleep:
      seconds: {{ $delay }}
    {{- else }}
    exec:
      command: [sleep, {{ $delay | toString | quote }}]
    {{- end }}
  {{- end }}
{{- end }}
{{- with $app.resources }}
resources:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with $app.securityContext }}
securityContext:
  {{- toYaml . | nindent 2 }}
{{- end }}
volumeMounts:
  # The signal socket; connecting needs no writable mount.
  - name: leasehold-run
    mountPath: /run/leasehold
    readOnly: true
  {{- with $app.volumeMounts }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
{{- end -}}

{{- define "leasehold.affinity" -}}
{{- if .Values.pod.affinity -}}
{{- toYaml .Values.pod.affinity -}}
{{- else if ne .Values.pod.spread "none" -}}
podAntiAffinity:
  {{- if eq .Values.pod.spread "hard" }}
  requiredDuringSchedulingIgnoredDuringExecution:
    - topologyKey: kubernetes.io/hostname
      labelSelector:
        matchLabels:
          {{- include "leasehold.selectorLabels" . | nindent 10 }}
  {{- else }}
  preferredDuringSchedulingIgnoredDuringExecution:
    - weight: 100
      podAffinityTerm:
        topologyKey: kubernetes.io/hostname
        labelSelector:
          matchLabels:
            {{- include "leasehold.selectorLabels" . | nindent 12 }}
    - weight: 50
      podAffinityTerm:
        topologyKey: topology.kubernetes.io/zone
        labelSelector:
          matchLabels:
            {{- include "leasehold.selectorLabels" . | nindent 12 }}
  {{- end }}
{{- end -}}
{{- end -}}

{{- define "leasehold.pod" -}}
{{- $native := include "leasehold.native" . -}}
{{- $pod := .Values.pod -}}
metadata:
  # Without the chart's version: a new chart that changes nothing here rolls nothing.
  labels:
    {{- include "leasehold.selectorLabels" . | nindent 4 }}
    {{- with $pod.labels }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
  annotations:
    # Which container `kubectl logs` and `exec` take when none is named.
    kubectl.kubernetes.io/default-container: {{ .Values.application.name | quote }}
    checksum/config: {{ include "leasehold.sidecarConf" . | sha256sum | quote }}
    {{- with $pod.annotations }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
spec:
  serviceAccountName: {{ include "leasehold.serviceAccountName" . | quote }}
  automountServiceAccountToken: {{ .Values.serviceAccount.automount }}
  {{- with $pod.imagePullSecrets }}
  imagePullSecrets:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  terminationGracePeriodSeconds: {{ include "leasehold.gracePeriod" . }}
  {{- with $pod.securityContext }}
  securityContext:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- if or $native $pod.initContainers }}
  initContainers:
    {{- with $pod.initContainers }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
    {{- if $native }}
    - {{ include "leasehold.sidecar" . | nindent 6 | trim }}
      # A native sidecar: started before the application, ended after it.
      restartPolicy: Always
    {{- end }}
  {{- end }}
  containers:
    {{- if not $native }}
    - {{ include "leasehold.sidecar" . | nindent 6 | trim }}
    {{- end }}
    - {{ include "leasehold.application" . | nindent 6 | trim }}
    {{- with $pod.extraContainers }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
  volumes:
    - name: leasehold-config
      configMap:
        name: {{ include "leasehold.fullname" . | quote }}
    {{- if include "leasehold.mountsAdminToken" . }}
    - name: leasehold-admin-token
      secret:
        secretName: {{ include "leasehold.adminTokenSecret" . | quote }}
        # 0444, whatever user the sidecar runs as; no other container mounts it.
        defaultMode: 292
        items: [{key: {{ .Values.secrets.adminToken.key | quote }}, path: token}]
    {{- end }}
    {{- with include "leasehold.secretSources" . }}
    - name: leasehold-secrets
      projected:
        defaultMode: 292
        sources:
          {{- . | trim | nindent 10 }}
    {{- end }}
    - name: leasehold-run
      emptyDir: {}
    - name: leasehold-state
      emptyDir: {}
    {{- with $pod.volumes }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
  {{- with include "leasehold.affinity" . }}
  affinity:
    {{- . | nindent 4 }}
  {{- end }}
  {{- range $key := list "topologySpreadConstraints" "nodeSelector" "tolerations" "dnsConfig" }}
  {{- with get $pod $key }}
  {{ $key }}:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- end }}
  {{- with $pod.priorityClassName }}
  priorityClassName: {{ . | quote }}
  {{- end }}
  {{- with $pod.runtimeClassName }}
  runtimeClassName: {{ . | quote }}
  {{- end }}
{{- end -}}
