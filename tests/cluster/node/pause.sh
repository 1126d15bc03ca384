#!/bin/bash
# Compiles the pause program.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
. "$here/versions.sh"
mkdir -p "$IMG"
[ "$IMG/pause" -nt "$here/pause.c" ] || gcc -Os -static -s -o "$IMG/pause" "$here/pause.c"
