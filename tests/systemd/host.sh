#!/bin/bash
# Owns: a machine of its own for one systemd: PID, mount, cgroup and IPC namespaces; network and /dev/shm are those of this one.
# In $1: units/ (for /etc/systemd/system), bin/ (for /usr/local/bin), etc/ (for /etc). Becomes systemd.
set -e
dir=$1
mount --make-rprivate /
mount -t proc proc /proc
cp -a /etc "$dir/etc-copy"
cp -a "$dir"/etc/. "$dir/etc-copy/"
rm -rf "$dir"/etc-copy/systemd/system
cp -a "$dir/units" "$dir/etc-copy/systemd/system"
mount --bind "$dir/etc-copy" /etc
systemd-sysusers /etc/sysusers.d/epochd.conf
mount --bind "$dir/bin" /usr/local/bin
mount -t tmpfs -o mode=755 tmpfs /var/lib
mount -t tmpfs -o mode=755 tmpfs /run
mkdir -p /run/systemd /run/lock
# As far as this machine has it; systemd tracks a unit's processes by it.
mount -t cgroup2 cgroup2 /sys/fs/cgroup 2>/dev/null || {
  mount -t tmpfs tmpfs /sys/fs/cgroup
  mkdir -p /sys/fs/cgroup/systemd
  mount -t cgroup -o none,name=systemd cgroup /sys/fs/cgroup/systemd
}
export container=docker
exec /lib/systemd/systemd --system --unit=idle.target --log-target=console --show-status=no
