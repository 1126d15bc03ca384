#!/bin/bash
# Makes a CA, certificates and kubeconfigs for one run (EC keys, valid 30 days).
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
. "$here/versions.sh"
rm -rf "$PKI"
mkdir -p "$PKI"
cd "$PKI"
key() { openssl ecparam -name prime256v1 -genkey -noout -out "$1.key"; }
# certificate FILE CN [O [SANS]]
certificate() {
  key "$1"
  openssl req -new -key "$1.key" -subj "/${3:+O=$3/}CN=$2" -out "$1.csr"
  printf 'extendedKeyUsage=clientAuth,serverAuth\n%s\n' "${4:+subjectAltName=$4}" >"$1.ext"
  openssl x509 -req -in "$1.csr" -CA ca.crt -CAkey ca.key -CAcreateserial -days 30 -extfile "$1.ext" -out "$1.crt" 2>/dev/null
}
# kubeconfig CERTIFICATE OUT
kubeconfig() {
  cat >"$2" <<Y
apiVersion: v1
kind: Config
clusters: [{name: test, cluster: {server: "https://$NODE_IP:6443", certificate-authority: $PKI/ca.crt}}]
users: [{name: me, user: {client-certificate: $PKI/$1.crt, client-key: $PKI/$1.key}}]
contexts: [{name: test, context: {cluster: test, user: me}}]
current-context: test
Y
}
key ca
openssl req -x509 -new -key ca.key -subj /CN=epochd-cluster-ca -days 30 -out ca.crt
names=DNS:localhost,DNS:kubernetes,DNS:kubernetes.default,DNS:kubernetes.default.svc
certificate apiserver kube-apiserver "" "IP:$NODE_IP,IP:127.0.0.1,IP:10.96.0.1,$names"
certificate kubelet-server $NODE "" "IP:$NODE_IP,DNS:$NODE"
certificate apiserver-client kube-apiserver system:masters
certificate admin admin system:masters
certificate kcm system:kube-controller-manager
certificate sched system:kube-scheduler
certificate kubelet system:node:$NODE system:nodes
kubeconfig admin "$KUBECONFIG"
for name in kcm sched kubelet; do kubeconfig $name "$PKI/$name.conf"; done
key sa
rm -f ./*.csr ./*.ext
