// Ready: never without an epoch that serves, never lost for what is wrong with the next one, and the marker says the same.

import assert from "node:assert/strict";
import { isReady, readyEpoch } from "../../lib/core/ready.ts";
import { hangBoundMs } from "./bounds.ts";
import { property } from "./check.ts";
import { anyScenario, onlySuccessorsFail, play, unstopped } from "./scenario.ts";

const REST_MS = 60_000;
/** An exit is known this long after it. */
const EXIT_NOTICE_MS = 25;

property("Ready + only with an epoch that is LIVE and lives", anyScenario, { runs: 600 }, (scenario) => {
  const world = play(scenario, REST_MS);
  for (const { after, event } of world.trace) {
    const ready = readyEpoch(after);
    if (ready === undefined) continue;
    const envoy = world.envoys.find(ready.attempt);
    assert.ok(envoy?.wasLive, `epoch ${ready.number} is Ready before LIVE`);
    const goneMs = event.atMs - (envoy.endedAtMs ?? Infinity);
    assert.ok(goneMs <= EXIT_NOTICE_MS, `epoch ${ready.number} is Ready ${goneMs} ms after its end`);
  }
});

property("the marker + written and removed with Ready, in the same step", anyScenario, { runs: 600 }, (scenario) => {
  let marked: number | undefined;
  for (const { after, effects } of play(scenario, REST_MS).trace) {
    for (const effect of effects) {
      if (effect.kind === "write_marker") marked = effect.epoch;
      if (effect.kind === "remove_marker") marked = undefined;
    }
    assert.equal(marked, readyEpoch(after)?.number);
  }
});

property("the marker + refreshed for as long as Ready lasts", anyScenario, { runs: 300 }, (scenario) => {
  let writtenAtMs = 0;
  for (const { event, after, effects, timers } of play(scenario, REST_MS).trace) {
    if (effects.some(({ kind }) => kind === "write_marker")) writtenAtMs = event.atMs;
    if (readyEpoch(after) === undefined) continue;
    assert.ok(timers.has("marker"));
    assert.ok(event.atMs - writtenAtMs <= scenario.settings.markerRefreshMs);
  }
});

property("Ready + told when and only when it changes", anyScenario, { runs: 300 }, (scenario) => {
  for (const { before, after, facts } of play(scenario, REST_MS).trace) {
    const told = facts.filter((fact) => fact.kind === "ready_changed");
    const [was, is] = [isReady(before), isReady(after)];
    assert.deepEqual(told.map(({ ready }) => ready), was === is ? [] : [is]);
  }
});

property(
  "Ready + lost only by death, hang, stop, drained restart or a marker that can't be written",
  anyScenario,
  { runs: 400 },
  (scenario) => {
    for (const { event, facts } of play(scenario, REST_MS).trace) {
      if (!facts.some((fact) => fact.kind === "ready_changed" && !fact.ready)) continue;
      const hasReason = facts.some(({ kind }) =>
        kind === "newest_died" || kind === "epoch_hung" || kind === "stop_asked" || kind === "marker_failed" ||
        kind === "drained_restart"
      );
      assert.ok(hasReason, `lost by ${event.kind} at ${event.atMs} ms`);
    }
  },
);

property(
  "Ready + held through every failed handoff, while the epoch accepts",
  onlySuccessorsFail,
  { runs: 500 },
  (scenario) => {
    for (const { after, accepting } of play(scenario, REST_MS).trace) {
      const { phase } = after;
      const serving = phase.kind === "serving" ? phase.epoch : phase.kind === "replacing" ? phase.from : undefined;
      // One whose successor died unseen after LIVE drains, and is rightly not Ready any more.
      if (serving !== undefined && accepting.has(serving.attempt)) assert.notEqual(readyEpoch(after), undefined);
    }
  },
);

property("an epoch called hung + was frozen", anyScenario, { runs: 600 }, (scenario) => {
  const world = play(scenario, REST_MS);
  for (const { before, event, facts } of world.trace) {
    for (const fact of facts) {
      if (fact.kind !== "epoch_hung") continue;
      const { phase } = before;
      const epoch = phase.kind === "serving" ? phase.epoch : phase.kind === "replacing" ? phase.from : undefined;
      const envoy = epoch && world.envoys.find(epoch.attempt);
      const frozeAtMs = envoy?.frozeAtMs ?? Infinity;
      assert.ok(frozeAtMs < event.atMs, `epoch ${fact.epoch} was well at ${event.atMs} ms`);
    }
  }
});

property("a frozen newest epoch + Ready withdrawn within the bound", unstopped, { runs: 400 }, (scenario) => {
  const world = play(scenario, REST_MS);
  world.controlPlane = "none";
  world.runFor(REST_MS);
  if (world.state.phase.kind !== "serving") return;
  const { attempt } = world.state.phase.epoch;
  const envoy = world.envoys.find(attempt);
  // One that lost its admin is judged by process and sockets, which a dead-lock does not change.
  if (envoy === undefined || world.envoys.adminHolder !== envoy) return;
  world.envoys.freeze(envoy, "dead_locked");
  world.runFor(hangBoundMs(scenario.settings));
  assert.notEqual(readyEpoch(world.state)?.attempt, attempt);
});

property("an epoch that thaws + Ready again", unstopped, { runs: 400 }, (scenario) => {
  const world = play(scenario, REST_MS);
  if (scenario.settings.onHang === "kill" || world.state.phase.kind !== "serving") return;
  const { attempt } = world.state.phase.epoch;
  const envoy = world.envoys.find(attempt);
  if (envoy === undefined) return;
  world.envoys.freeze(envoy, "stopped");
  world.runFor(REST_MS);
  world.envoys.thaw(envoy);
  world.runFor(REST_MS);
  if (world.state.phase.kind === "serving") assert.notEqual(readyEpoch(world.state), undefined);
});
