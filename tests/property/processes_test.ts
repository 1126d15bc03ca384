// Processes: who is signalled, how many live, which numbers they have, who is reaped.

import assert from "node:assert/strict";
import { property } from "./check.ts";
import { restBoundMs, stopBoundMs } from "./bounds.ts";
import { anyScenario, onlySuccessorsFail, play, type Scenario } from "./scenario.ts";
import type { World } from "./world.ts";

const REST_MS = 60_000;

function neverBroken(world: World, ...rules: string[]): void {
  assert.deepEqual(world.broken.filter(({ rule }) => rules.includes(rule)), []);
}

property("an epoch with a living successor + never signalled", anyScenario, { runs: 600 }, (scenario) => {
  neverBroken(play(scenario, REST_MS), "signalled_with_successor", "signal_to_nobody");
});

property("the segment + never repaired beside a child that starts", anyScenario, { runs: 600 }, (scenario) => {
  neverBroken(play(scenario, REST_MS), "repair_beside_child");
});

property("children + one at a time, and epoch 0 only when nobody lives", anyScenario, { runs: 600 }, (scenario) => {
  neverBroken(play(scenario, REST_MS), "two_children", "epoch_0_beside");
});

property("snapshots + kept as long as they may be started", anyScenario, { runs: 300 }, (scenario) => {
  neverBroken(play(scenario, REST_MS), "snapshot_gone");
});

property("the segment + not left poisoned while an epoch serves", anyScenario, { runs: 400 }, (scenario) => {
  const world = play(scenario, restBoundMs(scenario.settings));
  const mayFail = scenario.actions.some(({ action }) => action.kind === "repair" && !action.works);
  if (world.state.phase.kind !== "serving" || mayFail) return;
  assert.equal(world.envoys.isPoisoned, false);
});

property("generations + at most two, three only where min_gap allows it", anyScenario, { runs: 400 }, (scenario) => {
  const world = play(scenario, REST_MS);
  const limit = scenario.settings.minGapMs === "parent_shutdown_time" ? 2 : 3;
  for (const { living, event } of world.trace) {
    // Where the third can't be ended by protocol (it is frozen), nothing but its bound helps.
    const isFrozen = world.envoys.all.some((envoy) => living.has(envoy.attempt) && envoy.frozeAtMs !== undefined);
    if (!isFrozen) assert.ok(living.size <= limit, `${living.size} live at ${event.atMs} ms`);
  }
});

property("epoch numbers + up by one, and a failed number is used again", anyScenario, { runs: 400 }, (scenario) => {
  for (const { after, effects } of play(scenario, REST_MS).trace) {
    for (const effect of effects) {
      if (effect.kind !== "spawn") continue;
      const { phase } = after;
      if (phase.kind === "replacing") assert.equal(effect.epoch, phase.from.number + 1);
      else if (phase.kind === "starting") assert.equal(effect.epoch, phase.comeback.number);
      else assert.fail(`spawn in ${phase.kind}`);
    }
  }
});

property("epochs that became LIVE + numbered without a hole", anyScenario, { runs: 300 }, (scenario) => {
  let last: number | undefined;
  for (const { facts } of play(scenario, REST_MS).trace) {
    for (const fact of facts) {
      if (fact.kind !== "epoch_live") continue;
      const isNext = last === undefined ? fact.epoch === 0 : fact.epoch === last + 1;
      const isAgain = fact.epoch === 0 || fact.epoch === last;
      assert.ok(isNext || isAgain, `${fact.epoch} after ${last}`);
      last = fact.epoch;
    }
  }
});

property("a failing successor + never ends the epoch that serves", onlySuccessorsFail, { runs: 600 }, (scenario) => {
  const world = play(scenario, REST_MS);
  const stops = world.trace.filter(({ facts }) =>
    facts.some(({ kind }) => kind === "stop_asked" || kind === "newest_died")
  );
  const untilMs = stops[0]?.event.atMs ?? Infinity;
  const mayDie = scenario.actions.some(({ action }) =>
    action.kind === "edit" && action.behaviour === "dies_after_live"
  );
  const served = new Set(
    world.trace.flatMap(({ after: { phase } }) => phase.kind === "serving" ? phase.epoch.attempt : []),
  );
  for (const { attempt, cause, endedAtMs = 0, epoch } of world.envoys.all) {
    if (!served.has(attempt) || endedAtMs >= untilMs || cause === undefined) continue;
    assert.ok(
      cause === "protocol" || cause === "content" || (cause === "orphaned" && mayDie),
      `epoch ${epoch} ended at ${endedAtMs} ms by ${cause}`,
    );
  }
});

property("exits + each is told once, with its attempt", anyScenario, { runs: 400 }, (scenario) => {
  const told = new Map<number, number>();
  for (const { event, facts } of play(scenario, REST_MS).trace) {
    for (const fact of facts) {
      if (fact.kind === "epoch_exited") told.set(fact.attempt, (told.get(fact.attempt) ?? 0) + 1);
    }
    if (event.kind === "child_exited") assert.equal(told.get(event.attempt), 1, `attempt ${event.attempt}`);
  }
  for (const [attempt, times] of told) assert.equal(times, 1, `attempt ${attempt}`);
});

function stopped(scenario: Scenario): World {
  const world = play(scenario, 0);
  world.stop();
  world.runFor(stopBoundMs(scenario.settings));
  return world;
}

property("the end + nobody lives on", anyScenario, { runs: 600 }, (scenario) => {
  const world = stopped(scenario);
  if (!world.hasEnded) return;
  const ended = world.trace.find(({ after }) => after.phase.kind === "ended");
  assert.deepEqual([...ended?.living ?? []], []);
});

property(
  "an epoch + runs what was prepared, never a content that preflight refused",
  anyScenario,
  { runs: 300 },
  (scenario) => {
    const refused = new Set<string>();
    for (const { event, effects } of play(scenario, REST_MS).trace) {
      if (event.kind === "preflight_refused" && event.looked) {
        refused.add(`${event.looked.bootstrapDigest}+${event.looked.binaryDigest}`);
      }
      for (const effect of effects) {
        if (effect.kind === "spawn") assert.equal(refused.has(effect.plan.key), false, effect.plan.key);
      }
    }
  },
);

property(
  "a first stop + the newest outlives its predecessor, which it ends by protocol",
  anyScenario,
  { runs: 400 },
  (scenario) => {
    for (const { before, effects, event } of stopped(scenario).trace) {
      const { phase } = before;
      if (phase.kind !== "stopping" || phase.times !== 1 || event.kind === "stop") continue;
      const { newest, predecessor } = phase;
      // The step that reaps the predecessor is the one that ends the newest.
      const isReaped = event.kind === "child_exited" && event.attempt === predecessor?.epoch.attempt;
      if (newest === undefined || predecessor === undefined || isReaped) continue;
      assert.ok(!effects.some((effect) => effect.kind === "signal" && effect.attempt === newest.attempt));
    }
  },
);
