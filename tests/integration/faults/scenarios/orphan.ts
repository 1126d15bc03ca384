// Owns: line 5 of issue 4, the other way round: predecessors that die while they drain, and what stands in for them.
// Must not: hold deaths of the newest epoch.

import assert from "node:assert/strict";
import { serverInfo } from "../../../support/admin.ts";
import { domainSockets } from "../../../support/base_ids.ts";
import { ENVOY_VERSIONS, envoyPath, type EnvoyVersion } from "../../../support/envoys.ts";
import { isAlive } from "../../../support/procfs.ts";
import { until, within } from "../../../support/until.ts";
import { NOBODY_SERVES, type Scenario } from "../scenario.ts";
import type { Scene } from "../scene.ts";
import type { SceneOptions, Stage } from "../stage.ts";

/** Longer than the ten seconds after which an Envoy gives a dead parent up: by its end the serving one has lived on or not. */
const PAST_THE_ABORT = { parentShutdownTimeMs: 13_000, drainTimeMs: 1_000 };
/** What a predecessor holds dies with it, so that only connections to the serving epoch are counted. */
const NEW_CONNECTIONS = { keepAliveClients: 0, newConnectionClients: 4 };

type Serve = Pick<SceneOptions, "extraArguments" | "parentShutdownTimeMs" | "drainTimeMs" | "environment">;

/** One epoch serves, and its predecessor drains. */
async function draining(stage: Stage, version: EnvoyVersion, options: Serve = PAST_THE_ABORT): Promise<Scene> {
  const scene = await stage.serve({ envoyPath: envoyPath(version), traffic: NEW_CONNECTIONS, ...options });
  await scene.hup();
  await scene.goesOn();
  return scene;
}

/** The predecessor ends by this signal, and somebody answers in its place; resolves to that one's pid. */
async function killPredecessor(scene: Scene, epoch: number, signal: Deno.Signal = "SIGKILL"): Promise<number> {
  const since = scene.mark();
  Deno.kill(scene.pidOf(epoch), signal);
  const { pid } = await scene.event("stand_in_began", (event) => event.epoch === epoch, since);
  return Number(pid);
}

/** Its successor has told it to terminate, as a living predecessor is told. */
function terminated(scene: Scene, epoch: number, since = 0): Promise<unknown> {
  const where = (event: Record<string, unknown>) => event.epoch === epoch && event.why === "terminated";
  return scene.event("stand_in_ended", where, since, 40_000);
}

async function eachVersion(run: (version: EnvoyVersion) => Promise<unknown>): Promise<void> {
  await Promise.all(ENVOY_VERSIONS.map(run));
}

const bySignal = (["SIGKILL", "SIGTERM", "SIGSEGV"] as const).map((signal): Scenario => ({
  line: 5,
  name:
    `predecessor ended by ${signal} while it drains, on each version: its successor serves on, and hands over as ever`,
  async run(stage) {
    await eachVersion(async (version) => {
      const scene = await draining(stage, version);
      await killPredecessor(scene, 0, signal);
      assert.match((await scene.shown()).note ?? "", /^epoch 0 died before its time, a stand-in answers epoch 1/);
      await terminated(scene, 0);
      await scene.unharmed(1);
      assert.equal((await scene.hup()).to, 2);
      assert.equal(scene.count("newest_died") + scene.count("epoch_hung"), 0);
    });
    return "epoch 1 serves past the ten seconds, told its stand-in to terminate, epoch 2 follows";
  },
}));

/** Where it is looked for by an epochd that runs from source. */
const elsewhere: readonly Scenario[] = Deno.env.get("EPOCHD_TEST_PROGRAM") !== undefined ? [] : [{
  line: 5,
  name:
    "predecessor killed (-9) and no epochd-stand-in is there, on_crash restart: told with the path, epoch 0 in place",
  mayFail: NOBODY_SERVES,
  async run(stage) {
    const restart = { parentShutdownTimeMs: 60_000, extraArguments: ["--on-crash", "restart"] };
    const scene = await draining(stage, "1.40.0", { ...restart, environment: { TOOLS_DIR: "/nowhere" } });
    const since = scene.mark();
    Deno.kill(scene.pidOf(0), "SIGKILL");
    const last = await scene.event("stand_in_failed", ({ waitMs }) => waitMs === undefined, since);
    assert.match(String(last.problem), /^run \/nowhere\/.*epochd-stand-in.*: no such file/);
    const { exitSignal } = await scene.event("newest_died", undefined, since, 60_000);
    assert.equal(exitSignal, "SIGABRT");
    await scene.unharmed(0);
    return "as without a stand-in: epoch 0 in place";
  },
}];

export const scenarios: readonly Scenario[] = [...bySignal, ...elsewhere, {
  line: 5,
  name: "predecessor after predecessor killed (-9), handoffs in quick succession: every stand-in goes by protocol",
  async run(stage) {
    await eachVersion(async (version) => {
      const scene = await draining(stage, version, { ...PAST_THE_ABORT, extraArguments: ["--min-gap", "0"] });
      for (let epoch = 0; epoch < 6; epoch++) {
        await killPredecessor(scene, epoch);
        const since = scene.mark();
        assert.equal((await scene.hup()).to, epoch + 2);
        await terminated(scene, epoch, since);
      }
      await scene.goesOn();
      assert.equal(scene.count("newest_died"), 0);
    });
    return "six in a row, epoch 7 serves";
  },
}, {
  line: 5,
  name: "predecessor killed (-9) with a change waiting: it goes through at once, nobody is left to drain",
  async run(stage) {
    const scene = await draining(stage, "1.40.0", { parentShutdownTimeMs: 60_000 });
    const since = scene.mark();
    scene.write({ generation: "waiting" });
    await scene.event("trigger_deferred", undefined, since);
    await killPredecessor(scene, 0);
    assert.equal((await scene.event("handoff_live", undefined, since)).to, 2);
    await terminated(scene, 0, since);
    await until("the change serves", () => scene.traffic.snapshot().generations.includes("waiting"));
    return "epoch 2 with the change, the stand-in told to terminate";
  },
}, {
  line: 5,
  name:
    "predecessor killed (-9) while it is stopped and owes its successor an answer, on each version: that one is let go",
  async run(stage) {
    await eachVersion(async (version) => {
      const scene = await draining(stage, version, { parentShutdownTimeMs: 60_000 });
      const admin = { port: scene.adminPort };
      // epochd wakes it; in between it must be met asleep, with a question on its socket.
      const hold = setInterval(() => Deno.kill(scene.pidOf(0), "SIGSTOP"), 5);
      try {
        await until("the successor waits for an answer", () => serverInfo(admin, 300).then(() => false, () => true));
      } finally {
        clearInterval(hold);
      }
      await killPredecessor(scene, 0);
      await until("its admin answers", () => serverInfo(admin).then(({ epoch }) => epoch === 1, () => false));
      await scene.goesOn();
      assert.equal((await scene.hup()).to, 2);
    });
    return "the stand-in answers what the dead one was asked, epoch 2 follows";
  },
}, {
  line: 5,
  name: "stand-in killed (-9): another one takes its place",
  async run(stage) {
    const scene = await draining(stage, "1.39.3");
    const first = await killPredecessor(scene, 0);
    const since = scene.mark();
    Deno.kill(first, "SIGKILL");
    await scene.event("stand_in_failed", ({ waitMs }) => waitMs !== undefined, since);
    const { pid } = await scene.event("stand_in_began", undefined, since);
    assert.notEqual(Number(pid), first);
    await terminated(scene, 0, since);
    await scene.unharmed(1);
    return "started again, epoch 1 serves on";
  },
}, {
  line: 5,
  name:
    "stand-in killed (-9) again and again, on_crash restart: given up, Envoy aborts its successor, epoch 0 in place",
  mayFail: NOBODY_SERVES,
  async run(stage) {
    const scene = await draining(stage, "1.40.0", {
      parentShutdownTimeMs: 60_000,
      extraArguments: ["--on-crash", "restart"],
    });
    let pid = await killPredecessor(scene, 0);
    for (;;) {
      const since = scene.mark();
      Deno.kill(pid, "SIGKILL");
      const { waitMs } = await scene.event("stand_in_failed", undefined, since);
      if (waitMs === undefined) break;
      pid = Number((await scene.event("stand_in_began", undefined, since)).pid);
    }
    const { exitSignal } = await scene.event("newest_died", undefined, 0, 60_000);
    assert.equal(exitSignal, "SIGABRT");
    await scene.unharmed(0);
    assert.equal((await scene.hup()).to, 1);
    return "five tries, then as without one: epoch 0 in place";
  },
}, {
  line: 5,
  name: "stop while a stand-in answers: exit 0 without a kill, nothing left",
  async run(stage) {
    await eachVersion(async (version) => {
      const scene = await draining(stage, version, { parentShutdownTimeMs: 60_000 });
      const pid = await killPredecessor(scene, 0);
      await scene.traffic.stop();
      scene.epochd.signal("SIGTERM");
      assert.equal((await within("the end of epochd", scene.epochd.exit)).code, 0);
      const killed = scene.epochd.log.events.filter(({ event, signal }) =>
        event === "epoch_ending" && signal === "SIGKILL"
      );
      assert.deepEqual(killed, []);
      await until("nothing is left", () => !isAlive(pid) && domainSockets(scene.epochd.baseId).length === 0);
    });
    return "exit 0, the newest told its stand-in to terminate and ended by SIGTERM";
  },
}, {
  line: 5,
  name: "epochd killed (-9) while a stand-in answers: nothing is left",
  mayFail: NOBODY_SERVES,
  async run(stage) {
    const scene = await draining(stage, "1.38.3", { parentShutdownTimeMs: 60_000 });
    const pid = await killPredecessor(scene, 0);
    Deno.kill(scene.epochd.pid, "SIGKILL");
    await until("the stand-in has ended", () => !isAlive(pid));
    // An Envoy that ends tells its parent's place first, in vain, ten times.
    await until("nothing is left", () => domainSockets(scene.epochd.baseId).length === 0, { timeoutMs: 30_000 });
    return "the stand-in ends with epochd, Envoy by its own rule";
  },
}];
