{{/* The gRPC service of a role: genmesh.text.v1.TextService. */}}
{{- define "genmesh.grpcService" -}}
genmesh.{{ . }}.v1.{{ title . }}Service
{{- end }}

{{/*
A headless Service, by which peers find every pod (they balance their calls themselves) and Prometheus scrapes. gRPC callers and
public callers have Services with an address of their own.
*/}}
{{- define "genmesh.services" -}}
{{- $root := index . 0 -}}
{{- $role := index . 1 -}}
{{- $facts := index (include "genmesh.facts" $root | fromYaml) $role -}}
apiVersion: v1
kind: Service
metadata:
  name: {{ include "genmesh.fullname" $root }}-{{ $role }}{{ if eq $role "gateway" }}-pods{{ end }}
  namespace: {{ $root.Release.Namespace }}
  labels:
    {{- include "genmesh.labels" . | nindent 4 }}
    genmesh.io/scrape: "true"
spec:
  clusterIP: None
  selector:
    {{- include "genmesh.selector" . | nindent 4 }}
  ports:
    - { name: http, port: 8080, targetPort: http }
    - { name: ops, port: 9091, targetPort: ops }
{{- if and $facts.rpc $root.Values.grpc.enabled }}
---
apiVersion: v1
kind: Service
metadata:
  name: {{ include "genmesh.fullname" $root }}-{{ $role }}-grpc
  namespace: {{ $root.Release.Namespace }}
  labels:
    {{- include "genmesh.labels" . | nindent 4 }}
spec:
  selector:
    {{- include "genmesh.selector" . | nindent 4 }}
  ports:
    - { name: grpc, port: 9090, targetPort: grpc, appProtocol: {{ ternary "grpc" "kubernetes.io/h2c" $root.Values.tls.enabled }} }
{{- end }}
{{- if eq $role "gateway" }}
---
apiVersion: v1
kind: Service
metadata:
  name: {{ include "genmesh.fullname" $root }}-gateway
  namespace: {{ $root.Release.Namespace }}
  labels:
    {{- include "genmesh.labels" . | nindent 4 }}
  {{- with $root.Values.service.annotations }}
  annotations:
    {{- toYaml . | nindent 4 }}
  {{- end }}
spec:
  type: {{ $root.Values.service.type }}
  selector:
    {{- include "genmesh.selector" . | nindent 4 }}
  ports:
    - { name: http, port: {{ int $root.Values.service.port }}, targetPort: http{{ with $root.Values.service.appProtocol | default (ternary "https" "" $root.Values.tls.enabled) }}, appProtocol: {{ . }}{{ end }} }
{{- end }}
{{- end }}
