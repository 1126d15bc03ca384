#!/bin/bash
# The least that hot restarts an Envoy, as an example of what --peer takes: on SIGHUP the next epoch, whatever becomes of it.
#
#     deno task epochd-bench restart --peer 'bash bench/meter/peer_example.sh {envoy} {bootstrap} {base_id} {drain_s} {parent_shutdown_s}'
set -u
epoch=0

start() {
  RESTART_EPOCH=$epoch "$1" -c "$2" --base-id "$3" --restart-epoch $epoch --drain-time-s "$4" --parent-shutdown-time-s "$5" 2>/dev/null &
  newest=$!
}

next() {
  epoch=$((epoch + 1))
  start "$@"
}

trap 'next "$@"' HUP
trap 'kill $newest; exit 0' TERM INT
start "$@"
# A signal ends a wait; the end of an Envoy must not end the supervisor's.
while :; do
  wait "$newest"
  sleep 0.05
done
