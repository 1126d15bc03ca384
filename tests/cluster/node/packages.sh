#!/bin/bash
# Debian's own packages that a node consists of. Installs what is missing, needs root for that.
set -euo pipefail
missing=()
for package in containerd runc iptables iproute2 procps openssl containernetworking-plugins; do
  dpkg -s $package >/dev/null 2>&1 || missing+=($package)
done
if [ ${#missing[@]} -gt 0 ]; then
  apt-get update -qq
  apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
fi
