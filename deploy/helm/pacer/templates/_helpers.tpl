{{- define "pacer.name" -}}
{{- if contains "pacer" .Release.Name }}{{ .Release.Name | trunc 52 | trimSuffix "-" }}{{ else }}{{ printf "%s-pacer" .Release.Name | trunc 52 | trimSuffix "-" }}{{ end }}
{{- end }}

{{- define "pacer.selector" -}}
app.kubernetes.io/name: pacer
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/component: gateway
{{- end }}

{{- define "pacer.labels" -}}
{{ include "pacer.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- end }}

{{- define "pacer.valkeySelector" -}}
app.kubernetes.io/name: pacer
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/component: valkey
{{- end }}

{{- define "pacer.account" -}}
{{- if .Values.serviceAccount.create }}{{ default (include "pacer.name" .) .Values.serviceAccount.name }}{{ else }}{{ default "default" .Values.serviceAccount.name }}{{ end }}
{{- end }}

{{- define "pacer.discovers" -}}
{{- if or .Values.discovery.services .Values.discovery.pools }}yes{{ end }}
{{- end }}

{{- define "pacer.engines" -}}
{{- default .Release.Namespace .Values.discovery.namespace }}
{{- end }}

{{- /* A Go duration such as 1h30m, 90s or 500ms, in whole seconds, rounded up. */ -}}
{{- define "pacer.seconds" -}}
{{- $total := 0.0 }}
{{- range regexFindAll "[0-9.]+(ms|h|m|s)" . -1 }}
{{- $n := regexFind "[0-9.]+" . | float64 }}
{{- $unit := regexFind "[a-z]+" . }}
{{- $each := get (dict "h" 3600.0 "m" 60.0 "s" 1.0 "ms" 0.001) $unit }}
{{- $total = addf $total (mulf $n $each) }}
{{- end }}
{{- ceil $total | int }}
{{- end }}

{{- /* pacer.yaml: what the values say, with the addresses, the timeouts and the store. */ -}}
{{- define "pacer.config" -}}
{{- $c := deepCopy .Values.config }}
{{- $_ := set $c "listen" "0.0.0.0:8080" }}
{{- $_ := set $c "admin" (mergeOverwrite (dict) (default (dict) $c.admin) (dict "listen" "0.0.0.0:9090")) }}
{{- $_ := set $c "timeouts" (mergeOverwrite (dict) (default (dict) $c.timeouts) .Values.timeouts) }}
{{- if not $c.replicas }}{{ $_ := set $c "replicas" (int .Values.replicas) }}{{ end }}
{{- if and .Values.valkey.enabled (not $c.store) }}{{ $_ := set $c "store" (printf "redis://%s-valkey:6379/0" (include "pacer.name" .)) }}{{ end }}
{{- toYaml $c }}
{{- end }}
