{{- define "backstop.name" -}}
{{- if contains "backstop" .Release.Name }}{{ .Release.Name | trunc 50 | trimSuffix "-" }}{{ else }}{{ printf "%s-backstop" .Release.Name | trunc 50 | trimSuffix "-" }}{{ end }}
{{- end -}}

{{- define "backstop.selector" -}}
app.kubernetes.io/name: backstop
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "backstop.labels" -}}
{{ include "backstop.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- end -}}
