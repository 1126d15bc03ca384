// Owns: lines 5 and 6 of issue 4: epochs that served and end, with and without a predecessor. Must not: hold children before LIVE.

import assert from "node:assert/strict";
import { adminRequest } from "../../../support/admin.ts";
import { domainSockets } from "../../../support/base_ids.ts";
import { freePort } from "../../../support/ports.ts";
import { until, within } from "../../../support/until.ts";
import { blackHole } from "../../../support/xds.ts";
import { NOBODY_SERVES, type Scenario } from "../scenario.ts";
import type { EpochShown, Scene } from "../scene.ts";

const RESTART = ["--on-crash", "restart"];
/** A predecessor that is still there when all is done with its successor. */
const LONG_DRAIN = { parentShutdownTimeMs: 8_000 };
/** Requests under way when the epoch dies, and new connections until the next one serves; held streams must live on. */
const GAP = ["refused", "reset", "closed_early"] as const;

/** The end with exit code 1 and nothing left behind. */
async function endsWith(scene: Scene, code: number): Promise<void> {
  assert.equal((await within("the end of epochd", scene.epochd.exit)).code, code);
  assert.equal(scene.hasMarker(), false);
  await until(
    "no Envoy is left",
    () => scene.epochd.envoyPids().length === 0 && domainSockets(scene.epochd.baseId).length === 0,
  );
}

/** Issue 4 names the bound; the figure is the log's own. */
async function gapBelowASecond(scene: Scene, since: number): Promise<number> {
  const { refusedMs } = await scene.event("service_gap", undefined, since);
  assert.ok(Number(refusedMs) < 1_000, `refused for ${refusedMs} ms`);
  return Math.round(Number(refusedMs));
}

/** Whoever serves in the end. */
function oneServes(scene: Scene): Promise<EpochShown> {
  return until("one serves alone", async () => {
    const { phase, epochs, ready } = await scene.shown();
    return phase === "serving" && ready && epochs.length === 1 && epochs[0]!;
  });
}

function quit(scene: Scene): Promise<unknown> {
  return adminRequest({ port: scene.adminPort }, "/quitquitquit", "POST");
}

export const scenarios: readonly Scenario[] = [{
  line: 5,
  name: "newest killed (-9) while its predecessor drains: same epoch again, the held stream lives on, the gap is told",
  mayFail: GAP,
  async run(stage) {
    const scene = await stage.serve(LONG_DRAIN);
    const held = scene.traffic.hold({ chunks: 60, everyMs: 100 });
    await held.opened;
    await scene.hup();
    const since = scene.mark();
    Deno.kill(scene.pidOf(1), "SIGKILL");
    const gap = await gapBelowASecond(scene, since);
    assert.equal((await scene.event("epoch_live", undefined, since)).epoch, 1);
    assert.ok(held.received < 60, "the stream must be under way");
    assert.equal((await held.outcome).kind, "complete");
    await scene.unharmed(1);
    assert.equal(scene.count("handoff_done"), 1);
    assert.equal(await scene.goodChange(), 2);
    return `epoch 1 again, connections refused for ${gap} ms, the stream complete`;
  },
}, {
  line: 5,
  name:
    "newest killed (-9) again and again while its predecessor drains: revived a bounded number of times, then exit 1",
  mayFail: NOBODY_SERVES,
  async run(stage) {
    const scene = await stage.serve({ parentShutdownTimeMs: 30_000 });
    await scene.hup();
    let revivals = 0;
    for (;;) {
      const since = scene.mark();
      Deno.kill(scene.pidOf(1), "SIGKILL");
      const { answer } = await scene.event("newest_died", undefined, since);
      if (answer !== "revival") break;
      revivals++;
      await scene.event("epoch_live", undefined, since);
    }
    assert.ok(revivals >= 1 && revivals <= 5, `${revivals} revivals`);
    await endsWith(scene, 1);
    return `${revivals} revivals, exit 1`;
  },
}, {
  line: 5,
  name: "newest killed (-9) while its predecessor drains and a change waits: the change goes through after it",
  mayFail: GAP,
  async run(stage) {
    const scene = await stage.serve(LONG_DRAIN);
    await scene.hup();
    const since = scene.mark();
    scene.write({ generation: "waiting" });
    await scene.event("trigger_deferred", undefined, since);
    Deno.kill(scene.pidOf(1), "SIGKILL");
    await gapBelowASecond(scene, since);
    const live = await scene.event("handoff_live", undefined, since);
    assert.equal(live.to, 2);
    await until("the change serves", () => scene.traffic.snapshot().generations.includes("waiting"));
    await scene.unharmed(2);
    return "epoch 1 again, then epoch 2 with the change";
  },
}, {
  line: 5,
  name: "newest killed (-9) without a predecessor, on_crash exit: exit 1, no marker, nothing left",
  mayFail: NOBODY_SERVES,
  async run(stage) {
    const scene = await stage.serve();
    Deno.kill(scene.pidOf(0), "SIGKILL");
    await endsWith(scene, 1);
    return "exit 1";
  },
}, {
  line: 5,
  name: "newest killed (-9) without a predecessor, on_crash restart: epoch 0 in place, the next change goes through",
  mayFail: NOBODY_SERVES,
  async run(stage) {
    const scene = await stage.serve({ extraArguments: RESTART });
    await scene.goodChange();
    const since = scene.mark();
    Deno.kill(scene.pidOf(1), "SIGKILL");
    const gap = await gapBelowASecond(scene, since);
    await scene.unharmed(0);
    assert.equal(await scene.goodChange(), 1);
    return `epoch 0 in place, connections refused for ${gap} ms`;
  },
}, {
  line: 5,
  name: "newest killed (-9) more often than crash_budget: backoff, then exit 1",
  mayFail: NOBODY_SERVES,
  async run(stage) {
    const scene = await stage.serve({ extraArguments: [...RESTART, "--crash-budget", "2 in 10m"] });
    for (const answer of ["restart", "restart", "budget_used_up"]) {
      const since = scene.mark();
      Deno.kill(scene.pidOf(0), "SIGKILL");
      assert.equal((await scene.event("newest_died", undefined, since)).answer, answer);
      if (answer === "restart") await scene.event("epoch_live", undefined, since);
    }
    assert.equal(scene.count("restart_paused"), 1);
    await endsWith(scene, 1);
    return "two restarts, the second after a pause, then exit 1";
  },
}, {
  line: 5,
  name: "both generations killed (-9) at once, on_crash restart: somebody serves again",
  mayFail: NOBODY_SERVES,
  async run(stage) {
    const scene = await stage.serve({ ...LONG_DRAIN, extraArguments: RESTART });
    await scene.hup();
    const since = scene.mark();
    for (const epoch of [0, 1]) Deno.kill(scene.pidOf(epoch), "SIGKILL");
    const gap = await gapBelowASecond(scene, since);
    // Whichever exit is seen first decides whether the other can be a parent still.
    const { epoch } = await oneServes(scene);
    await scene.unharmed(epoch);
    assert.equal(await scene.goodChange(), epoch + 1);
    return `epoch ${epoch} in place, connections refused for ${gap} ms`;
  },
}, {
  line: 5,
  name: "both generations killed (-9) at once, on_crash exit: exit 1, or an epoch that came up without its parent",
  mayFail: NOBODY_SERVES,
  async run(stage) {
    const scene = await stage.serve(LONG_DRAIN);
    await scene.hup();
    for (const epoch of [1, 0]) Deno.kill(scene.pidOf(epoch), "SIGKILL");
    // Where the newest's exit is seen first, its revival is on its way when the parent's is.
    const serves = oneServes(scene).then(({ epoch }) => epoch);
    const ended = scene.epochd.exit.then(() => undefined);
    const epoch = await Promise.race([serves.catch(() => undefined), ended]);
    if (epoch === undefined) {
      await endsWith(scene, 1);
      return "exit 1";
    }
    await scene.unharmed(1);
    return "epoch 1 again, without a parent";
  },
}, {
  line: 5,
  name: "serving epoch killed (-9) while its successor waits for xDS, on_crash restart: the last good bootstrap serves",
  mayFail: NOBODY_SERVES,
  async run(stage) {
    const hole = stage.use(blackHole(freePort()));
    const scene = await stage.serve({ extraArguments: [...RESTART, "--live-timeout", "3s", "--retry-limit", "0"] });
    const since = scene.mark();
    scene.write({ generation: "stuck", xds: { kind: "ads", port: hole.port, initialFetchTimeoutMs: 0 } });
    await scene.event("epoch_progress", undefined, since);
    Deno.kill(scene.pidOf(0), "SIGKILL");
    await scene.event("service_gap", undefined, since);
    const { epochs } = await scene.shown();
    await scene.unharmed(Number(epochs[0]?.epoch));
    assert.ok(!scene.traffic.snapshot().generations.includes("stuck"));
    await scene.goodChange();
    return `epoch ${epochs[0]?.epoch} of the last good bootstrap`;
  },
}, {
  line: 5,
  name: "serving epoch killed (-9) while its successor starts, on_crash restart: one of them serves",
  mayFail: NOBODY_SERVES,
  async run(stage) {
    const scene = await stage.serve({ extraArguments: RESTART });
    const since = scene.mark();
    scene.epochd.log.onEvent(({ event, epoch }) => {
      if (event === "epoch_spawned" && epoch === 1) Deno.kill(scene.pidOf(0), "SIGKILL");
    });
    scene.epochd.signal("SIGHUP");
    await scene.event("newest_died", undefined, since);
    const { epoch } = await oneServes(scene);
    await scene.unharmed(epoch);
    assert.equal(await scene.goodChange(), epoch + 1);
    return `epoch ${epoch} serves`;
  },
}, {
  line: 6,
  name: "newest ends by itself (/quitquitquit), on_crash exit: exit 1, never without an Envoy for ever",
  mayFail: NOBODY_SERVES,
  async run(stage) {
    const scene = await stage.serve();
    await quit(scene);
    await endsWith(scene, 1);
    const died = scene.epochd.log.events.find(({ event }) => event === "newest_died");
    assert.deepEqual([died?.exitCode, died?.answer], [0, "exit"]);
    return "exit 1";
  },
}, {
  line: 6,
  name: "newest ends by itself (/quitquitquit), on_crash restart: epoch 0 in place",
  mayFail: NOBODY_SERVES,
  async run(stage) {
    const scene = await stage.serve({ extraArguments: RESTART });
    const since = scene.mark();
    await quit(scene);
    const gap = await gapBelowASecond(scene, since);
    await scene.unharmed(0);
    assert.equal(await scene.goodChange(), 1);
    return `epoch 0 in place, connections refused for ${gap} ms`;
  },
}, {
  line: 6,
  name: "newest gets SIGTERM from somebody else, on_crash restart: epoch 0 in place",
  mayFail: NOBODY_SERVES,
  async run(stage) {
    const scene = await stage.serve({ extraArguments: RESTART });
    const since = scene.mark();
    Deno.kill(scene.pidOf(0), "SIGTERM");
    const gap = await gapBelowASecond(scene, since);
    await scene.unharmed(0);
    return `epoch 0 in place, connections refused for ${gap} ms`;
  },
}, {
  line: 6,
  name:
    "newest gets SIGTERM from somebody else while its predecessor drains: takes that one along, somebody serves again",
  mayFail: NOBODY_SERVES,
  async run(stage) {
    const scene = await stage.serve({ ...LONG_DRAIN, extraArguments: RESTART });
    await scene.hup();
    const since = scene.mark();
    Deno.kill(scene.pidOf(1), "SIGTERM");
    await scene.event("newest_died", undefined, since);
    const { epoch } = await oneServes(scene);
    await scene.unharmed(epoch);
    assert.equal(await scene.goodChange(), epoch + 1);
    return `epoch ${epoch} serves; Envoy's orderly end told the predecessor to end as well`;
  },
}, {
  line: 6,
  name:
    "every Envoy gets SIGTERM (pkill envoy) while a child waits for xDS, on_crash restart: the last good bootstrap serves",
  mayFail: NOBODY_SERVES,
  async run(stage) {
    const hole = stage.use(blackHole(freePort()));
    const scene = await stage.serve({ extraArguments: [...RESTART, "--retry-limit", "0"] });
    const since = scene.mark();
    scene.write({ generation: "stuck", xds: { kind: "ads", port: hole.port, initialFetchTimeoutMs: 0 } });
    await scene.event("epoch_progress", undefined, since);
    for (const epoch of [0, 1]) Deno.kill(scene.pidOf(epoch), "SIGTERM");
    await scene.event("service_gap", undefined, since);
    const { epochs } = await scene.shown();
    await scene.unharmed(Number(epochs[0]?.epoch));
    assert.ok(!scene.traffic.snapshot().generations.includes("stuck"));
    return `epoch ${epochs[0]?.epoch} of the last good bootstrap`;
  },
}];
