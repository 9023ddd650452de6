{{- define "backing.selector" -}}
app.kubernetes.io/name: {{ (index . 0).Chart.Name }}
app.kubernetes.io/instance: {{ (index . 0).Release.Name }}
app.kubernetes.io/component: {{ index . 1 }}
{{- end }}

{{- define "backing.labels" -}}
{{ include "backing.selector" . }}
app.kubernetes.io/managed-by: {{ (index . 0).Release.Service }}
helm.sh/chart: {{ (index . 0).Chart.Name }}-{{ (index . 0).Chart.Version }}
{{- end }}

{{/* Host name of a server: (list root name). */}}
{{- define "backing.host" -}}
{{ (index . 0).Release.Name }}-{{ index . 1 }}
{{- end }}

{{/* A server: (dict "root" "name" "ports" {name: number} "mount" "container" YAML). */}}
{{- define "backing.server" -}}
{{- $root := .root -}}
{{- $own := index $root.Values .name -}}
{{- $id := list $root .name -}}
{{- $host := include "backing.host" $id -}}
apiVersion: v1
kind: Service
metadata:
  name: {{ $host }}
  namespace: {{ $root.Release.Namespace }}
  labels:
    {{- include "backing.labels" $id | nindent 4 }}
spec:
  clusterIP: None
  # A replica set with one member must elect it before it is ready.
  publishNotReadyAddresses: true
  selector:
    {{- include "backing.selector" $id | nindent 4 }}
  ports:
    {{- range $name, $port := .ports }}
    - { name: {{ $name }}, port: {{ $port }} }
    {{- end }}
---
apiVersion: apps/v1
kind: StatefulSet
metadata:
  name: {{ $host }}
  namespace: {{ $root.Release.Namespace }}
  labels:
    {{- include "backing.labels" $id | nindent 4 }}
spec:
  serviceName: {{ $host }}
  selector:
    matchLabels:
      {{- include "backing.selector" $id | nindent 6 }}
  template:
    metadata:
      labels:
        {{- include "backing.selector" $id | nindent 8 }}
    spec:
      automountServiceAccountToken: false
      enableServiceLinks: false
      securityContext:
        runAsNonRoot: true
        runAsUser: {{ int $own.user }}
        runAsGroup: {{ int $own.user }}
        fsGroup: {{ int $own.user }}
        seccompProfile: { type: RuntimeDefault }
      {{- with $root.Values.imagePullSecrets }}
      imagePullSecrets:
        {{- toYaml . | nindent 8 }}
      {{- end }}
      containers:
        - name: {{ .name }}
          image: {{ $own.image | quote }}
          securityContext:
            allowPrivilegeEscalation: false
            capabilities: { drop: [ALL] }
          {{- .container | nindent 10 }}
          resources:
            {{- toYaml $own.resources | nindent 12 }}
          volumeMounts:
            - { name: data, mountPath: {{ .mount }} }
      {{- if not $root.Values.persistence }}
      volumes:
        - { name: data, emptyDir: {} }
      {{- end }}
  {{- if $root.Values.persistence }}
  volumeClaimTemplates:
    - metadata: { name: data }
      spec:
        accessModes: [ReadWriteOnce]
        {{- with $root.Values.storageClassName }}
        storageClassName: {{ . }}
        {{- end }}
        resources: { requests: { storage: {{ $own.storage }} } }
  {{- end }}
{{- if $root.Values.networkPolicy.enabled }}
---
apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata:
  name: {{ $host }}
  namespace: {{ $root.Release.Namespace }}
  labels:
    {{- include "backing.labels" $id | nindent 4 }}
spec:
  podSelector:
    matchLabels:
      {{- include "backing.selector" $id | nindent 6 }}
  ingress:
    - from:
        - podSelector: { matchLabels: { app.kubernetes.io/part-of: genmesh } }
        - podSelector: { matchLabels: { app.kubernetes.io/name: {{ $root.Chart.Name }} } }
{{- end }}
{{- end }}
