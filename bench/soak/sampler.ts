// Owns: what epochd holds, looked at again and again from outside. Must not: judge, or cost the load more than a look.
import type { Epochd } from "../../tests/support/epochd.ts";
import { segmentPath } from "../../tests/support/base_ids.ts";
import { openFileCount, processFacts, rssAnonBytes, threadCount } from "../../tests/support/procfs.ts";
import { childPids, cpuMs } from "../observe.ts";
import type { Load } from "./load.ts";
import type { Sample } from "./tally.ts";

const LEDGER = ["handoffs.jsonl", "handoffs.1.jsonl"];

/** Undefined once epochd is gone. */
export function takeSample(
  epochd: Epochd,
  load: Load,
  at: { startedMs: number; handoffs: number },
): Sample | undefined {
  const rssAnon = rssAnonBytes(epochd.pid);
  if (rssAnon === 0) return undefined;
  const stateFiles = filesUnder(epochd.stateDir);
  const children = childPids(epochd.pid).map((pid) => processFacts(pid)).filter((facts) => facts !== undefined);
  const { p50Ms, p99Ms, maxMs } = load.window();
  const { traffic } = load.report();
  return {
    atS: Math.round((performance.now() - at.startedMs) / 100) / 10,
    handoffs: at.handoffs,
    requests: traffic.requests,
    rssAnonKb: rssAnon / 1024,
    openFiles: openFileCount(epochd.pid),
    threads: threadCount(epochd.pid),
    cpuMs: Math.round(cpuMs(epochd.pid)),
    envoys: children.filter(({ name, state }) => name.startsWith("envoy") && state !== "Z").length,
    zombies: children.filter(({ state }) => state === "Z").length,
    segmentBytes: segments(epochd.baseId).reduce((sum, path) => sum + sizeOf(path), 0),
    stateFiles: stateFiles.length,
    stateBytes: stateFiles.reduce((sum, path) => sum + sizeOf(path), 0),
    ledgerBytes: LEDGER.reduce((sum, name) => sum + sizeOf(`${epochd.stateDir}/${name}`), 0),
    p50Ms,
    p99Ms,
    maxMs,
  };
}

/** All that lies in /dev/shm under this base id: other Envoys of the machine are not looked at. */
function segments(baseId: number): string[] {
  return filesUnder("/dev/shm").filter((path) => path.startsWith(segmentPath(baseId)));
}

/** Files and directories come and go between two looks. */
function filesUnder(directory: string): string[] {
  try {
    return [...Deno.readDirSync(directory)].flatMap(({ name, isDirectory }) =>
      isDirectory ? filesUnder(`${directory}/${name}`) : [`${directory}/${name}`]
    );
  } catch {
    return [];
  }
}

function sizeOf(path: string): number {
  try {
    return Deno.lstatSync(path).size;
  } catch {
    return 0;
  }
}
