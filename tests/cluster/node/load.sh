#!/bin/bash
# load.sh TAR...: imports docker archives into the node's containerd.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
. "$here/versions.sh"
for file in "$@"; do ctr -a "$CONTAINERD_SOCKET" -n k8s.io images import "$file" >/dev/null; done
