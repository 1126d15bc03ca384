# Sourced by the other scripts: every version, path and address of the test cluster, and its helpers.
# To move to another Kubernetes: change the versions here and in mod/go.mod, run `go mod tidy` there.
export K8S_MINOR_PATCH=34.4 # k8s.io/kubernetes v1.34.4, staging modules v0.34.4; etcd comes with mod/go.mod
export HELM_VERSION=v3.19.5 # the newest helm 3 on k8s.io/*@v0.34: it shares compiled packages with the above
export CLUSTER_DIR=${CLUSTER_DIR:-${XDG_CACHE_HOME:-$HOME/.cache}/epochd-cluster}
export BIN=$CLUSTER_DIR/bin RUN=$CLUSTER_DIR/run LOG=$CLUSTER_DIR/log PKI=$CLUSTER_DIR/pki IMG=$CLUSTER_DIR/img
export KUBECONFIG=$CLUSTER_DIR/admin.conf
export NETNS=epochd-cluster # the network namespace that plays the node's host network
export NODE_IP=10.99.0.1    # a /32 on that namespace's lo
export NODE=node1
export CONTAINERD_SOCKET=$RUN/containerd.sock

in_net() { nsenter --net=/run/netns/$NETNS "$@"; }
k() { in_net "$BIN/kubectl" "$@"; }
h() { in_net "$BIN/helm" "$@"; }
# The first child of a process: what unshare and nsenter start.
first_child() { awk '{print $1}' "/proc/$1/task/$1/children" 2>/dev/null; }
# part NAME COMMAND...: starts it inside the namespaces, with a log, and a pid file as seen from outside.
part() {
  local name=$1 init outer pid= i
  shift
  # Not inside the background command: its own children would be taken for the part.
  init=$(first_child "$(cat "$RUN/ns.pid")")
  setsid nsenter -t "$init" --net --mount --pid "$@" >>"$LOG/$name.log" 2>&1 </dev/null &
  outer=$!
  for ((i = 0; i < 250; i++)); do
    pid=$(first_child $outer)
    [ -z "$pid" ] || break
    sleep .02
  done
  echo "$pid" >"$RUN/$name.pid"
}
