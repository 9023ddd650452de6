{{/* Disruption budget and autoscaler of a role: (list root role). */}}
{{- define "genmesh.scaling" -}}
{{- $root := index . 0 -}}
{{- $role := index . 1 -}}
{{- $own := include "genmesh.settings" . | fromYaml -}}
{{- $name := printf "%s-%s" (include "genmesh.fullname" $root) $role -}}
{{- with $own.podDisruptionBudget }}
{{- if .enabled }}
---
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata:
  name: {{ $name }}
  namespace: {{ $root.Release.Namespace }}
  labels:
    {{- include "genmesh.labels" $ | nindent 4 }}
spec:
  {{- if not (kindIs "invalid" .minAvailable) }}
  minAvailable: {{ .minAvailable }}
  {{- else }}
  maxUnavailable: {{ .maxUnavailable }}
  {{- end }}
  unhealthyPodEvictionPolicy: AlwaysAllow
  selector:
    matchLabels:
      {{- include "genmesh.selector" $ | nindent 6 }}
{{- end }}
{{- end }}
{{- with $own.autoscaling }}
{{- if .enabled }}
---
apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata:
  name: {{ $name }}
  namespace: {{ $root.Release.Namespace }}
  labels:
    {{- include "genmesh.labels" $ | nindent 4 }}
spec:
  scaleTargetRef: { apiVersion: apps/v1, kind: Deployment, name: {{ $name }} }
  minReplicas: {{ int .minReplicas }}
  maxReplicas: {{ int .maxReplicas }}
  metrics:
    - type: Resource
      resource:
        name: cpu
        target: { type: Utilization, averageUtilization: {{ int .targetCpuPercent }} }
  behavior:
    # One pod at a time, because an ending pod finishes its open streams.
    scaleDown:
      stabilizationWindowSeconds: 300
      policies: [{ type: Pods, value: 1, periodSeconds: 60 }]
{{- end }}
{{- end }}
{{- end }}
