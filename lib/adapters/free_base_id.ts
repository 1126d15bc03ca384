// Owns: finding a base id that no Envoy of this machine has, and removing what its Envoys leave. Must not: take one that is in doubt.

import { readHotRestartSockets } from "./hot_restart_sockets.ts";
import { SharedMemory } from "./shared_memory.ts";

/** People choose small ones; Envoy counts ten times as far in 32 bits. */
const [FIRST, COUNT] = [100_000, 400_000_000];
const TRIES = 32;

export interface Places {
  readonly shmDir?: string;
  readonly procDir?: string;
  /** From 0 to 1. */
  readonly random?: () => number;
}

/** Drawn, as Envoy's own --use-dynamic-base-id does: two that look at the same moment find different ones. */
export async function findFreeBaseId({ random = Math.random, ...places }: Places = {}): Promise<number | undefined> {
  for (let tried = 0; tried < TRIES; tried++) {
    const baseId = FIRST + Math.floor(random() * COUNT);
    const sockets = await readHotRestartSockets(baseId, places.procDir);
    if (sockets.length > 0) continue;
    if ((await new SharedMemory(baseId, places).look()).kind === "absent") return baseId;
  }
  return undefined;
}

/** A page of shared memory outlives every Envoy, and nobody would come back to this base id. */
export async function leaveBaseId(baseId: number, places: Places = {}): Promise<void> {
  if ((await readHotRestartSockets(baseId, places.procDir).catch(() => [undefined])).length > 0) return;
  await Deno.remove(new SharedMemory(baseId, places).path).catch(() => {});
}
