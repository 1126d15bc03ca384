#!/bin/bash
# Builds one multi-call binary (etcd, API server, controller manager, scheduler, kubelet, kubectl) and helm from Go modules, with the
# ordinary go command; mod/go.mod and mod/go.sum pin every module. Does nothing where they are built already.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
. "$here/versions.sh"
cd "$here/../mod"
mkdir -p "$BIN"
exec 9>"$CLUSTER_DIR/build.lock"
flock 9
stamp=$(cat go.mod go.sum cmd/kube/main.go "$here/versions.sh" "$here/build.sh" | sha256sum)
if [ -x "$BIN/kube" ] && [ -x "$BIN/helm" ] && [ "$(cat "$BIN/.stamp" 2>/dev/null)" = "$stamp" ]; then exit 0; fi
rm -f "$BIN/.stamp"

grep -q "k8s.io/kubernetes v1.$K8S_MINOR_PATCH" go.mod
grep -q "helm.sh/helm/v3 $HELM_VERSION" go.mod
minor=${K8S_MINOR_PATCH%%.*}
flags="-s -w -X helm.sh/helm/v3/internal/version.version=$HELM_VERSION"
for package in k8s.io/component-base/version k8s.io/client-go/pkg/version; do
  flags="$flags -X $package.gitVersion=v1.$K8S_MINOR_PATCH -X $package.gitMajor=1 -X $package.gitMinor=$minor"
  flags="$flags -X $package.gitTreeState=clean -X $package.gitCommit=module -X $package.buildDate=1970-01-01T00:00:00Z"
done
for package in helm.sh/helm/v3/pkg/chartutil helm.sh/helm/v3/pkg/lint/rules; do
  flags="$flags -X $package.k8sVersionMajor=1 -X $package.k8sVersionMinor=$minor"
done
export CGO_ENABLED=0 GOFLAGS="-buildvcs=false -mod=readonly" GOTOOLCHAIN=local
nice go build -gcflags=all=-dwarf=false -ldflags "$flags" -o "$BIN/" ./cmd/kube helm.sh/helm/v3/cmd/helm
for name in etcd kube-apiserver kube-controller-manager kube-scheduler kubelet kubectl; do
  ln -sf kube "$BIN/$name"
done
echo "$stamp" >"$BIN/.stamp"
