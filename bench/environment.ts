// Owns: what is to be known of the machine and the programs that figures come from. Must not: measure.
import { NEWEST_ENVOY } from "../tests/support/envoys.ts";
import { runEpochd } from "../tests/support/epochd.ts";
import type { Environment } from "./report.ts";

export type Machine = Pick<Environment, "date" | "cores" | "cpu" | "kernel" | "memoryMb" | "scheduling">;

export async function environment(loadBefore: number): Promise<Environment> {
  const version = async (program: "source" | "dist") => (await runEpochd(["--version"], program)).stdout.trim();
  return {
    ...machine(),
    load: [loadBefore, loadAverage()],
    epochd: await version("source"),
    compiled: await version("dist"),
    envoy: NEWEST_ENVOY,
  };
}

export function machine(): Machine {
  const read = (path: string) => Deno.readTextFileSync(path);
  return {
    date: new Date().toISOString().slice(0, 16).replace("T", " ") + " UTC",
    cores: navigator.hardwareConcurrency,
    cpu: /^model name\s*: (.*)$/m.exec(read("/proc/cpuinfo"))?.[1] ?? "unknown",
    kernel: Deno.osRelease(),
    memoryMb: Math.round(Deno.systemMemoryInfo().total / 1e6),
    // Field 41 of /proc/PID/stat is the policy, 1 and 2 the real-time ones; the name before may hold blanks.
    scheduling: /^[12]$/.test(read("/proc/self/stat").split(") ")[1]?.split(" ")[38] ?? "") ? "real-time" : "normal",
  };
}

/** Of one minute. */
export function loadAverage(): number {
  return Number(Deno.loadavg()[0]?.toFixed(2));
}
