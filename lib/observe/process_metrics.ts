// Owns: the process metrics that Prometheus expects of every program. Must not: use prom-client's own set, whose
// nodejs_eventloop_* are NaN on Deno (2.6.10 to 2.9.8).

import client from "prom-client";

/** USER_HZ: 100 on every Linux that Deno runs on. */
const TICKS_PER_SECOND = 100;

export function addProcessMetrics(registry: client.Registry): void {
  const registers = [registry];
  new client.Counter({
    name: "process_cpu_seconds_total",
    help: "User and system CPU time of epochd, without Envoy's",
    registers,
    collect() {
      this.reset();
      this.inc(cpuSeconds());
    },
  });
  new client.Gauge({
    name: "process_resident_memory_bytes",
    help: "Resident memory of epochd",
    registers,
    collect() {
      this.set(Deno.memoryUsage().rss);
    },
  });
  new client.Gauge({
    name: "process_open_fds",
    help: "Open file descriptors of epochd",
    registers,
    collect() {
      this.set([...Deno.readDirSync("/proc/self/fd")].length);
    },
  });
  new client.Gauge({ name: "process_start_time_seconds", help: "Start of epochd, Unix seconds", registers })
    .set((Date.now() - performance.now()) / 1000);
}

/** Fields 14 and 15 of /proc/self/stat, counted after the name, which may hold blanks. */
function cpuSeconds(): number {
  const stat = Deno.readTextFileSync("/proc/self/stat");
  const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  return (Number(fields[11]) + Number(fields[12])) / TICKS_PER_SECOND;
}
