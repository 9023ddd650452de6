{{/* One variable from a Secret: (dict "name" "secret" "key"). */}}
{{- define "genmesh.secretEnv" -}}
- name: {{ .name }}
  valueFrom:
    secretKeyRef:
      name: {{ .secret }}
      key: {{ .key }}
{{- end }}

{{/* The address of a store: (list root "database"). */}}
{{- define "genmesh.storeEnv" -}}
{{- $root := index . 0 -}}
{{- $store := index . 1 -}}
{{- $own := index $root.Values.stores $store -}}
{{- $secret := $own.existingSecret | default $root.Values.stores.existingSecret -}}
{{- include "genmesh.secretEnv" (dict "name" (printf "GENMESH_%s_URL" (upper $store)) "secret" $secret "key" $own.key) -}}
{{- end }}

{{/* The addresses of peers: (list root [peers]). */}}
{{- define "genmesh.peerEnv" -}}
{{- $root := index . 0 -}}
{{- $scheme := ternary "https" "http" $root.Values.tls.enabled -}}
{{- range index . 1 }}
- name: GENMESH_{{ upper . }}_URL
  value: {{ printf "%s://%s-%s:8080" $scheme (include "genmesh.fullname" $root) . }}
{{- end }}
{{- end }}

{{/* Certificates: (list root role). Only roles with methods ask for a certificate. */}}
{{- define "genmesh.tlsEnv" -}}
{{- $root := index . 0 -}}
{{- $facts := index (include "genmesh.facts" $root | fromYaml) (index . 1) | default dict -}}
- { name: GENMESH_TLS_CERT_FILE, value: /etc/genmesh/tls/tls.crt }
- { name: GENMESH_TLS_KEY_FILE, value: /etc/genmesh/tls/tls.key }
- { name: GENMESH_TLS_CA_FILE, value: /etc/genmesh/tls/ca.crt }
{{- if and $root.Values.tls.clientAuth $facts.rpc }}
- { name: GENMESH_TLS_CLIENT_AUTH, value: "1" }
{{- end }}
{{- end }}

{{/* All variables of a role's container: (list root role). */}}
{{- define "genmesh.env" -}}
{{- $root := index . 0 -}}
{{- $role := index . 1 -}}
{{- $facts := index (include "genmesh.facts" $root | fromYaml) $role -}}
{{- $values := $root.Values -}}
{{- $tokens := include "genmesh.tokensSecret" $root -}}
- { name: GENMESH_ROLE, value: {{ $role }} }
- { name: PORT, value: "8080" }
{{- if $facts.rpc }}
- { name: GRPC_PORT, value: "9090" }
{{- end }}
- { name: GENMESH_OPS_PORT, value: "9091" }
- { name: GENMESH_LOG_LEVEL, value: {{ $values.config.logLevel }} }
- { name: GENMESH_DRAIN_MS, value: {{ mul $values.shutdown.drainSeconds 1000 | quote }} }
{{ include "genmesh.secretEnv" (dict "name" "GENMESH_MESH_TOKEN" "secret" $tokens "key" "mesh-token") }}
{{- if $facts.rpc }}
{{ include "genmesh.secretEnv" (dict "name" "GENMESH_ADMIN_TOKEN" "secret" $tokens "key" "admin-token") }}
{{- end }}
{{- if and $values.catalog.stored (or $facts.catalog $facts.upstreams) }}
- name: GENMESH_SECRETS_KEY
  valueFrom:
    secretKeyRef:
      name: {{ $tokens }}
      key: secrets-key
      optional: true
{{- end }}
{{- range $store := list "database" "queue" "blobs" }}
{{- if index $facts $store }}
{{ include "genmesh.storeEnv" (list $root $store) }}
{{- end }}
{{- end }}
{{- if $facts.queue }}
- { name: GENMESH_NATS_REPLICAS, value: {{ int $values.stores.queue.replicas | quote }} }
{{- if $values.stores.queue.credentialsSecret }}
- { name: GENMESH_NATS_CREDS_FILE, value: {{ printf "/etc/genmesh/nats/%s" $values.stores.queue.credentialsKey }} }
{{- end }}
{{- end }}
{{- include "genmesh.peerEnv" (list $root $facts.peers) }}
{{- if $facts.workers }}
{{- range $kind, $count := $values.config.workers }}
- { name: GENMESH_{{ upper $kind }}_WORKERS, value: {{ int $count | quote }} }
{{- end }}
{{- end }}
{{- if $facts.database }}
- { name: GENMESH_RETENTION_DAYS, value: {{ int $values.config.retentionDays | quote }} }
{{- end }}
{{- if eq $role "gateway" }}
{{- with $values.config.publicUrl }}
- { name: GENMESH_PUBLIC_URL, value: {{ . | quote }} }
{{- end }}
{{- with $values.config.trustProxy }}
- { name: GENMESH_TRUST_PROXY, value: {{ join "," . | quote }} }
{{- end }}
{{- with $values.config.corsOrigins }}
- { name: GENMESH_CORS_ORIGINS, value: {{ join "," . | quote }} }
{{- end }}
{{- include "genmesh.socketsEnv" $root }}
{{- include "genmesh.consoleEnv" $root }}
{{- end }}
{{- if eq $role "media" }}
{{- include "genmesh.alertEnv" $root }}
{{- end }}
{{- if $facts.catalog }}
{{- $file := ternary (printf "/etc/genmesh/catalog/%s" $values.catalog.key) "" (ne (include "genmesh.hasCatalog" $root) "") }}
{{- if $values.catalog.stored }}
- { name: GENMESH_CATALOG, value: {{ printf "store:%s" $file | quote }} }
{{- else if $file }}
- { name: GENMESH_CATALOG, value: {{ $file }} }
{{- end }}
{{- end }}
{{- if $values.tls.enabled }}
{{ include "genmesh.tlsEnv" (list $root $role) }}
{{- end }}
{{- with $values.telemetry.otlpEndpoint }}
- { name: OTEL_EXPORTER_OTLP_ENDPOINT, value: {{ . | quote }} }
- { name: OTEL_SERVICE_NAME, value: genmesh-{{ $role }} }
{{- with $values.telemetry.resourceAttributes }}
- { name: OTEL_RESOURCE_ATTRIBUTES, value: {{ . | quote }} }
{{- end }}
{{- end }}
{{- end }}

{{/* Not empty where a catalog is mounted. */}}
{{- define "genmesh.hasCatalog" -}}
{{- with .Values.catalog }}{{ if or .content .existingConfigMap .existingSecret }}yes{{ end }}{{ end -}}
{{- end }}

{{/* A gateway's variables for WebSockets. */}}
{{- define "genmesh.socketsEnv" -}}
{{- with .Values.websockets }}
{{- if .enabled }}
- { name: GENMESH_WS_CONNECTIONS, value: {{ int .connections | quote }} }
- { name: GENMESH_WS_IN_FLIGHT, value: {{ int .inFlight | quote }} }
{{- else }}
- { name: GENMESH_WEBSOCKETS, value: "off" }
{{- end }}
{{- end }}
{{- end }}

{{/* A gateway's variables for the console. */}}
{{- define "genmesh.consoleEnv" -}}
{{- with .Values.console }}
{{- if not .enabled }}
- { name: GENMESH_CONSOLE, value: "off" }
{{- else }}
{{- if .operators }}
{{ include "genmesh.secretEnv" (dict "name" "GENMESH_ADMIN_TOKEN" "secret" (include "genmesh.tokensSecret" $) "key" "admin-token") }}
{{- end }}
{{- if .oidc.issuer }}
- { name: GENMESH_OIDC_ISSUER, value: {{ .oidc.issuer | quote }} }
- { name: GENMESH_OIDC_CLIENT_ID, value: {{ .oidc.clientId | quote }} }
- { name: GENMESH_OIDC_CLIENT_SECRET_FILE, value: {{ printf "/etc/genmesh/oidc/%s" .oidc.secretKey }} }
- { name: GENMESH_OIDC_ACCOUNT_CLAIM, value: {{ .oidc.accountClaim | quote }} }
- { name: GENMESH_OIDC_ROLE_CLAIM, value: {{ .oidc.roleClaim | quote }} }
{{- end }}
{{- end }}
{{- end }}
{{- end }}

{{/* The variables with which operators are told what they must act on. */}}
{{- define "genmesh.alertEnv" -}}
{{- with .Values.alerts.webhook }}
{{- if .existingSecret }}
{{ include "genmesh.secretEnv" (dict "name" "GENMESH_ALERT_WEBHOOK_URL" "secret" .existingSecret "key" .urlKey) }}
{{ include "genmesh.secretEnv" (dict "name" "GENMESH_ALERT_WEBHOOK_SECRET" "secret" .existingSecret "key" .secretKey) }}
{{- end }}
{{- end }}
{{- with .Values.alerts.smtp }}
{{- if .existingSecret }}
{{ include "genmesh.secretEnv" (dict "name" "GENMESH_ALERT_SMTP_URL" "secret" .existingSecret "key" .key) }}
- { name: GENMESH_ALERT_MAIL_FROM, value: {{ .from | quote }} }
- { name: GENMESH_ALERT_MAIL_TO, value: {{ join "," .to | quote }} }
{{- end }}
{{- end }}
{{- end }}

{{/* Not empty where people sign in at a provider through the role's pods: (list root role). */}}
{{- define "genmesh.hasOidc" -}}
{{- $console := (index . 0).Values.console -}}
{{- if and (eq (index . 1) "gateway") $console.enabled $console.oidc.issuer }}yes{{ end -}}
{{- end }}
