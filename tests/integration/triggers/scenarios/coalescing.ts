// Owns: triggers that come while a handoff is under way, and the gap between two handoffs. Must not: know how Envoy hands over.

import assert from "node:assert/strict";
import { pause, until } from "../../../support/until.ts";
import type { Scenario } from "../../faults/scenario.ts";
import type { Scene } from "../../faults/scene.ts";
import { childHeldBack, serveManaged } from "../control_plane.ts";

/** No more than two generations at any time, as the log tells it. */
function assertTwoGenerations(scene: Scene): void {
  const { events } = scene.epochd.log;
  let alive = 0;
  for (const { event } of events) {
    if (event === "epoch_spawned") alive++;
    if (event === "epoch_exited") alive--;
    assert.ok(alive <= 2, "three generations lived at once");
  }
}

async function handoffsDone(scene: Scene, count: number): Promise<void> {
  await until(`${count} handoffs are done`, () => scene.count("handoff_done") >= count);
}

export const scenarios: readonly Scenario[] = [
  {
    line: 10,
    name: "edits while the successor initialises: they wait, become one handoff, and the newest content wins",
    async run(stage) {
      const managed = await serveManaged(stage, { initialFetchTimeoutMs: 0 });
      const { scene, xds } = managed;
      await childHeldBack(managed);
      const since = scene.mark();
      for (const generation of ["second", "third"]) {
        scene.write({ generation });
        await scene.event("content_changed", undefined, since);
      }
      await scene.event("trigger_deferred", (event) => event.reason === "handoff", since);
      scene.epochd.signal("SIGHUP");
      await scene.event("trigger_coalesced", undefined, since);
      xds.pace({ delayMs: 0 });
      await handoffsDone(scene, 2);
      await scene.unharmed(2);
      const { generations } = scene.traffic.snapshot();
      assert.deepEqual([generations.at(-1), generations.includes("second")], ["third", false]);
      assert.equal(scene.count("handoff_began"), 2);
      assertTwoGenerations(scene);
      return "one more handoff, with the newest content";
    },
  },
  {
    line: 10,
    name: "an edit while the predecessor drains: it waits until that one has ended, two generations at most",
    async run(stage) {
      const scene = await stage.serve();
      const since = scene.mark();
      await scene.hup();
      scene.write({ generation: "second" });
      await scene.event("trigger_deferred", (event) => event.reason === "predecessor_drains", since);
      await handoffsDone(scene, 2);
      await scene.unharmed(2);
      const order = scene.epochd.log.events.slice(since).map(({ event }) => event)
        .filter((event) => event === "handoff_began" || event === "handoff_done");
      assert.deepEqual(order, ["handoff_began", "handoff_done", "handoff_began", "handoff_done"]);
      assertTwoGenerations(scene);
      return "waited for the predecessor's end";
    },
  },
  {
    line: 10,
    name: "50 SIGHUPs in a second: two handoffs at most",
    async run(stage) {
      const scene = await stage.serve();
      for (let sent = 0; sent < 50; sent++) {
        scene.epochd.signal("SIGHUP");
        await pause(20);
      }
      await scene.event("handoff_live", undefined, 0);
      await until("nothing waits any more", async () => {
        const { phase, epochs } = await scene.shown();
        return phase === "serving" && epochs.length === 1;
      });
      const handoffs = scene.count("handoff_began");
      assert.ok(handoffs >= 1 && handoffs <= 2, `${handoffs} handoffs`);
      await scene.unharmed(handoffs);
      assertTwoGenerations(scene);
      return `${handoffs} handoffs`;
    },
  },
  {
    line: 10,
    name: "requests of the API and a SIGHUP during a handoff: each is answered, by one more handoff",
    async run(stage) {
      const scene = await stage.serve();
      await scene.hup();
      const asked = [1, 2, 3].map(() => scene.epochd.command("restart", "--wait=live", "--json"));
      await until("all three wait", () => scene.count("trigger_coalesced") >= 2);
      scene.epochd.signal("SIGHUP");
      const answers = await Promise.all(asked);
      assert.deepEqual(answers.map(({ code }) => code), [0, 0, 0], JSON.stringify(answers));
      assert.deepEqual(answers.map(({ stdout }) => JSON.parse(stdout).to), [2, 2, 2]);
      await handoffsDone(scene, 2);
      await scene.unharmed(2);
      assert.equal(scene.count("handoff_began"), 2);
      return "three answers by one handoff";
    },
  },
  {
    line: 10,
    name: "min_gap 0: the third generation ends the first at once, and the log says which one is cut",
    // What the first epoch still holds is cut: that is what 0 asks for.
    mayFail: ["broken_stream", "reset", "closed_early"],
    async run(stage) {
      const parentShutdownTimeMs = 8_000;
      const extraArguments = ["--min-gap", "0"];
      const scene = await stage.serve({ drainTimeMs: 7_000, parentShutdownTimeMs, extraArguments });
      const stream = scene.traffic.hold({ chunks: 1_000, everyMs: 50 });
      await stream.opened;
      const since = scene.mark();
      await scene.hup();
      await scene.hup();
      const told = await scene.event("third_generation", undefined, since);
      assert.deepEqual([told.ends, told.successor], [0, 2]);
      const ended = await scene.event("handoff_done", (event) => event.from === 0, since);
      assert.ok(Number(ended.drainedMs) < parentShutdownTimeMs, `drained for ${ended.drainedMs} ms`);
      assert.equal((await stream.outcome).kind, "broken");
      await scene.event("handoff_done", (event) => event.from === 1, since);
      await scene.unharmed(2);
      return "epoch 0 was ended early, its stream cut, and told";
    },
  },
  {
    line: 10,
    name: "min_gap as a time: the second handoff begins no sooner after the first epoch's LIVE",
    async run(stage) {
      const scene = await stage.serve({ extraArguments: ["--min-gap", "3s"] });
      const since = scene.mark();
      const live = await scene.hup();
      await scene.event("handoff_done", undefined, since);
      const second = scene.mark();
      scene.epochd.signal("SIGHUP");
      const waits = await scene.event("trigger_deferred", (event) => event.reason === "min_gap", second);
      assert.ok(Number(waits.waitMs) > 0 && Number(waits.waitMs) <= 3_000, `waits ${waits.waitMs} ms`);
      const began = await scene.event("handoff_began", undefined, second);
      assert.ok(began.receivedAtMs - live.receivedAtMs > 2_800, "it began before the gap was over");
      await handoffsDone(scene, 2);
      await scene.unharmed(2);
      return "waited for the rest of the gap";
    },
  },
];
