// Stand-ins: no epoch is lost to the death of its predecessor, and none is in anybody's way.

import assert from "node:assert/strict";
import { property } from "./check.ts";
import type { Envoy } from "./envoys.ts";
import { EARLY_MS } from "../../lib/core/bounds.ts";
import { stopBoundMs } from "./bounds.ts";
import { anyScenario, play, type Scenario } from "./scenario.ts";
import type { World } from "./world.ts";

const REST_MS = 60_000;
/** Of the model, at most: a slow answer and the exit's way. */
const ANSWER_MS = 1_000;

/** Nothing happens to stand-ins themselves. */
function undisturbed(scenario: Scenario): World {
  const actions = scenario.actions.filter(({ action }) =>
    action.kind !== "kill_stand_in" && action.kind !== "stand_in"
  );
  return play({ ...scenario, actions }, REST_MS);
}

/**
 * Serving epochs that Envoy ended for want of a parent that had drained. Somebody else's SIGTERM just before its time can't be told from
 * the protocol.
 */
function orphans({ envoys, settings }: World): readonly string[] {
  const latestMs = settings.parentShutdownTimeMs - EARLY_MS - ANSWER_MS;
  const diedDraining = (orphan: Envoy) => {
    const parent = envoys.all.findLast(({ epoch, attempt }) => epoch === orphan.epoch - 1 && attempt < orphan.attempt);
    const { drainsSinceMs, endedAtMs = Infinity } = parent ?? {};
    return drainsSinceMs !== undefined && endedAtMs >= drainsSinceMs && endedAtMs - drainsSinceMs < latestMs;
  };
  return envoys.all.filter((one) => one.cause === "orphaned" && one.wasLive && diedDraining(one))
    .map(({ epoch, endedAtMs }) => `epoch ${epoch} at ${endedAtMs} ms`);
}

property("an epoch whose predecessor died + lives on", anyScenario, { runs: 1_000 }, (scenario) => {
  assert.deepEqual(orphans(undisturbed(scenario)), []);
});

property(
  "an epoch whose predecessor died + lives on where its stand-ins are killed",
  anyScenario,
  { runs: 400 },
  (s) => {
    const actions = s.actions.filter(({ action }) => action.kind !== "stand_in");
    const kills = actions.filter(({ action }) => action.kind === "kill_stand_in").length;
    const world = play({ ...s, actions }, REST_MS);
    if (kills >= 5) return;
    assert.deepEqual(orphans(world), []);
  },
);

property("a stand-in + never beside a living epoch of its name", anyScenario, { runs: 600 }, (scenario) => {
  const broken = play(scenario, REST_MS).broken;
  assert.deepEqual(broken.filter(({ rule }) => rule === "stand_in_in_the_way" || rule === "stands_beside"), []);
});

property(
  "stand-ins + one at a time, and none that nobody talks to any more",
  anyScenario,
  { runs: 400 },
  (scenario) => {
    const world = play(scenario, REST_MS);
    assert.ok(world.standIns.most <= 2, `${world.standIns.most} at once`);
    if (world.state.standIn === undefined) assert.equal(world.standIns.count, 0);
  },
);

property("the end + no stand-in lives on", anyScenario, { runs: 400 }, (scenario) => {
  const world = play(scenario, 0);
  world.stop();
  world.runFor(stopBoundMs(scenario.settings));
  if (world.hasEnded) assert.equal(world.standIns.count, 0);
});
