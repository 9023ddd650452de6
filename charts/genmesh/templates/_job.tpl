{{/*
A Job of the release that runs a program of the image: (dict "root" "component" "hooks" "weight" "command" [..] "env" YAML),
and "tls" true where it calls the roles, "serviceAccount" where it calls the API server. The pod of a failed Job is kept.
*/}}
{{- define "genmesh.job" -}}
{{- $root := .root -}}
apiVersion: batch/v1
kind: Job
metadata:
  name: {{ include "genmesh.fullname" $root }}-{{ .name }}
  namespace: {{ $root.Release.Namespace }}
  labels:
    {{- include "genmesh.labels" (list $root .component) | nindent 4 }}
  annotations:
    helm.sh/hook: {{ .hooks }}
    helm.sh/hook-weight: {{ .weight | quote }}
    helm.sh/hook-delete-policy: before-hook-creation,hook-succeeded
spec:
  # Its servers may start at the same time.
  backoffLimit: 8
  activeDeadlineSeconds: 600
  template:
    metadata:
      {{- include "genmesh.sidePod" (list $root .component) | nindent 6 }}
    spec:
      {{- include "genmesh.jobPod" . | nindent 6 }}
{{- end }}

{{- define "genmesh.jobPod" -}}
{{- $root := .root -}}
{{- $tls := and .tls $root.Values.tls.enabled -}}
restartPolicy: {{ .restartPolicy | default "OnFailure" }}
{{- $basics := include "genmesh.podBasics" $root | fromYaml }}
{{- if .serviceAccount }}
{{- $_ := set $basics "automountServiceAccountToken" true }}
{{- $_ := set $basics "serviceAccountName" .serviceAccount }}
{{- end }}
{{ toYaml $basics }}
{{- range $key := list "nodeSelector" "tolerations" }}
{{- with index $root.Values.defaults $key }}
{{ toYaml (dict $key .) }}
{{- end }}
{{- end }}
containers:
  - name: {{ .name }}
    {{- include "genmesh.containerBasics" $root | nindent 4 }}
    command: {{ concat (list "node" "--disable-warning=ExperimentalWarning") .command | toJson }}
    env:
      {{- .env | nindent 6 }}
      {{- if $tls }}
      {{- include "genmesh.tlsEnv" (list $root "jobs") | nindent 6 }}
      {{- end }}
    resources:
      requests: { cpu: 50m, memory: 128Mi }
      limits: { memory: 384Mi }
    volumeMounts:
      - { name: tmp, mountPath: /tmp }
      - { name: scratch, mountPath: /var/lib/genmesh }
      {{- if $tls }}
      - { name: tls, mountPath: /etc/genmesh/tls, readOnly: true }
      {{- end }}
volumes:
  - { name: tmp, emptyDir: { sizeLimit: 64Mi } }
  - { name: scratch, emptyDir: { sizeLimit: 64Mi } }
  {{- if $tls }}
  {{- include "genmesh.tlsVolume" (list $root "jobs") | nindent 2 }}
  {{- end }}
{{- end }}

{{/* The variables of the operator command in a mesh. */}}
{{- define "genmesh.operatorEnv" -}}
{{ include "genmesh.secretEnv" (dict "name" "GENMESH_ADMIN_TOKEN" "secret" (include "genmesh.tokensSecret" .) "key" "admin-token") }}
{{- include "genmesh.peerEnv" (list . (list "auth" "billing" "catalog" "text" "media")) }}
{{- if .Values.tls.enabled }}
- { name: NODE_EXTRA_CA_CERTS, value: /etc/genmesh/tls/ca.crt }
{{- end }}
{{- end }}
