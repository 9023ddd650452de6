{{/* The roles, in the order in which they are needed. */}}
{{- define "genmesh.roles" -}}
["catalog", "auth", "billing", "text", "media", "media-worker", "gateway"]
{{- end }}

{{/* The needs of each role: peers that it calls, stores that it opens, whether others call it. */}}
{{- define "genmesh.facts" -}}
gateway: { peers: [auth, billing, catalog, text, media], blobs: true, egress: [blobs] }
auth: { peers: [], database: true, rpc: true, egress: [database] }
billing: { peers: [text, media], database: true, rpc: true, egress: [database] }
{{- if .Values.catalog.stored }}
catalog: { peers: [], catalog: true, database: true, rpc: true, egress: [database] }
{{- else }}
catalog: { peers: [], catalog: true, rpc: true, egress: [] }
{{- end }}
text: { peers: [billing, catalog, media], database: true, upstreams: true, rpc: true, egress: [database, upstreams] }
media:
  peers: [billing, catalog]
  database: true
  queue: true
  blobs: true
  upstreams: true
  rpc: true
  egress: [database, queue, blobs, upstreams]
media-worker:
  peers: [billing, catalog]
  database: true
  queue: true
  blobs: true
  upstreams: true
  workers: true
  egress: [database, queue, blobs, upstreams]
{{- end }}

{{- define "genmesh.fullname" -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 40 | trimSuffix "-" -}}
{{- else if contains .Chart.Name .Release.Name -}}
{{- .Release.Name | trunc 40 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name .Chart.Name | trunc 40 | trimSuffix "-" -}}
{{- end -}}
{{- end }}

{{- define "genmesh.serviceAccountName" -}}
{{- if .Values.serviceAccount.create -}}
{{- .Values.serviceAccount.name | default (include "genmesh.fullname" .) -}}
{{- else -}}
{{- .Values.serviceAccount.name | default "default" -}}
{{- end -}}
{{- end }}

{{- define "genmesh.tokensSecret" -}}
{{- .Values.tokens.existingSecret | default (printf "%s-tokens" (include "genmesh.fullname" .)) -}}
{{- end }}

{{- define "genmesh.image" -}}
{{- with .Values.image -}}
{{- if .digest -}}
{{ .repository }}@{{ .digest }}
{{- else -}}
{{ .repository }}:{{ .tag | default $.Chart.AppVersion }}
{{- end -}}
{{- end -}}
{{- end }}

{{/* Labels that never change: (list root component). */}}
{{- define "genmesh.selector" -}}
{{- $root := index . 0 -}}
app.kubernetes.io/name: {{ $root.Chart.Name }}
app.kubernetes.io/instance: {{ $root.Release.Name }}
app.kubernetes.io/component: {{ index . 1 }}
{{- end }}

{{/* Labels of a pod. None of them changes with the chart alone, because that would replace every pod. */}}
{{- define "genmesh.podLabels" -}}
{{ include "genmesh.selector" . }}
app.kubernetes.io/part-of: genmesh
{{- with (index . 0).Values.commonLabels }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{/* All labels of an object: (list root component). */}}
{{- define "genmesh.labels" -}}
{{- $root := index . 0 -}}
{{ include "genmesh.selector" . }}
app.kubernetes.io/part-of: genmesh
app.kubernetes.io/version: {{ $root.Values.image.tag | default $root.Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ $root.Release.Service }}
helm.sh/chart: {{ printf "%s-%s" $root.Chart.Name $root.Chart.Version | replace "+" "_" | trunc 63 }}
{{- with $root.Values.commonLabels }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{/* A role's settings over the defaults, as YAML: (list root role). */}}
{{- define "genmesh.settings" -}}
{{- $root := index . 0 -}}
{{- $role := index . 1 -}}
{{- $own := index $root.Values.roles $role | default dict -}}
{{- $all := deepCopy $root.Values.defaults -}}
{{- range $key, $value := $own -}}
{{- if and (kindIs "map" $value) (kindIs "map" (index $all $key)) -}}
{{- $_ := set $all $key (mergeOverwrite (index $all $key) $value) -}}
{{- else -}}
{{- $_ := set $all $key $value -}}
{{- end -}}
{{- end -}}
{{- toYaml $all -}}
{{- end }}

{{- define "genmesh.tlsSecret" -}}
{{- $root := index . 0 -}}
{{- $root.Values.tls.existingSecret | default (printf "%s-%s-tls" (include "genmesh.fullname" $root) (index . 1)) -}}
{{- end }}
