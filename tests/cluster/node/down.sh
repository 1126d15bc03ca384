#!/bin/bash
# Ends everything that up.sh started, the pods included, by ending pid 1 of its namespace, and removes the cluster's state (images,
# etcd, logs); what build.sh made stays. KEEP=1 leaves logs and data for a look.
set -uo pipefail
here=$(cd "$(dirname "$0")" && pwd)
. "$here/versions.sh"
outer=$(cat "$RUN/ns.pid" 2>/dev/null)
init=$([ -z "$outer" ] || first_child "$outer")
if [ -n "$init" ] && [ "$(cat "/proc/$init/comm")" = pause ]; then
  kill -KILL "$init" # pid 1 of the namespace: the kernel ends the rest
  for _ in $(seq 100); do kill -0 "$outer" 2>/dev/null || break; sleep .1; done
fi
[ ! -e "$RUN/sysctl.saved" ] || sysctl -q -p "$RUN/sysctl.saved"
for _ in $(seq 5); do
  find /sys/fs/cgroup -depth -type d -path '*/kubepods*' -exec rmdir {} + 2>/dev/null
  [ -n "$(find /sys/fs/cgroup -type d -name kubepods -print -quit)" ] || break
  sleep .2
done
ip netns del $NETNS 2>/dev/null
rm -f "$RUN"/*.pid "$RUN"/ns.ready "$RUN"/kept
[ "${KEEP-}" = 1 ] || rm -rf "$CLUSTER_DIR"/{etcd,kubelet,cni,containerd,containerd-state,run,log,opt}
exit 0
