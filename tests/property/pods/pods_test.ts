// Several supervisors of one base id, in a model of the node: whatever happens when, one serves, and nobody harms another one's Envoy.

import assert from "node:assert/strict";
import fc from "fast-check";
import { property } from "../check.ts";
import { atRest, peaceful, Play, REST_MS, scenarioOf, standing, unharmed, violent } from "./play.ts";

property(
  "pods that come in any number at any time + nobody harms another, no gap in service, one serves and is Ready in the end",
  scenarioOf(peaceful, fc.constant([])),
  { runs: 300 },
  (scenario) => {
    const play = new Play(scenario);
    play.runFor(REST_MS);
    unharmed(play);
    assert.equal(play.gapMs, 0, play.story());
    atRest(play);
  },
);

property(
  "pods of which some never become LIVE + the one that serves is not harmed, no gap in service",
  scenarioOf(peaceful, fc.uniqueArray(fc.integer({ min: 1, max: 4 }), { maxLength: 3 })),
  { runs: 200 },
  (scenario) => {
    const play = new Play(scenario);
    play.runFor(REST_MS);
    unharmed(play);
    assert.equal(play.gapMs, 0, play.story());
  },
);

property(
  "pods that are stopped and killed at any time + nobody harms another, and one serves and is Ready in the end",
  scenarioOf(violent, fc.uniqueArray(fc.integer({ min: 1, max: 4 }), { maxLength: 1 })),
  { runs: 500 },
  (scenario) => {
    const play = new Play(scenario);
    play.runFor(REST_MS);
    unharmed(play);
    atRest(play);
  },
);

property(
  "every pod is told to go + all end with 0 or 1, no Envoy, no lock is left",
  scenarioOf(violent, fc.constant([])),
  {
    runs: 300,
  },
  (scenario) => {
    const play = new Play(scenario);
    for (const pod of standing(play)) pod.submit({ kind: "stop", source: "SIGTERM" });
    play.runFor(120_000);
    unharmed(play);
    for (const pod of play.pods) assert.ok(pod.isOver, play.story());
    assert.deepEqual(play.node.living.map(({ number }) => number), [], play.story());
    assert.equal(play.node.lockedBy, undefined);
  },
);
