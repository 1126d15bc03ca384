// Owns: whether two generations of Envoy fit into memory. Must not: predict a peak that nobody has seen.

import { ancestry } from "../adapters/cpus.ts";
import { fail, type Found, ok, unknown, warn } from "./finding.ts";
import { type Patient, readText, showBytes } from "./patient.ts";

/** Above this part of the limit a busy moment is one too many. */
const nearPart = 0.85;

export function checkMemory({ root, serving, supervisor }: Patient): Found {
  if (serving === undefined || supervisor === undefined) {
    return unknown("no serving Envoy is known whose memory could be measured");
  }
  const envoyBytes = rssBytes(root, serving.pid);
  if (envoyBytes === undefined) return unknown(`the memory of process ${serving.pid} can't be seen`);
  const ownBytes = rssBytes(root, supervisor.pid) ?? 0;
  const needBytes = 2 * envoyBytes + ownBytes;
  const limit = memoryLimit(root, supervisor.pid);
  const said = `two epochs of ${showBytes(envoyBytes)} and epochd take ${showBytes(needBytes)}`;
  if (limit !== undefined) {
    const found = `${said} of ${showBytes(limit.bytes)} (${limit.dir})`;
    const todo = `raise the memory limit above ${showBytes(needBytes / nearPart)}`;
    if (needBytes > limit.bytes) return fail(`${found}: the next handoff would be killed`, todo);
    return needBytes > nearPart * limit.bytes ? warn(found, todo) : ok(found);
  }
  const availableBytes =
    Number(/^MemAvailable:\s+(\d+) kB$/m.exec(readText(`${root}/proc/meminfo`) ?? "")?.[1] ?? NaN) * 1024;
  if (Number.isNaN(availableBytes)) return unknown(`${said}; what is available can't be seen`);
  const isDraining = supervisor.epochs.some(({ role }) => role === "predecessor");
  const found = `${said}; no limit, ${showBytes(availableBytes)} available`;
  if (!isDraining && envoyBytes > availableBytes) return fail(found, "free memory before the next handoff");
  return ok(found);
}

function rssBytes(root: string, pid: number): number | undefined {
  const kib = /^VmRSS:\s+(\d+) kB$/m.exec(readText(`${root}/proc/${pid}/status`) ?? "")?.[1];
  return kib === undefined ? undefined : Number(kib) * 1024;
}

/** Version 1 writes "no limit" as the largest multiple of a page. */
const unlimited = 2 ** 60;

/** The tightest of the supervisor's group and those above it. */
function memoryLimit(root: string, pid: number): { readonly bytes: number; readonly dir: string } | undefined {
  const cgroups = readText(`${root}/proc/${pid}/cgroup`) ?? "";
  const mounts = readText(`${root}/proc/self/mountinfo`) ?? "";
  let tightest: { readonly bytes: number; readonly dir: string } | undefined;
  for (const line of mounts.split("\n")) {
    const [left, right] = line.split(" - ");
    const [, , , base, point] = left?.split(" ") ?? [];
    const [type, , options] = right?.split(" ") ?? [];
    if (base === undefined || point === undefined) continue;
    const isOld = type === "cgroup" && options?.split(",").includes("memory") === true;
    if (type !== "cgroup2" && !isOld) continue;
    const path = (isOld ? /^\d+:[^:]*\bmemory\b[^:]*:(.*)$/m : /^0::(.*)$/m).exec(cgroups)?.[1];
    if (path === undefined) continue;
    for (const dir of ancestry({ root: base, point }, path)) {
      const bytes = Number(readText(`${root}${dir}/${isOld ? "memory.limit_in_bytes" : "memory.max"}`)?.trim() || NaN);
      if (bytes > 0 && bytes < unlimited && bytes < (tightest?.bytes ?? Infinity)) tightest = { bytes, dir };
    }
  }
  return tightest;
}
