// Owns: line 4 of issue 4: children that are killed before they are LIVE. Must not: hold epochs that served.

import assert from "node:assert/strict";
import { freePort } from "../../../support/ports.ts";
import { until } from "../../../support/until.ts";
import { blackHole } from "../../../support/xds.ts";
import type { Scenario } from "../scenario.ts";
import type { Scene } from "../scene.ts";

const NO_RETRY = ["--retry-limit", "0"];
const MOMENTS = 20;

/** What became of a handoff whose child was killed at some moment. */
type Fate = "failed" | "revived";

/** Sends SIGKILL to the child the given time after its spawn was told; resolves when all that follows is over. */
async function killChildAfter(scene: Scene, afterMs: number): Promise<{ readonly fate: Fate; readonly epoch: number }> {
  const since = scene.mark();
  const from = (await scene.shown()).epochs[0]?.epoch ?? 0;
  const killed = new Promise<void>((resolve) => {
    let done = false;
    scene.epochd.log.onEvent((event) => {
      if (done || event.event !== "epoch_spawned") return;
      done = true;
      // Passing time is the point: the moment is what is tried.
      const kill = () => {
        Deno.kill(Number(event.pid), "SIGKILL");
        resolve();
      };
      if (afterMs < 1) kill();
      else setTimeout(kill, afterMs);
    });
  });
  scene.epochd.signal("SIGHUP");
  await killed;
  return await settled(scene, since, from);
}

async function settled(
  scene: Scene,
  since: number,
  from: number,
): Promise<{ readonly fate: Fate; readonly epoch: number }> {
  const { fate } = await until("it is known what became of the child", () => {
    const events = scene.epochd.log.events.slice(since);
    const told = events.find(({ event }) => event === "handoff_failed" || event === "newest_died");
    return told !== undefined && { fate: told.event === "handoff_failed" ? "failed" as const : "revived" as const };
  });
  const { epoch } = await until("an epoch serves alone, with its admin", async () => {
    const { phase, epochs, note } = await scene.shown();
    return phase === "serving" && epochs.length === 1 && note === undefined && epochs[0]!;
  });
  assert.ok(epoch === from || epoch === from + 1, `epoch ${epoch} after ${from}`);
  return { fate, epoch };
}

/** Fractions of a start, by the log's own figure for a good one. */
async function measuredStart(scene: Scene): Promise<number> {
  const since = scene.mark();
  const live = scene.event("epoch_live", undefined, since);
  const done = scene.event("handoff_done", undefined, since);
  scene.epochd.signal("SIGHUP");
  const { tookMs } = await live;
  await done;
  return Number(tookMs);
}

/** Two handoffs take their time to drain; the moments are spread over several scenes so that none takes long. */
function moments(name: string, indices: readonly number[]): Scenario {
  return {
    line: 4,
    name:
      `child killed (-9) at ${indices.length} moments from spawn to LIVE (${name}): none harms, the next handoff works each time`,
    // A child that is LIVE and not yet seen to be so has closed its parent's listeners.
    mayFail: ["refused", "reset", "closed_early"],
    async run(stage) {
      const scene = await stage.serve({ extraArguments: NO_RETRY });
      const startMs = await measuredStart(scene);
      const fates: Record<Fate, number> = { failed: 0, revived: 0 };
      for (const index of indices) {
        const before = scene.traffic.snapshot().failed;
        const since = scene.mark();
        const { fate, epoch } = await killChildAfter(scene, startMs * index / (MOMENTS - 1));
        fates[fate]++;
        await scene.unharmed(epoch);
        const failed = scene.traffic.snapshot().failed - before;
        const gap = scene.epochd.log.events.slice(since).find(({ event }) => event === "service_gap");
        assert.equal(gap === undefined ? "no gap told" : "gap told", fate === "failed" ? "no gap told" : "gap told");
        assert.ok(gap !== undefined || failed === 0, `${failed} failed at moment ${index}, and no gap was told`);
        assert.ok(gap === undefined || Number(gap.refusedMs) < 1_000, `refused for ${gap?.refusedMs} ms`);
        const live = await scene.hup();
        await scene.event("handoff_done", ({ handoff }) => handoff === live.handoff, 0);
      }
      return `${fates.failed} failed before LIVE, ${fates.revived} revived after it; each next handoff went through`;
    },
  };
}

const all = Array.from({ length: MOMENTS }, (_, index) => index);
const kills: readonly Scenario[] = [
  moments("first quarter", all.slice(0, 5)),
  moments("second quarter", all.slice(5, 10)),
  moments("third quarter", all.slice(10, 15)),
  moments("last quarter", all.slice(15, 20)),
];

export const scenarios: readonly Scenario[] = [...kills, {
  line: 4,
  name: "child killed (-9) when its progress was seen, waiting for xDS: the serving epoch is replaced by its own plan",
  async run(stage) {
    const hole = stage.use(blackHole(freePort()));
    const scene = await stage.serve({ extraArguments: NO_RETRY });
    const since = scene.mark();
    scene.write({ xds: { kind: "ads", port: hole.port, initialFetchTimeoutMs: 0 } });
    await scene.event("epoch_progress", undefined, since);
    Deno.kill(scene.pidOf(1), "SIGKILL");
    const { fate, epoch } = await settled(scene, since, 0);
    assert.deepEqual({ fate, epoch }, { fate: "failed", epoch: 1 });
    await scene.unharmed(1);
    assert.equal(await scene.goodChange(), 2);
    return "as a successor that can't run";
  },
}];
