{{/* Fails with a sentence where values contradict each other, or a needed one is missing. */}}
{{- define "genmesh.check" -}}
{{- include "genmesh.checkStores" . -}}
{{- include "genmesh.checkWays" . -}}
{{- range include "genmesh.roles" . | fromJsonArray -}}
{{- include "genmesh.checkRole" (list $ . (include "genmesh.settings" (list $ .) | fromYaml)) -}}
{{- end -}}
{{- end }}

{{- define "genmesh.checkStores" -}}
{{- range $store := list "database" "queue" "blobs" -}}
{{- if not (or $.Values.stores.existingSecret (index $.Values.stores $store).existingSecret) -}}
{{- fail (printf "stores.existingSecret (or stores.%s.existingSecret) must name the Secret that holds the address of the %s; charts/genmesh-backing makes one named genmesh-backing." $store $store) -}}
{{- end -}}
{{- end -}}
{{- with .Values.catalog -}}
{{- if gt (len (compact (list .content .existingConfigMap .existingSecret))) 1 -}}
{{- fail "catalog.content, catalog.existingConfigMap and catalog.existingSecret are three ways to give one file: set at most one." -}}
{{- end -}}
{{- end -}}
{{- end }}

{{- define "genmesh.checkWays" -}}
{{- with .Values.tls -}}
{{- if .enabled -}}
{{- if and .existingSecret .certManager.enabled -}}
{{- fail "tls.existingSecret and tls.certManager.enabled are two sources of the same certificates: set one." -}}
{{- end -}}
{{- if not (or .existingSecret .certManager.enabled) -}}
{{- fail "tls.enabled needs certificates: set tls.existingSecret, or tls.certManager.enabled." -}}
{{- end -}}
{{- if and .certManager.enabled (not .certManager.issuerRef.name) -}}
{{- fail "tls.certManager.issuerRef.name must name the issuer that signs the certificates." -}}
{{- end -}}
{{- else if or .existingSecret .certManager.enabled -}}
{{- fail "certificates are named but tls.enabled is false: nothing would use them." -}}
{{- end -}}
{{- end -}}
{{- if and .Values.ingress.enabled (not .Values.ingress.hosts) -}}
{{- fail "ingress.enabled needs ingress.hosts: without a host the API would answer for every name of your cluster." -}}
{{- end -}}
{{- with .Values.console -}}
{{- if and .oidc.issuer (not (and .oidc.clientId .oidc.existingSecret)) -}}
{{- fail "console.oidc.issuer needs console.oidc.clientId and console.oidc.existingSecret: the console signs in at the provider as its client." -}}
{{- end -}}
{{- if and .hosts (not .enabled) -}}
{{- fail "console.hosts are named but console.enabled is false: nothing would answer there." -}}
{{- end -}}
{{- end -}}
{{- with .Values.alerts.smtp -}}
{{- if and .existingSecret (not (and .from .to)) -}}
{{- fail "alerts.smtp.existingSecret needs alerts.smtp.from and alerts.smtp.to: the addresses of the mails." -}}
{{- end -}}
{{- if and (or .from .to) (not .existingSecret) -}}
{{- fail "alerts.smtp has addresses but no existingSecret: the Secret that holds the mail server's URL." -}}
{{- end -}}
{{- end -}}
{{- if and .Values.httpRoute.enabled (not .Values.httpRoute.parentRefs) -}}
{{- fail "httpRoute.enabled needs httpRoute.parentRefs: the Gateway that it belongs to." -}}
{{- end -}}
{{- with .Values.grpcRoute -}}
{{- if and .enabled (not .parentRefs) -}}
{{- fail "grpcRoute.enabled needs grpcRoute.parentRefs: the Gateway that it belongs to." -}}
{{- end -}}
{{- if and .enabled (not $.Values.grpc.enabled) -}}
{{- fail "grpcRoute.enabled needs grpc.enabled: the Services that it leads to." -}}
{{- end -}}
{{- end -}}
{{- with .Values.backendTlsPolicy -}}
{{- if and .enabled (not (and $.Values.tls.enabled .caCertificateRefs)) -}}
{{- fail "backendTlsPolicy.enabled needs tls.enabled, and backendTlsPolicy.caCertificateRefs: the ConfigMap with the authority of the gateway's certificate." -}}
{{- end -}}
{{- end -}}
{{- if and .Values.externalSecrets.secrets (not .Values.externalSecrets.secretStoreRef.name) -}}
{{- fail "externalSecrets.secrets needs externalSecrets.secretStoreRef.name: the store that they come from." -}}
{{- end -}}
{{- if and .Values.monitoring.serviceMonitor.enabled .Values.networkPolicy.enabled (not .Values.networkPolicy.metricsFrom) -}}
{{- fail "monitoring.serviceMonitor.enabled beside networkPolicy.enabled needs networkPolicy.metricsFrom: the pods of your Prometheus, which could scrape nothing otherwise." -}}
{{- end -}}
{{- if and .Values.keda.enabled (not .Values.keda.natsMonitoring) -}}
{{- fail "keda.enabled needs keda.natsMonitoring: HOST:PORT where NATS tells how many jobs wait." -}}
{{- end -}}
{{- if gt (int .Values.keda.minReplicas) (int .Values.keda.maxReplicas) -}}
{{- fail "keda.minReplicas is above keda.maxReplicas." -}}
{{- end -}}
{{- if not (has (int .Values.stores.queue.replicas) (list 1 3 5)) -}}
{{- fail "stores.queue.replicas must be 1, 3 or 5: an even number of copies stands no more failures than the odd one below it." -}}
{{- end -}}
{{- end }}

{{/* (list root role settings) */}}
{{- define "genmesh.checkRole" -}}
{{- $root := index . 0 -}}
{{- $role := index . 1 -}}
{{- $own := index . 2 -}}
{{- $scale := $own.autoscaling -}}
{{- $scaledByKeda := and (eq $role "media-worker") $root.Values.keda.enabled -}}
{{- if and $scale.enabled $scaledByKeda -}}
{{- fail "keda.enabled and autoscaling of media-worker would both set its replicas: switch one off (roles.media-worker.autoscaling.enabled: false)." -}}
{{- end -}}
{{- if $scale.enabled -}}
{{- if gt (int $scale.minReplicas) (int $scale.maxReplicas) -}}
{{- fail (printf "autoscaling of %s: minReplicas is above maxReplicas." $role) -}}
{{- end -}}
{{- if not (dig "requests" "cpu" "" ($own.resources | default dict)) -}}
{{- fail (printf "autoscaling of %s goes by CPU and needs resources.requests.cpu." $role) -}}
{{- end -}}
{{- end -}}
{{- $budget := $own.podDisruptionBudget -}}
{{- if $budget.enabled -}}
{{- $hasMin := not (kindIs "invalid" $budget.minAvailable) -}}
{{- $hasMax := not (kindIs "invalid" $budget.maxUnavailable) -}}
{{- if eq $hasMin $hasMax -}}
{{- fail (printf "podDisruptionBudget of %s takes one of minAvailable and maxUnavailable (set the other to null)." $role) -}}
{{- end -}}
{{- $least := int $own.replicas -}}
{{- if $scale.enabled -}}{{- $least = int $scale.minReplicas -}}{{- end -}}
{{- if $scaledByKeda -}}{{- $least = int $root.Values.keda.minReplicas -}}{{- end -}}
{{- if and $hasMin (not (kindIs "string" $budget.minAvailable)) (ge (int $budget.minAvailable) $least) (gt $least 0) -}}
{{- fail (printf "podDisruptionBudget of %s: minAvailable %d of %d replicas would let no node be drained." $role (int $budget.minAvailable) $least) -}}
{{- end -}}
{{- end -}}
{{- end }}
