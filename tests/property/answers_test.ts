// Answers: every handoff has one outcome, every request one answer, every wait a bound, every stop an end.

import assert from "node:assert/strict";
import type { Fact } from "../../lib/core/fact.ts";
import { handoffBoundMs, restBoundMs, stopBoundMs } from "./bounds.ts";
import { property } from "./check.ts";
import { anyScenario, play, type Scenario, unstopped } from "./scenario.ts";
import type { World } from "./world.ts";

const REST_MS = 60_000;

function factsOf<K extends Fact["kind"]>(world: World, kind: K): Extract<Fact, { kind: K }>[] {
  return world.trace.flatMap(({ facts }) => facts.filter((fact) => fact.kind === kind)) as Extract<Fact, { kind: K }>[];
}

function stoppedAfterwards(scenario: Scenario): World {
  const world = play(scenario, 0);
  world.stop();
  world.runFor(stopBoundMs(scenario.settings));
  return world;
}

property("a stop + ends within the bound, wherever it comes", anyScenario, { runs: 800 }, (scenario) => {
  const world = stoppedAfterwards(scenario);
  const { phase } = world.state;
  assert.equal(phase.kind, "ended", `${phase.kind} ${"step" in phase ? phase.step.kind : ""}`);
});

property("a stop while an epoch serves + exit code 0", unstopped, { runs: 300 }, (scenario) => {
  const world = play(scenario, 0);
  if (world.hasEnded) return;
  world.stop();
  world.runFor(stopBoundMs(scenario.settings));
  assert.ok(world.state.phase.kind === "ended");
  assert.equal(
    world.state.phase.exitCode,
    world.trace.some(({ facts }) => facts.some(isDeath)) ? world.state.phase.exitCode : 0,
  );
});

function isDeath(fact: Fact): boolean {
  return fact.kind === "newest_died" && (fact.answer === "exit" || fact.answer === "budget_used_up");
}

property("a second stop + no longer than the children take to die", anyScenario, { runs: 400 }, (scenario) => {
  const world = play(scenario, 0);
  world.stop();
  world.runFor(50);
  world.stop();
  // Child, newest and predecessor one after the other: each by SIGTERM, SIGKILL, reaped.
  world.runFor(3 * 7_000);
  assert.equal(world.state.phase.kind, "ended");
});

property("handoffs + numbered, and each concluded once", anyScenario, { runs: 500 }, (scenario) => {
  const world = stoppedAfterwards(scenario);
  const began = factsOf(world, "handoff_began").map(({ handoff }) => handoff);
  const live = factsOf(world, "handoff_live").map(({ handoff }) => handoff);
  const failed = factsOf(world, "handoff_failed").map(({ handoff }) => handoff);
  const done = factsOf(world, "handoff_done").map(({ handoff }) => handoff);
  assert.deepEqual(began, began.map((_, index) => index + 1));
  assert.deepEqual([...live, ...failed].sort((a, b) => a - b), began);
  assert.deepEqual(done.toSorted((a, b) => a - b), live);
});

property("a handoff + concluded within its bound", anyScenario, { runs: 400 }, (scenario) => {
  const boundMs = handoffBoundMs(scenario.settings);
  const began = new Map<number, number>();
  for (const { event, facts } of play(scenario, REST_MS).trace) {
    for (const fact of facts) {
      if (fact.kind === "handoff_began") began.set(fact.handoff, event.atMs);
      if (fact.kind === "handoff_live" || fact.kind === "handoff_failed") began.delete(fact.handoff);
    }
    for (const [id, atMs] of began) assert.ok(event.atMs - atMs <= boundMs, `handoff ${id} since ${atMs} ms`);
  }
});

property("requests + each accepted one is answered once", anyScenario, { runs: 600 }, (scenario) => {
  const world = stoppedAfterwards(scenario);
  const asked = [...factsOf(world, "trigger_accepted"), ...factsOf(world, "trigger_coalesced")]
    .flatMap(({ requests }) => requests);
  const dropped = factsOf(world, "trigger_dropped").flatMap(({ requests }) => requests);
  const answered = [...factsOf(world, "handoff_live"), ...factsOf(world, "handoff_failed")]
    .flatMap(({ requests }) => requests);
  const answers = [...dropped, ...answered];
  assert.equal(new Set(answers).size, answers.length, "answered twice");
  for (const request of asked) assert.ok(answers.includes(request), `${request} was never answered`);
  for (const request of answered) assert.ok(asked.includes(request), `${request} was never accepted`);
});

property("requests + none is swallowed without a word", anyScenario, { runs: 300 }, (scenario) => {
  for (const { event, facts } of play(scenario, REST_MS).trace) {
    if (event.kind !== "trigger") continue;
    const kinds = ["trigger_accepted", "trigger_coalesced", "trigger_dropped"];
    assert.equal(facts.filter(({ kind }) => kinds.slice(0, 2).includes(kind)).length <= 1, true);
    assert.ok(facts.some(({ kind }) => kinds.includes(kind)));
  }
});

property("waits + each has a timer or a question that ends it", anyScenario, { runs: 600 }, (scenario) => {
  for (const { after, timers, questions, living, event } of play(scenario, REST_MS).trace) {
    const { kind } = after.phase;
    if (kind === "ended" || kind === "idle") continue;
    const rests = ["marker", "debounce", "debounce_max", "retry", "jitter", "min_gap"];
    const running = [...timers].filter((name) => !rests.includes(name));
    // A child that was told to die is bounded by `kill`, which is a timer.
    assert.ok(running.length > 0 || questions > 0, `${kind} waits for ever at ${event.atMs} ms, ${living.size} live`);
  }
});

property("serving + the watchdog always runs", anyScenario, { runs: 400 }, (scenario) => {
  for (const { after, timers } of play(scenario, REST_MS).trace) {
    const { kind } = after.phase;
    if (kind === "serving" || kind === "replacing") assert.ok(timers.has("watchdog"));
  }
});

property("a predecessor + its bound always runs", anyScenario, { runs: 400 }, (scenario) => {
  for (const { after: { phase, leaving }, timers } of play(scenario, REST_MS).trace) {
    const drains = "predecessor" in phase ? phase.predecessor : "comeback" in phase ? phase.comeback.parent : undefined;
    if (drains !== undefined) assert.ok(timers.has("predecessor") || timers.has("kill"), phase.kind);
    if (leaving.length > 0) assert.ok(timers.has("leaving") || timers.has("kill"), phase.kind);
  }
});

property("after the last disturbance + serving, or ended", anyScenario, { runs: 400 }, (scenario) => {
  const world = play({ ...scenario, actions: [...scenario.actions, { afterMs: 0, action: { kind: "thaw" } }] }, 0);
  world.controlPlane = "none";
  world.runFor(restBoundMs(scenario.settings));
  const { kind } = world.state.phase;
  assert.ok(kind === "serving" || kind === "ended", kind);
});
