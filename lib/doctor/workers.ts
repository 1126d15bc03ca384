// Owns: whether Envoy's worker threads fit the CPUs and the threads that this process may use, and are the same in every epoch.
// Must not: choose their number.

import { ancestry, countUsableCpus } from "../adapters/cpus.ts";
import { fail, type Found, ok, unknown, warn } from "./finding.ts";
import { type Patient, readText } from "./patient.ts";

export function checkWorkers({ root, config: { concurrency }, serving }: Patient): Found {
  const usable = countUsableCpus(root);
  const running = serving?.identity?.concurrency;
  const wanted = concurrency ?? running ?? usable;
  if (running !== undefined && running !== wanted) {
    return fail(
      `epoch ${
        serving!.epoch
      } runs ${running} workers, the next one would run ${wanted}: listen sockets of the others stay without a reader`,
      `set concurrency to ${running}, or stop and start the service`,
    );
  }
  const said = `${wanted} worker${wanted === 1 ? "" : "s"} on ${usable} usable CPU${usable === 1 ? "" : "s"}`;
  if (wanted > usable) {
    return warn(
      `${said}: they are throttled, twice as hard while two epochs live`,
      running === undefined
        ? `set concurrency to ${usable}, or raise the CPU limit`
        : `every epoch keeps this number until the service is stopped and started: do that, or raise the CPU limit`,
    );
  }
  if (wanted < usable && concurrency === undefined && running !== undefined) {
    return warn(
      `${said}: the CPU limit was raised after the first epoch, and every epoch keeps its number`,
      "stop and start the service to use them all",
    );
  }
  return ok(said);
}

/** Two generations have twice the threads. */
export function checkThreads({ root, serving }: Patient): Found {
  if (serving === undefined) return unknown("no serving Envoy is known whose threads could be counted");
  const threads = Number(/^Threads:\s+(\d+)$/m.exec(readText(`${root}/proc/${serving.pid}/status`) ?? "")?.[1] ?? NaN);
  const limits = pidLimits(root);
  if (Number.isNaN(threads)) return unknown(`the threads of process ${serving.pid} can't be seen`);
  const tight = limits.find(({ max, current }) => current + threads > max);
  if (tight === undefined) {
    const least = limits.map(({ max, current }) => max - current).sort((a, b) => a - b)[0];
    return ok(`Envoy has ${threads} threads, ${least === undefined ? "no limit" : `room for ${least} more`}`);
  }
  return fail(
    `Envoy has ${threads} threads, and ${tight.current} of the ${tight.max} that ${tight.dir} allows are used: a second epoch has no room`,
    "raise the limit (systemd: TasksMax, Kubernetes: podPidsLimit)",
  );
}

function pidLimits(root: string): readonly { readonly dir: string; readonly max: number; readonly current: number }[] {
  const cgroups = readText(`${root}/proc/self/cgroup`) ?? "";
  const mounts = readText(`${root}/proc/self/mountinfo`) ?? "";
  const found = [];
  for (const line of mounts.split("\n")) {
    const [left, right] = line.split(" - ");
    const [, , , base, point] = left?.split(" ") ?? [];
    const [type, , options] = right?.split(" ") ?? [];
    if (base === undefined || point === undefined) continue;
    const isPids = type === "cgroup" && options?.split(",").includes("pids") === true;
    if (type !== "cgroup2" && !isPids) continue;
    const path = (isPids ? /^\d+:[^:]*\bpids\b[^:]*:(.*)$/m : /^0::(.*)$/m).exec(cgroups)?.[1];
    if (path === undefined) continue;
    for (const dir of ancestry({ root: base, point }, path)) {
      const [max, current] = [readText(`${root}${dir}/pids.max`), readText(`${root}${dir}/pids.current`)].map(Number);
      if (Number.isFinite(max) && Number.isFinite(current)) found.push({ dir, max: max!, current: current! });
    }
  }
  return found;
}
