// Owns: the node's processes as its kernel shows them. Must not: ask Kubernetes.
import { clusterDir } from "./binaries.ts";

export interface NodeProcess {
  readonly pid: number;
  readonly command: string;
  readonly zombie: boolean;
}

/** Processes of one pod, the pause process among them. */
export function processesOfPod(uid: string): NodeProcess[] {
  const found: NodeProcess[] = [];
  for (const { name } of Deno.readDirSync("/proc")) {
    if (!/^\d+$/.test(name)) continue;
    try {
      if (!Deno.readTextFileSync(`/proc/${name}/cgroup`).includes(`pod${uid}`)) continue;
      const zombie = /^State:\s+Z/m.test(Deno.readTextFileSync(`/proc/${name}/status`));
      const command = Deno.readTextFileSync(`/proc/${name}/cmdline`).replaceAll("\0", " ").trim();
      found.push({ pid: Number(name), command, zombie });
    } catch { /* it has ended meanwhile */ }
  }
  return found;
}

/** What a path of the node holds; the node has its own /run and /dev/shm. */
export function listOnNode(path: string): string[] {
  const outer = Deno.readTextFileSync(`${clusterDir}/run/ns.pid`).trim();
  const [init] = Deno.readTextFileSync(`/proc/${outer}/task/${outer}/children`).trim().split(" ");
  try {
    return Array.from(Deno.readDirSync(`/proc/${init}/root${path}`), ({ name }) => name).sort();
  } catch (error) {
    if (error instanceof Deno.errors.NotFound) return [];
    throw error;
  }
}
