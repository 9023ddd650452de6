{{/* All objects of a role: (list root role). */}}
{{- define "genmesh.role" -}}
{{ include "genmesh.check" (index . 0) }}
{{- include "genmesh.deployment" . }}
---
{{ include "genmesh.services" . }}
{{- include "genmesh.scaling" . }}
{{- end }}

{{- define "genmesh.deployment" -}}
{{- $root := index . 0 -}}
{{- $role := index . 1 -}}
{{- $own := include "genmesh.settings" . | fromYaml -}}
{{- $facts := index (include "genmesh.facts" $root | fromYaml) $role -}}
{{- $shutdown := $root.Values.shutdown -}}
apiVersion: apps/v1
kind: Deployment
metadata:
  name: {{ include "genmesh.fullname" $root }}-{{ $role }}
  namespace: {{ $root.Release.Namespace }}
  labels:
    {{- include "genmesh.labels" . | nindent 4 }}
spec:
  {{- if not (or $own.autoscaling.enabled (and (eq $role "media-worker") $root.Values.keda.enabled)) }}
  replicas: {{ int $own.replicas }}
  {{- end }}
  revisionHistoryLimit: {{ int $own.revisionHistoryLimit }}
  selector:
    matchLabels:
      {{- include "genmesh.selector" . | nindent 6 }}
  strategy:
    rollingUpdate:
      # A new pod is ready before an old one is ended.
      maxSurge: 1
      maxUnavailable: 0
  template:
    metadata:
      labels:
        {{- include "genmesh.podLabels" . | nindent 8 }}
        {{- with $own.podLabels }}
        {{- toYaml . | nindent 8 }}
        {{- end }}
      {{- with include "genmesh.podAnnotations" (list $root $role $own) | fromYaml }}
      annotations:
        {{- toYaml . | nindent 8 }}
      {{- end }}
    spec:
      serviceAccountName: {{ include "genmesh.serviceAccountName" $root }}
      {{- include "genmesh.podBasics" $root | nindent 6 }}
      terminationGracePeriodSeconds: {{ add $shutdown.preStopSeconds $shutdown.drainSeconds 15 }}
      {{- include "genmesh.placement" (list $root $role $own) | nindent 6 }}
      {{- range $key := list "hostAliases" "dnsConfig" }}
      {{- with index $own $key }}
      {{- toYaml (dict $key .) | nindent 6 }}
      {{- end }}
      {{- end }}
      {{- with $own.initContainers }}
      initContainers:
        {{- toYaml . | nindent 8 }}
      {{- end }}
      containers:
        - name: {{ $role }}
          {{- include "genmesh.containerBasics" $root | nindent 10 }}
          env:
            {{- include "genmesh.env" . | nindent 12 }}
            {{- with $own.extraEnv }}
            {{- toYaml . | nindent 12 }}
            {{- end }}
          {{- $sources := $own.extraEnvFrom | default list }}
          {{- if $facts.upstreams }}
          {{- range $root.Values.upstreamSecrets }}
          {{- $sources = append $sources (dict "secretRef" (dict "name" .)) }}
          {{- end }}
          {{- end }}
          {{- with $sources }}
          envFrom:
            {{- toYaml . | nindent 12 }}
          {{- end }}
          ports:
            - { name: http, containerPort: 8080 }
            {{- if $facts.rpc }}
            - { name: grpc, containerPort: 9090 }
            {{- end }}
            - { name: ops, containerPort: 9091 }
          {{- include "genmesh.probes" $root | nindent 10 }}
          {{- $lifecycle := $own.lifecycle | default dict }}
          {{- if and (gt (int $shutdown.preStopSeconds) 0) (not $lifecycle.preStop) }}
          {{- $lifecycle = merge (dict "preStop" (dict "sleep" (dict "seconds" (int $shutdown.preStopSeconds)))) $lifecycle }}
          {{- end }}
          {{- with $lifecycle }}
          lifecycle:
            {{- toYaml . | nindent 12 }}
          {{- end }}
          {{- with $own.resources }}
          resources:
            {{- toYaml . | nindent 12 }}
          {{- end }}
          volumeMounts:
            {{- include "genmesh.mounts" . | nindent 12 }}
            {{- if $own.projectedTokens }}
            - { name: tokens, mountPath: /var/run/secrets/genmesh/tokens, readOnly: true }
            {{- end }}
            {{- with $own.extraVolumeMounts }}
            {{- toYaml . | nindent 12 }}
            {{- end }}
        {{- with $own.extraContainers }}
        {{- toYaml . | nindent 8 }}
        {{- end }}
      volumes:
        {{- include "genmesh.volumes" (list $root $role $own) | nindent 8 }}
        {{- with $own.projectedTokens }}
        - name: tokens
          projected:
            sources:
              {{- range . }}
              - serviceAccountToken:
                  {{- toYaml . | nindent 18 }}
              {{- end }}
        {{- end }}
        {{- with $own.extraVolumes }}
        {{- toYaml . | nindent 8 }}
        {{- end }}
{{- end }}

{{/* Annotations of a role's pods, with the checksum of a catalog that the chart makes: (list root role settings). */}}
{{- define "genmesh.podAnnotations" -}}
{{- $root := index . 0 -}}
{{- $own := index . 2 -}}
{{- $all := $own.podAnnotations | default dict -}}
{{- if and (eq (index . 1) "catalog") $own.checksums $root.Values.catalog.content -}}
{{- $all = merge (dict "checksum/catalog" (sha256sum $root.Values.catalog.content)) $all -}}
{{- end -}}
{{- toYaml $all -}}
{{- end }}

{{/* Liveness shows that the process works, readiness that it will serve requests. */}}
{{- define "genmesh.probes" -}}
startupProbe:
  httpGet: { path: /healthz, port: ops }
  periodSeconds: 1
  timeoutSeconds: 5
  failureThreshold: 120
readinessProbe:
  httpGet: { path: /readyz, port: ops }
  periodSeconds: 2
  timeoutSeconds: 2
  failureThreshold: 2
livenessProbe:
  httpGet: { path: /healthz, port: ops }
  periodSeconds: 10
  timeoutSeconds: 5
  failureThreshold: 6
{{- end }}

{{- define "genmesh.placement" -}}
{{- $root := index . 0 -}}
{{- $own := index . 2 -}}
topologySpreadConstraints:
{{- if $own.topologySpreadConstraints }}
  {{- toYaml $own.topologySpreadConstraints | nindent 2 }}
{{- else }}
{{- range $own.spreadOver }}
  - topologyKey: {{ . }}
    maxSkew: 1
    whenUnsatisfiable: ScheduleAnyway
    labelSelector:
      matchLabels:
        {{- include "genmesh.selector" (list $root (index $ 1)) | nindent 8 }}
{{- end }}
{{- end }}
{{- range $key := list "nodeSelector" "affinity" "tolerations" "priorityClassName" }}
{{- with index $own $key }}
{{ toYaml (dict $key .) }}
{{- end }}
{{- end }}
{{- end }}
