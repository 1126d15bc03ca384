// Owns: how many CPUs this process may use, by affinity and cgroup quota. Must not: know what for.

/** At least 1, at most what affinity allows; a quota of one and a half CPUs counts as two. */
export function usableCpus(affinity: number, quotas: readonly number[]): number {
  return Math.max(1, Math.min(affinity, ...quotas.map((quota) => Math.ceil(quota))));
}

/** Of /proc/self/status: the number of CPUs in `Cpus_allowed_list: 0-3,8`. */
export function parseAffinity(status: string): number | undefined {
  const list = /^Cpus_allowed_list:\s*(\S+)$/m.exec(status)?.[1];
  if (list === undefined) return undefined;
  let count = 0;
  for (const part of list.split(",")) {
    const match = /^(\d+)(?:-(\d+))?$/.exec(part);
    if (match === null) return undefined;
    count += Number(match[2] ?? match[1]) - Number(match[1]) + 1;
  }
  return count;
}

/** Version 2's cpu.max: `"max 100000"` or `"150000 100000"`; the CPUs, or undefined without a limit. */
export function parseCpuMax(text: string): number | undefined {
  const match = /^(\d+) (\d+)\s*$/.exec(text);
  return match === null ? undefined : ratio(Number(match[1]), Number(match[2]));
}

/** Version 1's cpu.cfs_quota_us (-1: no limit) and cpu.cfs_period_us. */
export function parseCfs(quota: string, period: string): number | undefined {
  return ratio(Number(quota.trim()), Number(period.trim()));
}

/** Where this process' CPU controller lies, in /proc/self/cgroup: `0::/path` (version 2), `4:cpu,cpuacct:/path` (version 1). */
export function parseCgroupPaths(text: string): { readonly v2?: string; readonly v1?: string } {
  let found: { v2?: string; v1?: string } = {};
  for (const line of text.split("\n")) {
    const match = /^(\d+):([^:]*):(.*)$/.exec(line);
    if (match?.[3] === undefined) continue;
    if (match[1] === "0" && match[2] === "") found = { ...found, v2: match[3] };
    else if (match[2]?.split(",").includes("cpu")) found = { ...found, v1: match[3] };
  }
  return found;
}

/** Where the hierarchies are mounted and which of their directories the mount shows, in /proc/self/mountinfo. */
export function parseCgroupMounts(text: string): { readonly v2?: Mount; readonly v1?: Mount } {
  let found: { v2?: Mount; v1?: Mount } = {};
  for (const line of text.split("\n")) {
    const [left, right] = line.split(" - ");
    const [, , , root, point] = left?.split(" ") ?? [];
    const [type, , options] = right?.split(" ") ?? [];
    if (root === undefined || point === undefined) continue;
    if (type === "cgroup2") found = { v2: { root, point }, ...found };
    else if (type === "cgroup" && options?.split(",").includes("cpu")) found = { v1: { root, point }, ...found };
  }
  return found;
}

export interface Mount {
  readonly root: string;
  readonly point: string;
}

/** The directories from the process' own group up to the mount: the tightest quota of all of them holds. */
export function ancestry(mount: Mount, path: string): string[] {
  // A container sees its own group as the mount's root (`root` is its path outside) and as `/` or as the path outside.
  const below = mount.root !== "/" && (path === mount.root || path.startsWith(`${mount.root}/`))
    ? path.slice(mount.root.length)
    : path;
  const parts = below.split("/").filter((part) => part !== "" && part !== "..");
  return Array.from(
    { length: parts.length + 1 },
    (_, i) => [mount.point, ...parts.slice(0, parts.length - i)].join("/"),
  );
}

/** Synchronous: asked once, before anything runs. `root` stands before every path, for tests. */
export function countUsableCpus(root = ""): number {
  const read = (path: string): string => {
    try {
      return Deno.readTextFileSync(root + path);
    } catch {
      return "";
    }
  };
  const affinity = parseAffinity(read("/proc/self/status")) ?? navigator.hardwareConcurrency;
  const paths = parseCgroupPaths(read("/proc/self/cgroup"));
  const mounts = parseCgroupMounts(read("/proc/self/mountinfo"));
  const quotas: (number | undefined)[] = [];
  if (paths.v2 !== undefined && mounts.v2 !== undefined) {
    for (const dir of ancestry(mounts.v2, paths.v2)) quotas.push(parseCpuMax(read(`${dir}/cpu.max`)));
  }
  if (paths.v1 !== undefined && mounts.v1 !== undefined) {
    for (const dir of ancestry(mounts.v1, paths.v1)) {
      quotas.push(parseCfs(read(`${dir}/cpu.cfs_quota_us`), read(`${dir}/cpu.cfs_period_us`)));
    }
  }
  return usableCpus(affinity, quotas.filter((quota) => quota !== undefined));
}

function ratio(quota: number, period: number): number | undefined {
  return quota > 0 && period > 0 ? quota / period : undefined;
}
