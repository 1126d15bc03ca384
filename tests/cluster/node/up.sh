#!/bin/bash
# up.sh IMAGE.tar...: starts a single-node Kubernetes and waits until its node is Ready: etcd, API server, controller manager,
# scheduler, kubelet and containerd, all inside a network, mount and pid namespace of their own, so that ending one process (see
# down.sh) ends every pod and mount with it. The images must hold localhost/pause:1.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
. "$here/versions.sh"
if [ -e "$RUN/ns.pid" ]; then
  echo "the cluster in $CLUSTER_DIR is up, or was left: run $here/down.sh" >&2
  exit 1
fi
mkdir -p "$RUN" "$LOG" "$CLUSTER_DIR"/{etcd,kubelet,cni,containerd,containerd-state}
alive() {
  local name
  for name in "$@"; do
    kill -0 "$(cat "$RUN/$name.pid")" 2>/dev/null || { echo "$name died:" >&2; tail -20 "$LOG/$name.log" >&2; exit 1; }
  done
}
# wait_for SECONDS WHAT COMMAND...
wait_for() {
  local seconds=$1 what=$2 i
  shift 2
  for ((i = 0; i < seconds * 5; i++)); do
    ! "$@" >/dev/null 2>&1 || return 0
    sleep .2
  done
  echo "waited $seconds s in vain for $what" >&2
  tail -n 5 "$LOG"/*.log >&2
  exit 1
}
# The kubelet sets these for the whole machine; down.sh puts them back.
sysctl vm.overcommit_memory kernel.panic kernel.panic_on_oops >"$RUN/sysctl.saved"

# --- namespaces: the pause program is pid 1 inside. /run is the node's own, so that host paths of pods go with it; so is /dev/shm.
ip netns add $NETNS
ip -n $NETNS link set lo up
ip -n $NETNS addr add $NODE_IP/32 dev lo
ip -n $NETNS route add 10.96.0.0/16 dev lo src $NODE_IP
inside="mount --make-rshared / && mount -t tmpfs run /run && mkdir /run/netns && mount -t tmpfs shm /dev/shm"
setsid nsenter --net=/run/netns/$NETNS unshare --mount --pid --fork --kill-child --mount-proc --propagation private \
  sh -c "$inside && touch '$RUN/ns.ready' && exec '$IMG/pause'" >"$LOG/ns.log" 2>&1 </dev/null &
echo $! >"$RUN/ns.pid"
wait_for 10 "the namespaces" test -e "$RUN/ns.ready"

# --- containerd and etcd
cat >"$CLUSTER_DIR/cni/10-test.conflist" <<J
{"cniVersion":"0.4.0","name":"test","plugins":[
 {"type":"ptp","ipMasq":false,"ipam":{"type":"host-local","dataDir":"$RUN/cni-ipam","ranges":[[{"subnet":"10.244.0.0/24"}]],"routes":[{"dst":"0.0.0.0/0"}]}},
 {"type":"portmap","capabilities":{"portMappings":true}}]}
J
cat >"$CLUSTER_DIR/containerd.toml" <<T
version = 2
root = "$CLUSTER_DIR/containerd"
state = "$CLUSTER_DIR/containerd-state"
disabled_plugins = ["io.containerd.snapshotter.v1.aufs","io.containerd.snapshotter.v1.btrfs","io.containerd.snapshotter.v1.devmapper","io.containerd.snapshotter.v1.zfs"]
[grpc]
  address = "$CONTAINERD_SOCKET"
[plugins."io.containerd.internal.v1.opt"]
  path = "$CLUSTER_DIR/opt"
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "localhost/pause:1"
  stream_server_address = "127.0.0.1"
  disable_apparmor = true
  # Where CAP_SYS_RESOURCE is missing, runc could not write -998.
  restrict_oom_score_adj = true
[plugins."io.containerd.grpc.v1.cri".cni]
  bin_dir = "/usr/lib/cni"
  conf_dir = "$CLUSTER_DIR/cni"
[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
  runtime_type = "io.containerd.runc.v2"
[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
  SystemdCgroup = false
T
part containerd containerd --config "$CLUSTER_DIR/containerd.toml"
part etcd "$BIN/etcd" --name e --data-dir "$CLUSTER_DIR/etcd" --unsafe-no-fsync \
  --listen-client-urls http://127.0.0.1:2379 --advertise-client-urls http://127.0.0.1:2379 \
  --listen-peer-urls http://127.0.0.1:2380 --initial-advertise-peer-urls http://127.0.0.1:2380 \
  --initial-cluster e=http://127.0.0.1:2380 --log-level warn

# --- control plane
part apiserver "$BIN/kube-apiserver" --etcd-servers=http://127.0.0.1:2379 \
  --bind-address=$NODE_IP --advertise-address=$NODE_IP --secure-port=6443 \
  --tls-cert-file="$PKI/apiserver.crt" --tls-private-key-file="$PKI/apiserver.key" --client-ca-file="$PKI/ca.crt" \
  --kubelet-client-certificate="$PKI/apiserver-client.crt" --kubelet-client-key="$PKI/apiserver-client.key" \
  --kubelet-certificate-authority="$PKI/ca.crt" --kubelet-preferred-address-types=InternalIP \
  --service-account-key-file="$PKI/sa.key" --service-account-signing-key-file="$PKI/sa.key" \
  --service-account-issuer=https://kubernetes.default.svc --service-cluster-ip-range=10.96.0.0/16 \
  --authorization-mode=Node,RBAC --allow-privileged=true --anonymous-auth=false
wait_for 30 "containerd" ctr -a "$CONTAINERD_SOCKET" version
"$here/load.sh" "$@"
wait_for 120 "the API server" k get --raw /readyz
alive apiserver etcd containerd
part kcm "$BIN/kube-controller-manager" --kubeconfig="$PKI/kcm.conf" --bind-address=127.0.0.1 \
  --use-service-account-credentials=true --service-account-private-key-file="$PKI/sa.key" \
  --root-ca-file="$PKI/ca.crt" --leader-elect=false
part sched "$BIN/kube-scheduler" --kubeconfig="$PKI/sched.conf" --bind-address=127.0.0.1 --leader-elect=false

# --- node
cat >"$CLUSTER_DIR/kubelet.yaml" <<Y
apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
address: $NODE_IP
healthzBindAddress: 127.0.0.1
cgroupDriver: cgroupfs
failCgroupV1: false
failSwapOn: false
containerRuntimeEndpoint: unix://$CONTAINERD_SOCKET
authentication: {anonymous: {enabled: false}, webhook: {enabled: false}, x509: {clientCAFile: $PKI/ca.crt}}
authorization: {mode: AlwaysAllow}
tlsCertFile: $PKI/kubelet-server.crt
tlsPrivateKeyFile: $PKI/kubelet-server.key
resolvConf: ""
volumePluginDir: $RUN/volume-plugins
podLogsDir: $LOG/pods
# Often, so that tests see an edit of a ConfigMap soon; a minute is what clusters have.
syncFrequency: 5s
evictionHard: {memory.available: "100Mi", nodefs.available: "1%", imagefs.available: "1%", nodefs.inodesFree: "1%"}
imageGCHighThresholdPercent: 100
imageGCLowThresholdPercent: 99
Y
part kubelet "$BIN/kubelet" --config="$CLUSTER_DIR/kubelet.yaml" --kubeconfig="$PKI/kubelet.conf" \
  --hostname-override=$NODE --node-ip=$NODE_IP --root-dir="$CLUSTER_DIR/kubelet" --cert-dir="$PKI"
wait_for 90 "the node to register" k get node $NODE
wait_for 90 "the node to be Ready" k wait --for=condition=Ready node/$NODE --timeout=1s
wait_for 30 "the default service account" k get serviceaccount default
alive containerd etcd apiserver kcm sched kubelet
