// Supervisors whose Envoys outlive them, in the model of the node: killed at any time, the next one finds its way.

import assert from "node:assert/strict";
import fc from "fast-check";
import { property } from "../check.ts";
import { type Action, atRest, Play, REST_MS, type Scenario, scenarioOf, SETTINGS, standing, unharmed } from "./play.ts";

const SERVE = { ...SETTINGS, onSupervisorDeath: "serve" as const, gracePeriodMs: 0 };

/** One supervisor at a time, as systemd has it: killed, and started again. */
const kills = fc.constant<Action>({ kind: "replace" });
const events = fc.oneof(
  { weight: 4, arbitrary: kills },
  { weight: 2, arbitrary: fc.constant<Action>({ kind: "hangup", which: -1 }) },
);

/** Told once a death: the Envoys of a killed supervisor go on, whatever they were at. */
function play(scenario: Scenario): Play {
  return new Play({ ...scenario, whenSuperseded: "exit" }, SERVE);
}

property(
  "a supervisor that is killed at any time and started again + no gap in service, one serves and is Ready in the end",
  scenarioOf(events, fc.constant([])),
  { runs: 500 },
  (scenario) => {
    const told = play(scenario);
    told.runFor(REST_MS);
    unharmed(told);
    assert.equal(told.gapMs, 0, told.story());
    atRest(told);
  },
);

property(
  "a supervisor that is killed while its epochs never become LIVE + what serves is not harmed, the stuck ones are ended",
  scenarioOf(events, fc.uniqueArray(fc.integer({ min: 1, max: 4 }), { maxLength: 3 })),
  { runs: 300 },
  (scenario) => {
    const told = play(scenario);
    told.runFor(REST_MS);
    unharmed(told);
    assert.equal(told.gapMs, 0, told.story());
  },
);

property(
  "supervisors and their Envoys, killed at any time + nobody harms another's, one serves in the end",
  scenarioOf(
    fc.oneof(
      { weight: 3, arbitrary: events },
      { weight: 1, arbitrary: fc.constant<Action>({ kind: "kill_newest" }) },
      { weight: 1, arbitrary: fc.constant<Action>({ kind: "start" }) },
    ),
    fc.constant([]),
  ),
  { runs: 500 },
  (scenario) => {
    const told = play(scenario);
    told.runFor(REST_MS);
    unharmed(told);
    if (standing(told).length > 0) {
      assert.equal(told.node.living.filter(({ accepts }) => accepts).length, 1, told.story());
    }
  },
);

property(
  "a stop after any kills + it ends with 0, no Envoy, no lock is left",
  scenarioOf(events, fc.constant([])),
  { runs: 500 },
  (scenario) => {
    const told = play(scenario);
    for (const pod of standing(told)) pod.submit({ kind: "stop", source: "SIGTERM" });
    told.runFor(120_000);
    unharmed(told);
    for (const pod of told.pods) assert.ok(pod.isOver, told.story());
    assert.deepEqual(told.node.living.map(({ number }) => number), [], told.story());
    assert.equal(told.node.lockedBy, undefined);
  },
);
