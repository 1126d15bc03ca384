// Recovery: a good change gets through after whatever happened, and what was refused is not tried in a loop.

import assert from "node:assert/strict";
import { restBoundMs } from "./bounds.ts";
import { property } from "./check.ts";
import { onlySuccessorsFail, play, type Scenario, unstopped } from "./scenario.ts";
import type { World } from "./world.ts";

/** All that was wrong outside is put right. */
function heal(world: World): void {
  world.controlPlane = "connected";
  world.markerWorks = true;
  world.repairWorks = true;
  for (const envoy of world.envoys.living) world.envoys.thaw(envoy);
}

function served(world: World): string | undefined {
  const { phase } = world.state;
  return phase.kind === "serving" ? phase.epoch.plan.key : undefined;
}

function goodChange(scenario: Scenario): World {
  const world = play(scenario, 0);
  heal(world);
  world.edit("binary", "x-good", "good");
  world.edit("bootstrap", "b-good", "good");
  world.runFor(restBoundMs(scenario.settings));
  return world;
}

property(
  "a good change + goes through after any failures of successors",
  onlySuccessorsFail,
  { runs: 600 },
  (scenario) => {
    const world = goodChange(scenario);
    const hasDied = world.trace.some(({ facts }) => facts.some(({ kind }) => kind === "newest_died"));
    if (world.hasEnded && hasDied) return;
    // A first start that finds its content replaced by a broken one has nothing to serve with.
    const hasServed = world.trace.some(({ after }) => after.phase.kind === "serving");
    if (!hasServed) return;
    assert.equal(served(world), "b-good+x-good");
  },
);

property("a good change + goes through after kills and freezes as well", unstopped, { runs: 500 }, (scenario) => {
  const world = goodChange(scenario);
  // What an outsider killed right after the change is taken for the change's fault.
  const isRolledBack = world.state.refused.some(({ bootstrapDigest }) => bootstrapDigest === "b-good");
  if (!world.hasEnded && !isRolledBack) assert.equal(served(world), "b-good+x-good");
});

property("what was seen last + runs in the end, or was refused", unstopped, { runs: 500 }, (scenario) => {
  const world = play(scenario, 0);
  heal(world);
  world.runFor(restBoundMs(scenario.settings));
  const { phase, seen, refused } = world.state;
  if (phase.kind !== "serving" || seen.bootstrap?.kind !== "usable" || seen.binary?.kind !== "usable") return;
  const wanted = { bootstrapDigest: seen.bootstrap.digest, binaryDigest: seen.binary.digest };
  const { plan } = phase.epoch;
  const runs = plan.bootstrapDigest === wanted.bootstrapDigest && plan.binaryDigest === wanted.binaryDigest;
  const wasRefused = refused.some((r) =>
    r.bootstrapDigest === undefined ||
    (r.bootstrapDigest === wanted.bootstrapDigest && r.binaryDigest === wanted.binaryDigest)
  );
  assert.ok(runs || wasRefused, `runs ${plan.key}, seen ${JSON.stringify(wanted)}`);
});

property("without a trigger + no fork, however long", unstopped, { runs: 300 }, (scenario) => {
  const world = play(scenario, 0);
  heal(world);
  world.runFor(restBoundMs(scenario.settings));
  const steps = world.trace.length;
  world.runFor(300_000);
  const later = world.trace.slice(steps).flatMap(({ effects }) => effects);
  assert.equal(later.filter(({ kind }) => kind === "spawn" || kind === "preflight").length, 0);
});

property("one content + forked no more often than its tries", onlySuccessorsFail, { runs: 300 }, (scenario) => {
  const actions = scenario.actions.filter(({ action }) => action.kind !== "hangup" && action.kind !== "request");
  const world = play({ ...scenario, actions }, restBoundMs(scenario.settings));
  const forks = new Map<string, number>();
  for (const { before, facts, effects } of world.trace) {
    if (facts.some(({ kind }) => kind === "newest_died")) return;
    for (const effect of effects) {
      if (effect.kind !== "spawn" || before.phase.kind !== "replacing") continue;
      if (before.phase.handoff.source === "recovery" || before.phase.from.plan.key === effect.plan.key) continue;
      forks.set(effect.plan.key, (forks.get(effect.plan.key) ?? 0) + 1);
    }
    // Once it has been LIVE, it has not failed.
    for (const fact of facts) if (fact.kind === "handoff_live") forks.clear();
  }
  for (const [key, times] of forks) {
    assert.ok(times <= 1 + scenario.settings.retryLimit, `${key} was forked ${times} times`);
  }
});

property(
  "an epoch without an admin + replaced, where that is the policy",
  onlySuccessorsFail,
  { runs: 300 },
  (scenario) => {
    // A plan that only sometimes gets to LIVE in time may fail as often as it is tried.
    const actions = scenario.actions.filter(({ action }) =>
      action.kind !== "repair" && !(action.kind === "edit" && action.behaviour === "slow")
    );
    const world = play({ ...scenario, actions, settings: { ...scenario.settings, onLostAdmin: "handoff" } }, 0);
    heal(world);
    world.runFor(restBoundMs(scenario.settings));
    if (world.state.phase.kind === "serving") assert.equal(world.state.phase.health.kind, "answering");
  },
);
