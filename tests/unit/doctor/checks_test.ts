import assert from "node:assert/strict";
import { checkBaseId, checkNetworkNamespace } from "../../../lib/doctor/base_id.ts";
import { checkDescriptors, checkMarker, checkStateDir, checkWatch } from "../../../lib/doctor/files.ts";
import type { Found } from "../../../lib/doctor/finding.ts";
import { checkMemory } from "../../../lib/doctor/memory.ts";
import { checkSegment, checkShmDir } from "../../../lib/doctor/shared_memory.ts";
import { checkStandIn } from "../../../lib/doctor/stand_in.ts";
import { checkSupervisorDeath } from "../../../lib/doctor/supervisor_death.ts";
import { checkTiming } from "../../../lib/doctor/timing.ts";
import { checkThreads, checkWorkers } from "../../../lib/doctor/workers.ts";
import { ENVOY, epoch, EPOCHD, machine, segment, socketLine } from "./machine.ts";

/** The verdict, what was found, and something to do wherever it is not fine. */
function says(found: Found, verdict: Found["verdict"], text: RegExp): void {
  assert.equal(found.verdict, verdict, JSON.stringify(found));
  assert.match(found.found, text);
  assert.equal(
    found.todo !== undefined && found.todo !== "",
    verdict === "warn" || verdict === "fail",
    JSON.stringify(found),
  );
}

Deno.test("doctor + /dev/shm is missing, is a file, is writable", async () => {
  await using here = machine();
  says(checkShmDir(here.patient()), "ok", /dev\/shm is writable/);
  here.write("/proc/self/mountinfo", "31 23 0:28 / /dev/shm rw - ext4 disk rw\n");
  says(checkShmDir(here.patient()), "warn", /on ext4/);
  assert.deepEqual([...Deno.readDirSync(here.dir.at("dev/shm"))], [], "it leaves nothing behind");
  Deno.removeSync(here.dir.at("dev/shm"));
  says(checkShmDir(here.patient()), "fail", /does not exist/);
  here.write("/dev/shm", "");
  says(checkShmDir(here.patient()), "fail", /no directory/);
});

Deno.test("doctor + the segment is absent, healthy, poisoned, of another layout, or no segment", async () => {
  await using here = machine();
  const path = "/dev/shm/envoy_shared_memory_70";
  says(await checkSegment(here.patient()), "ok", /does not exist, epoch 0 makes it/);
  says(await checkSegment(here.running()), "fail", /does not exist while epoch 4 serves/);
  here.write(path, segment());
  here.link(`/proc/${ENVOY}/root`, here.dir.path);
  says(await checkSegment(here.running()), "ok", /layout 11\.104, no epoch initialises/);
  here.write(path, segment({ initializing: true }));
  says(await checkSegment(here.running()), "warn", /while none does/);
  const child = { pid: EPOCHD, epochs: [epoch(5, "child"), epoch(4, "newest")] };
  says(await checkSegment(here.running({ supervisor: child })), "ok", /an epoch initialises now/);
  says(await checkSegment(here.patient()), "ok", /poisoned by a child that died; epoch 0 makes it anew/);
  here.write("/proc/net/unix", socketLine(7, 1));
  says(await checkSegment(here.patient()), "fail", /poisoned/);
  here.write(path, segment({ layout: 12 }));
  says(await checkSegment(here.patient()), "warn", /layout 12\.104/);
  here.write(path, "hello");
  says(await checkSegment(here.patient()), "fail", /not made by an Envoy/);
});

Deno.test("doctor + another mount at /dev/shm than Envoy's is found", async () => {
  await using here = machine();
  here.write("/dev/shm/envoy_shared_memory_70", segment());
  here.link(`/proc/${ENVOY}/root`, here.dir.at("elsewhere"));
  says(await checkSegment(here.running()), "fail", /has no .*envoy_shared_memory_70 of its own/);
  here.write("/elsewhere/dev/shm/envoy_shared_memory_70", segment());
  says(await checkSegment(here.running()), "fail", /is not the file that epoch 4/);
});

Deno.test("doctor + the base id is free, this supervisor's, or somebody else's, who is named", async () => {
  await using here = machine();
  says(await checkBaseId(here.patient()), "ok", /base id 7 is free/);
  says(await checkBaseId(here.running()), "fail", /epoch 4 serves and its sockets can't be seen/);
  here.write("/proc/net/unix", socketLine(7, 1));
  says(await checkBaseId(here.running()), "ok", /this supervisor's epoch 4/);
  says(await checkBaseId(here.patient()), "fail", /can't be seen from here/);
  here.link("/proc/4711/fd/3", "socket:[99]");
  here.write("/proc/4711/comm", "envoy\n");
  says(await checkBaseId(here.patient()), "fail", /held by process 4711 \(envoy\)/);
  says(await checkBaseId(here.patient({}, { cross_pod: true })), "ok", /takes over from/);
  here.write("/proc/net/unix", socketLine(7, 1) + socketLine(7, 2, 98));
  says(await checkBaseId(here.running()), "fail", /beside this supervisor's own epochs/);
});

Deno.test("doctor + epochd and Envoy in different network namespaces are found", async () => {
  await using here = machine();
  says(checkNetworkNamespace(here.patient()), "ok", /\[1\]/);
  says(checkNetworkNamespace(here.patient({}, { cross_pod: true })), "warn", /shows only when it runs/);
  says(checkNetworkNamespace(here.running()), "unknown", /can't be seen/);
  here.link(`/proc/${EPOCHD}/ns/net`, "net:[1]");
  here.link(`/proc/${ENVOY}/ns/net`, "net:[2]");
  says(checkNetworkNamespace(here.running()), "fail", /epochd is in network namespace \[1\] and epoch 4 in \[2\]/);
  Deno.removeSync(here.dir.at(`proc/${ENVOY}/ns/net`));
  here.link(`/proc/${ENVOY}/ns/net`, "net:[1]");
  says(checkNetworkNamespace(here.running()), "ok", /share/);
});

Deno.test("doctor + times that do not fit into each other or into the grace period", async () => {
  await using here = machine();
  const of = (config: Record<string, unknown>, inPod = false) => checkTiming(here.patient({ inPod }, config));
  says(of({})[0]!, "ok", /drain_time 30s < parent_shutdown_time 45s, nothing bounds a stop/);
  says(of({ grace_period: "60s" }, true)[0]!, "ok", /grace_period 60s|grace_period 1m/);
  says(of({}, true)[0]!, "warn", /grace_period is not set in a pod/);
  says(of({ drain_time: "45s" })[0]!, "fail", /not less than/);
  says(of({ grace_period: "50s" })[0]!, "fail", /kubelet kills a predecessor/);
  says(of({ grace_period: "55s", pre_drain_delay: "30s" })[0]!, "fail", /less than what a stop takes/);
  says(of({ min_gap: "0s" })[0]!, "warn", /min_gap is 0/);
});

Deno.test("doctor + workers are as many as the CPUs, more than a quota, or not those of the running epoch", async () => {
  await using here = machine();
  says(checkWorkers(here.patient()), "ok", /4 workers on 4 usable CPUs/);
  says(checkWorkers(here.patient({}, { concurrency: 8 })), "warn", /8 workers on 4 usable CPUs: they are throttled/);
  says(checkWorkers(here.running({}, { concurrency: 4 })), "fail", /runs 2 workers, the next one would run 4/);
  says(checkWorkers(here.running()), "warn", /2 workers on 4 usable CPUs: the CPU limit was raised/);
  says(checkWorkers(here.running({}, { concurrency: 2 })), "ok", /2 workers on 4/);
  here.write("/proc/self/cgroup", "0::/\n");
  here.write("/proc/self/mountinfo", "41 31 0:38 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n");
  here.write("/sys/fs/cgroup/cpu.max", "100000 100000\n");
  says(checkWorkers(here.running()), "warn", /2 workers on 1 usable CPU: they are throttled/);
});

Deno.test("doctor + threads of two generations have room, or not", async () => {
  await using here = machine();
  says(checkThreads(here.patient()), "unknown", /no serving Envoy is known/);
  here.write(`/proc/${ENVOY}/status`, "Threads:\t20\n");
  says(checkThreads(here.running()), "ok", /20 threads, no limit/);
  here.write("/proc/self/cgroup", "0::/\n");
  here.write("/proc/self/mountinfo", "41 31 0:38 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n");
  here.write("/sys/fs/cgroup/pids.max", "64\n");
  here.write("/sys/fs/cgroup/pids.current", "30\n");
  says(checkThreads(here.running()), "ok", /room for 34 more/);
  here.write("/sys/fs/cgroup/pids.current", "50\n");
  says(checkThreads(here.running()), "fail", /50 of the 64/);
});

Deno.test("doctor + memory of two generations against the cgroup's limit, of version 1 and 2", async () => {
  await using here = machine();
  says(checkMemory(here.patient()), "unknown", /no serving Envoy is known/);
  here.write(`/proc/${ENVOY}/status`, "VmRSS:\t  102400 kB\n");
  here.write(`/proc/${EPOCHD}/status`, "VmRSS:\t  51200 kB\n");
  here.write("/proc/meminfo", "MemAvailable:    900000 kB\n");
  says(checkMemory(here.running()), "ok", /two epochs of 100 MiB and epochd take 250 MiB; no limit/);
  here.write("/proc/meminfo", "MemAvailable:    90000 kB\n");
  says(checkMemory(here.running()), "fail", /88 MiB available/);
  here.write(`/proc/${EPOCHD}/cgroup`, "4:memory:/pod/x\n0::/\n");
  here.write("/proc/self/mountinfo", "35 31 0:32 /pod/x /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n");
  const limit = (bytes: number) => here.write("/sys/fs/cgroup/memory/memory.limit_in_bytes", `${bytes}\n`);
  limit(512 * 1_048_576);
  says(checkMemory(here.running()), "ok", /250 MiB of 512 MiB/);
  limit(270 * 1_048_576);
  says(checkMemory(here.running()), "warn", /of 270 MiB/);
  limit(200 * 1_048_576);
  says(checkMemory(here.running()), "fail", /the next handoff would be killed/);
  here.write(`/proc/${EPOCHD}/cgroup`, "0::/\n");
  here.write("/proc/self/mountinfo", "41 31 0:38 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n");
  here.write("/sys/fs/cgroup/memory.max", `${200 * 1_048_576}\n`);
  says(checkMemory(here.running()), "fail", /of 200 MiB/);
});

Deno.test("doctor + open files: few for a proxy, nearly used up, more than the machine has", async () => {
  await using here = machine();
  says(checkDescriptors(here.patient()), "ok", /20000 files/);
  const limit = (soft: number) =>
    here.write(`/proc/${EPOCHD}/limits`, `Max open files            ${soft}   1048576  files\n`);
  limit(1024);
  says(checkDescriptors(here.running()), "warn", /1024 files/);
  for (let fd = 0; fd < 90; fd++) here.write(`/proc/${ENVOY}/fd/${fd}`, "");
  limit(100);
  says(checkDescriptors(here.running()), "fail", /epoch 4 has 90: its successor would reach the limit/);
  limit(20_000);
  here.write("/proc/sys/fs/file-nr", "950\t0\t1000\n");
  says(checkDescriptors(here.running()), "fail", /950 of 1000 open/);
});

Deno.test("doctor + watched paths: a subPath mount never changes, a directory that is not there can't be watched", async () => {
  await using here = machine();
  const bootstrap = here.dir.write("envoy.yaml", "{}");
  says(checkWatch(here.patient({}, { envoy_config: bootstrap }))[0]!, "ok", /can be watched/);
  says(checkWatch(here.patient({}, { watch_config: false }))[0]!, "ok", /nothing is watched/);
  here.write("/proc/self/mountinfo", `50 23 0:28 / ${bootstrap} ro - ext4 disk rw\n`);
  says(checkWatch(here.patient({}, { envoy_config: bootstrap }))[0]!, "warn", /subPath never changes/);
  says(
    checkWatch(here.patient({}, { envoy_config: here.dir.at("absent/envoy.yaml") }))[0]!,
    "warn",
    /can't be watched/,
  );
});

Deno.test("doctor + state directory and marker: missing, wrong, writable; and nothing is left there", async () => {
  await using here = machine();
  const at = (path: string) => ({ state_dir: here.dir.at(path), ready_marker: here.dir.at(`${path}/ready`) });
  says(checkStateDir(here.patient({}, at("new/state"))), "ok", /does not exist, epochd makes it/);
  says(checkMarker(here.patient({}, at("new/state"))), "fail", /does not exist/);
  here.write("/file", "");
  says(checkStateDir(here.patient({}, at("file"))), "fail", /no directory/);
  Deno.mkdirSync(here.dir.at("state"));
  says(checkStateDir(here.patient({}, at("state"))), "ok", /can be written/);
  says(checkMarker(here.patient({}, at("state"))), "ok", /can be written/);
  assert.deepEqual([...Deno.readDirSync(here.dir.at("state"))], []);
  here.link("/state/ready", "/etc/passwd");
  says(checkMarker(here.patient({}, at("state"))), "fail", /symbolic link/);
  says(checkMarker(here.patient({ inPod: true })), "warn", /no ready marker in a pod/);
  // A file system that nobody can write to.
  says(checkStateDir(here.patient({}, { state_dir: "/proc/1/epochd" })), "fail", /can't be made/);
});

Deno.test("doctor + what stands in for a dead predecessor is there, is missing, can't be executed", async () => {
  await using here = machine();
  const program = here.dir.write("epochd-stand-in", "");
  says(checkStandIn(program), "warn", /can't be executed/);
  Deno.chmodSync(program, 0o755);
  says(checkStandIn(program), "ok", /is there/);
  says(checkStandIn(`${program}-not`), "warn", /is not there: a predecessor that dies/);
});

Deno.test("doctor + whether Envoy outlives epochd is read from its parent, not from what was asked for", async () => {
  await using here = machine();
  const serve = { on_supervisor_death: "serve" };
  says(checkSupervisorDeath(here.running()), "ok", /ends with epochd/);
  says(checkSupervisorDeath(here.running({}, serve)), "unknown", /can't be seen/);
  here.write(`/proc/${ENVOY}/status`, `Name:\tenvoy\nPPid:\t${EPOCHD}\n`);
  says(checkSupervisorDeath(here.running({}, serve)), "fail", /a child of epochd and ends with it/);
  here.write(`/proc/${ENVOY}/status`, "Name:\tenvoy\nPPid:\t1\n");
  says(checkSupervisorDeath(here.running({}, serve)), "ok", /child of process 1 and outlives epochd/);
  says(checkSupervisorDeath(here.patient({ inPod: true }, serve)), "fail", /Kubernetes pod/);
});
