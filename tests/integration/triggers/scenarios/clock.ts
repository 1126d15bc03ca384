// Owns: a wall clock that jumps under a running epochd, and under the probe. Must not: set the clock of this machine.

import assert from "node:assert/strict";
import { tempDir } from "../../../support/tempdir.ts";
import { until, within } from "../../../support/until.ts";
import type { Program } from "../../../support/epochd.ts";
import type { Scenario } from "../../faults/scenario.ts";
import { probe } from "../probe.ts";

const DAY_MS = 86_400_000;
const WRAPPER = decodeURIComponent(new URL("../jumping_clock.ts", import.meta.url).pathname);
const program: Program = [Deno.execPath(), "run", "-A", "--quiet", WRAPPER];

export const scenarios: readonly Scenario[] = [DAY_MS, -DAY_MS].map((jumpMs): Scenario => ({
  line: 17,
  name: `the clock jumps a day ${jumpMs > 0 ? "forward" : "back"} in each phase of a handoff: no deadline changes`,
  async run(stage) {
    const directory = stage.use(tempDir());
    const offsetFile = directory.write("offset", "0");
    let offsetMs = 0;
    const jump = () => {
      offsetMs += jumpMs;
      Deno.writeTextFileSync(`${offsetFile}.new`, String(offsetMs));
      Deno.renameSync(`${offsetFile}.new`, offsetFile);
    };
    const environment = { CLOCK_OFFSET_FILE: offsetFile };
    const scene = await stage.serve({ directory, program, environment, extraArguments: ["--debounce", "1s"] });
    const since = scene.mark();
    scene.write({ generation: "second" });
    const changed = await scene.event("content_changed", undefined, since);
    jump();
    const began = await scene.event("handoff_began", undefined, since);
    const restedMs = began.receivedAtMs - changed.receivedAtMs;
    assert.ok(restedMs > 800 && restedMs < 4_000, `a debounce of 1 s took ${restedMs} ms`);
    await scene.event("epoch_spawned", undefined, since);
    jump();
    await scene.event("handoff_live", undefined, since);
    jump();
    const done = await scene.event("handoff_done", undefined, since);
    const drainedMs = Number(done.drainedMs);
    assert.ok(drainedMs > 1_500 && drainedMs < 6_000, `a predecessor of 2 s took ${drainedMs} ms`);
    // The log is for people and shows the wall clock; so it is known that it did jump.
    const shownMs = Date.parse(String(done.time)) - done.receivedAtMs;
    assert.ok(Math.abs(shownMs - 3 * jumpMs) < 60_000, `the log is off by ${shownMs} ms`);
    for (const wrong of ["epoch_hung", "handoff_failed", "predecessor_overdue", "marker_failed", "bug"]) {
      assert.equal(scene.count(wrong), 0, wrong);
    }
    const { epochs, ready } = await scene.shown();
    assert.deepEqual([epochs.length, epochs[0]?.epoch, ready], [1, 1, true]);
    // kubelet's probe goes by the file system's time, in which the file is fresh.
    assert.equal((await probe(scene.epochd.readyMarker)).code, 0);
    await scene.goesOn();
    scene.epochd.signal("SIGTERM");
    await scene.event("drain_began", undefined, since);
    jump();
    await scene.traffic.stop();
    assert.equal((await within("its end", scene.epochd.exit)).code, 0);
    return "debounce, LIVE, drain and stop took what they should";
  },
})).concat([{
  line: 17,
  name: "the probe's clock jumps: a marker of another time is not believed, and Ready is back with the next refresh",
  async run(stage) {
    const scene = await stage.serve();
    const marker = scene.epochd.readyMarker;
    await until("the marker", () => scene.hasMarker());
    for (const [ageMs, why] of [[DAY_MS, /too old/], [-DAY_MS, /from the future/]] as const) {
      // Of the last refresh before the jump, as it is seen after it.
      await until("the probe says no", async () => {
        const then = new Date(Date.now() - ageMs);
        Deno.utimeSync(marker, then, then);
        const { code, why: said } = await probe(marker);
        return code === 1 && why.test(said);
      });
      await until("the probe says yes", async () => (await probe(marker)).code === 0);
    }
    await scene.unharmed(0);
    return "not Ready until the next refresh, 2 s at most";
  },
}]);
