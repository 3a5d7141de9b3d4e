{{/* Names and labels. */}}
{{- define "leasehold.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 63 | trimSuffix "-" -}}
{{- end -}}

{{/* Room for "-peers" and "-admin" behind it, and for the 63 bytes of a DNS label. */}}
{{- define "leasehold.fullname" -}}
{{- $name := default .Chart.Name .Values.nameOverride -}}
{{- $full := ternary .Release.Name (printf "%s-%s" .Release.Name $name) (contains $name .Release.Name) -}}
{{- default $full .Values.fullnameOverride | trunc 52 | trimSuffix "-" -}}
{{- end -}}

{{- define "leasehold.selectorLabels" -}}
app.kubernetes.io/name: {{ include "leasehold.name" . | quote }}
app.kubernetes.io/instance: {{ .Release.Name | quote }}
{{- end -}}

{{- define "leasehold.labels" -}}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" | trunc 63 | trimSuffix "-" | quote }}
{{ include "leasehold.selectorLabels" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service | quote }}
{{- end -}}

{{- define "leasehold.serviceAccountName" -}}
{{- if .Values.serviceAccount.create -}}
{{- default (include "leasehold.fullname" .) .Values.serviceAccount.name -}}
{{- else -}}
{{- default "default" .Values.serviceAccount.name -}}
{{- end -}}
{{- end -}}

{{/* dict "image" map, "tag" default tag, "name" the value's name */}}
{{- define "leasehold.image" -}}
{{- if not .image.repository -}}
{{- fail (printf "%s.image.repository is missing: %s" .name .hint) -}}
{{- end -}}
{{- if .image.digest -}}
{{- printf "%s@%s" .image.repository .image.digest -}}
{{- else if or .image.tag .tag -}}
{{- printf "%s:%s" .image.repository (.image.tag | default .tag) -}}
{{- else -}}
{{- fail (printf "%s.image needs a tag or a digest: what runs must not change by itself" .name) -}}
{{- end -}}
{{- end -}}

{{/* "true" for a native sidecar. On by default since Kubernetes 1.29. */}}
{{- define "leasehold.native" -}}
{{- $able := semverCompare ">=1.29.0-0" .Capabilities.KubeVersion.Version -}}
{{- if eq .Values.sidecar.mode "native" -}}
{{- if not $able -}}
{{- fail (printf "sidecar.mode: native needs Kubernetes 1.29, this is %s; use auto" .Capabilities.KubeVersion.Version) -}}
{{- end -}}
true
{{- else if and (eq .Values.sidecar.mode "auto") $able -}}
true
{{- end -}}
{{- end -}}
