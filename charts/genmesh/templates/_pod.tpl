{{/* The fields of every pod of the chart: (list root). */}}
{{- define "genmesh.podBasics" -}}
automountServiceAccountToken: false
enableServiceLinks: false
securityContext:
  runAsNonRoot: true
  runAsUser: 65532
  runAsGroup: 65532
  fsGroup: 65532
  seccompProfile:
    type: RuntimeDefault
{{- with .Values.imagePullSecrets }}
imagePullSecrets:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}

{{- define "genmesh.containerBasics" -}}
image: {{ include "genmesh.image" . | quote }}
imagePullPolicy: {{ .Values.image.pullPolicy }}
securityContext:
  allowPrivilegeEscalation: false
  readOnlyRootFilesystem: true
  capabilities:
    drop: [ALL]
{{- end }}

{{/* A role's volumes and their mounts: (list root role settings). */}}
{{- define "genmesh.volumes" -}}
{{- $root := index . 0 -}}
{{- $role := index . 1 -}}
{{- $facts := index (include "genmesh.facts" $root | fromYaml) $role -}}
- name: scratch
  emptyDir:
    sizeLimit: {{ (index . 2).scratchSize }}
- name: tmp
  emptyDir:
    sizeLimit: 256Mi
{{- if and $facts.catalog (include "genmesh.hasCatalog" $root) }}
- name: catalog
{{- if $root.Values.catalog.existingSecret }}
  secret:
    secretName: {{ $root.Values.catalog.existingSecret }}
{{- else }}
  configMap:
    name: {{ $root.Values.catalog.existingConfigMap | default (printf "%s-catalog" (include "genmesh.fullname" $root)) }}
{{- end }}
{{- end }}
{{- if and $facts.queue $root.Values.stores.queue.credentialsSecret }}
- name: nats
  secret:
    secretName: {{ $root.Values.stores.queue.credentialsSecret }}
    defaultMode: 0440
{{- end }}
{{- if include "genmesh.hasOidc" (list $root $role) }}
- name: oidc
  secret:
    secretName: {{ $root.Values.console.oidc.existingSecret }}
    defaultMode: 0440
{{- end }}
{{- if $root.Values.tls.enabled }}
{{ include "genmesh.tlsVolume" (list $root $role) }}
{{- end }}
{{- end }}

{{- define "genmesh.tlsVolume" -}}
- name: tls
  secret:
    secretName: {{ include "genmesh.tlsSecret" . }}
    defaultMode: 0440
{{- end }}

{{- define "genmesh.mounts" -}}
{{- $root := index . 0 -}}
{{- $facts := index (include "genmesh.facts" $root | fromYaml) (index . 1) -}}
- { name: scratch, mountPath: /var/lib/genmesh }
- { name: tmp, mountPath: /tmp }
{{- if and $facts.catalog (include "genmesh.hasCatalog" $root) }}
- { name: catalog, mountPath: /etc/genmesh/catalog, readOnly: true }
{{- end }}
{{- if and $facts.queue $root.Values.stores.queue.credentialsSecret }}
- { name: nats, mountPath: /etc/genmesh/nats, readOnly: true }
{{- end }}
{{- if include "genmesh.hasOidc" (list $root (index . 1)) }}
- { name: oidc, mountPath: /etc/genmesh/oidc, readOnly: true }
{{- end }}
{{- if $root.Values.tls.enabled }}
- { name: tls, mountPath: /etc/genmesh/tls, readOnly: true }
{{- end }}
{{- end }}
