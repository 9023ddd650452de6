#!/usr/bin/env bash
# Installs the charts on the cluster of KUBECONFIG, and does an operator's work under load: helm test, scaling, lost pods, an
# upgrade, a rollback, an audit, removal. Exits with 1 where anything failed.
#
#   test/cluster/run.sh [--keep] [--loaded]      keep: the namespace and the backing; loaded: the images are in the nodes already
#
# Needs helm, kubectl, docker and Node on the path. LOAD_IMAGES is a command that loads archives of images into the nodes
# (default: `kind load image-archive`). With BACKING_CACHE stand-ins of the backing's images are made (stand-ins.sh). GATEWAY_URL
# is the address of the gateway's Service for this machine (default: its cluster address).
set -euo pipefail
cd "$(dirname "$0")/../.."
namespace=${NAMESPACE:-genmesh-test}
load=${LOAD_IMAGES:-kind load image-archive}
work=$(mktemp -d)
# Cached answers of another cluster at this address would be wrong.
export KUBECACHEDIR=$work/kube
failed=0
started=$SECONDS

say() { printf '%4d s  %s\n' $((SECONDS - started)) "$*"; }
# A failure is counted, its last lines are shown, and the run goes on.
step() { # name, command…
  local name=$1 at=$SECONDS; shift
  if "$@" >"$work/step.log" 2>&1; then
    say "ok      $name ($((SECONDS - at)) s)"
  else
    failed=$((failed + 1))
    say "FAILED  $name"
    tail -30 "$work/step.log"
  fi
}
# A failure of this step ends the run.
must() {
  local before=$failed
  step "$@"
  [ "$failed" -eq "$before" ] || exit 1
}
k() { kubectl --namespace "$namespace" "$@"; }
# Resident memory of each pod, by its own metrics.
memory() {
  local pod role
  echo "$1, MiB by pod:"
  k get pods -l app.kubernetes.io/instance=genmesh,app.kubernetes.io/component --field-selector status.phase=Running \
    -o 'custom-columns=POD:.metadata.name,ROLE:.metadata.labels.app\.kubernetes\.io/component' --no-headers |
    while read -r pod role; do
      k get --raw "/api/v1/namespaces/$namespace/pods/$pod:9091/proxy/metrics" 2>/dev/null |
        awk -v role="$role" '$1 == "process_resident_memory_bytes" { printf "%s %d\n", role, $2 / 1048576 }' || true
    done | sort | awk '{ all[$1] = all[$1] " " $2 } END { for (role in all) print "  " role ":" all[role] }' | sort
}
# Each pod's log into a file, to find the reasons of failures under load. Most pods are gone by then.
follow_logs() {
  local pod _
  mkdir "$work/logs"
  k get pods --watch -l app.kubernetes.io/instance=genmesh -o name |
    while read -r pod; do
      [ -e "$work/logs/${pod#pod/}" ] && continue
      : >"$work/logs/${pod#pod/}"
      # Repeated until the pod has started.
      (for _ in {1..90}; do k logs --follow "$pod" >>"$work/logs/${pod#pod/}" 2>/dev/null && break; sleep 1; done) &
    done
}
# Failed requests that were no fault of their callers, and the services' warnings.
show_logs() {
  echo "from the pods' logs, 5xx and warnings:"
  grep -hE '"status":5|"service unavailable"|"level":[456]0' "$work"/logs/* /dev/null |
    grep -v '"route":"/readyz"' | sed -E 's/"level":30,//' | cut -c1-400 >"$work/said" || true
  sort "$work/said" | sed -n 1,150p
}
finish() {
  set +e
  if [ -n "${traffic:-}" ]; then kill "$traffic" 2>/dev/null; fi
  if [ -n "${following:-}" ]; then kill -- "-$following" 2>/dev/null; fi
  if [ "$failed" -gt 0 ]; then k get pods; k get events --sort-by=.lastTimestamp | tail -20; fi
  if [ "$keep" = no ]; then
    helm uninstall genmesh --namespace "$namespace" --wait >/dev/null 2>&1
    helm uninstall backing --namespace "$namespace" --wait >/dev/null 2>&1
    kubectl delete namespace "$namespace" --wait=false >/dev/null 2>&1
  fi
  rm -rf "$work"
}
keep=no loaded=no
for word in "$@"; do case $word in --keep) keep=yes ;; --loaded) loaded=yes ;; *) echo "unknown: $word"; exit 2 ;; esac; done
trap finish EXIT

load_images() {
  local version images image name
  version=$(sed -n 's/^appVersion: //p' charts/genmesh/Chart.yaml)
  if [ -n "${BACKING_CACHE:-}" ]; then must "stand-in for the image's base" test/image/base.sh; fi
  must "image" docker build --network host -f deploy/Dockerfile -t "genmesh:$version" .
  step "the image in a container" env GENMESH_TEST_IMAGE="genmesh:$version" npx vitest run --project long test/image
  images=("genmesh:$version")
  if [ -n "${BACKING_CACHE:-}" ]; then
    must "stand-ins for the backing's images" test/cluster/stand-ins.sh "$BACKING_CACHE"
    while read -r name; do images+=("$name"); done < <(sed -n 's/^  image: //p' charts/genmesh-backing/values.yaml)
  fi
  for image in "${images[@]}"; do
    docker save "$image" -o "$work/image.tar"
    # The command may have arguments.
    # shellcheck disable=SC2086
    must "load $image" $load "$work/image.tar"
  done
  # The stand-ins have other products' names. Other tests would take them for those products.
  if [ "${#images[@]}" -gt 1 ]; then docker image rm "${images[@]:1}" mongodb-root "$(test/image/base.sh --name)" >/dev/null; fi
}
[ "$loaded" = yes ] || load_images

kubectl create namespace "$namespace" --dry-run=client -o yaml | kubectl apply -f - >/dev/null
# The API server checks every object of the fullest rendering. CRDS is a folder with other products' definitions.
if [ -n "${CRDS:-}" ]; then step "definitions of other products" kubectl apply --server-side -f "$CRDS"; fi
accepted() {
  local version # Helm 3 does not ask the cluster for it here.
  version=$(kubectl get --raw /version | sed -n 's/.*"gitVersion": *"\([^"]*\)".*/\1/p')
  helm template genmesh charts/genmesh --namespace "$namespace" --values charts/genmesh/examples/everything.values.yaml \
    --kube-version "$version" --api-versions keda.sh/v1alpha1 | kubectl apply --dry-run=server -f - >"$work/accepted" 2>"$work/refused" || true
  echo "accepted: $(wc -l <"$work/accepted") objects; of kinds unknown to this cluster:" \
    "$(sed -n 's/.*no matches for kind "\([A-Za-z]*\)".*/\1/p' "$work/refused" | sort | uniq -c | tr -s '\n ' ' ')" >&3
  ! grep -v -e 'no matches for kind' -e 'ensure CRDs are installed first' -e '^Warning' "$work/refused"
}
step "the API server accepts the objects" accepted 3>&1

# With volumes where the cluster can make them.
volumes=true; [ -z "$(kubectl get storageclass -o name)" ] && volumes=false
must "install the backing" helm install backing charts/genmesh-backing --namespace "$namespace" \
  --set persistence=$volumes --wait --timeout 5m
must "install genmesh" helm install genmesh charts/genmesh --namespace "$namespace" \
  --values charts/genmesh/examples/evaluation.values.yaml --set service.port=8080 --set console.operators=true --wait --timeout 8m
memory idle

secret() { k get secret genmesh-tokens -o "jsonpath={.data.$1}" | base64 -d; }
KEY=$(secret bootstrap-api-key); export KEY
tokens=$(k get secret genmesh-tokens -o jsonpath='{.data}' | sha256sum)
url=${GATEWAY_URL:-http://$(k get service genmesh-gateway -o jsonpath='{.spec.clusterIP}'):8080}/v1
operator() { k exec deploy/genmesh-toolbox -- genmesh "$@"; }

# This step is first, because it checks all requests since the installation.
step "a day with the console through the Service" env GENMESH_TEST_BASE_URL="$url" GENMESH_TEST_API_KEY="$KEY" \
  GENMESH_TEST_ADMIN_TOKEN="$(secret admin-token)" npx vitest run --project main whole-day
tests_of() { grep -E '^ *(Test Files|Tests) ' <(sed 's/\x1b\[[0-9;]*m//g' "$work/step.log") || true; }
tests_of
step "helm test" helm test genmesh --namespace "$namespace" --timeout 5m
k logs genmesh-smoke

step "end-to-end suite through the Service" env GENMESH_TEST_BASE_URL="$url" GENMESH_TEST_API_KEY="$KEY" \
  npx vitest run --project main test/e2e
tests_of

# A process group of its own, so that it can be ended as a whole.
set -m
follow_logs &
following=$!
set +m
node test/cluster/traffic.ts --url "$url" >"$work/traffic.json" 2>"$work/traffic.err" &
traffic=$!
settled() { for role in gateway text media media-worker billing auth catalog; do k rollout status "deploy/genmesh-$role" --timeout 6m; done; }
sleep 10
step "scale the worker and the gateway up" helm upgrade genmesh charts/genmesh --namespace "$namespace" --reuse-values \
  --set roles.gateway.replicas=3 --set roles.media-worker.replicas=3 --wait --timeout 8m
step "they are there" settled
for role in gateway text billing media media-worker auth catalog; do
  pod=pod/$(k get pods -l "app.kubernetes.io/component=$role" -o jsonpath='{.items[0].metadata.name}')
  # Waits until the pod is gone, because it first ends its open requests.
  step "delete a pod of $role" k delete "$pod"
  step "it is replaced" k rollout status "deploy/genmesh-$role" --timeout 6m
done
# A value of every role, so that all pods are replaced.
step "upgrade with a changed value" helm upgrade genmesh charts/genmesh --namespace "$namespace" --reuse-values \
  --set config.logLevel=debug --wait --timeout 10m
step "roll back" helm rollback genmesh 1 --namespace "$namespace" --wait --timeout 10m
step "settled" settled
memory "under load"
kill -TERM "$traffic" || true
if wait "$traffic"; then say "ok      load"; else say "FAILED  load"; cat "$work/traffic.err"; show_logs; failed=$((failed + 1)); fi
traffic=
cat "$work/traffic.json"
step "the tokens are those of the installation" test "$tokens" = "$(k get secret genmesh-tokens -o jsonpath='{.data}' | sha256sum)"
step "ledger audit" operator ledger audit
cat "$work/step.log"
step "helm test again" helm test genmesh --namespace "$namespace" --timeout 5m
step "uninstall" helm uninstall genmesh --namespace "$namespace" --cascade foreground --wait --timeout 5m
step "no role is left" test -z "$(k get pods -l app.kubernetes.io/instance=genmesh --field-selector status.phase=Running -o name)"
step "the tokens are" k get secret genmesh-tokens
say "$failed failed"
[ "$failed" -eq 0 ]
