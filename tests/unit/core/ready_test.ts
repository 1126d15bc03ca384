import assert from "node:assert/strict";
import type { Health, Replacing } from "../../../lib/core/state.ts";
import { isReady, readyEpoch } from "../../../lib/core/ready.ts";
import { at, epoch, handoff, serving } from "./states.ts";

const healths: readonly (readonly [Health, boolean])[] = [
  [{ kind: "answering" }, true],
  [{ kind: "silent", sinceMs: 1, lost: undefined }, true],
  [{ kind: "admin_lost", sinceMs: 1, recoveries: 3, unwellSinceMs: 2 }, true],
  [{ kind: "hung", sinceMs: 1, by: "admin", lost: undefined }, false],
  [{ kind: "hung", sinceMs: 1, by: "vitals", lost: undefined }, false],
];

for (const [health, expected] of healths) {
  Deno.test(`readyEpoch + ${expected ? "there" : "nobody"} while the health is ${JSON.stringify(health)}`, () => {
    const replacing: Replacing = {
      kind: "replacing",
      from: epoch(2, 0),
      health,
      handoff,
      predecessor: undefined,
      step: { kind: "preflight", attempt: 3, beganAtMs: 1_000 },
    };
    for (const state of [serving({ health }), at(replacing)]) {
      assert.equal(readyEpoch(state)?.number, expected ? 0 : undefined);
    }
  });
}

Deno.test("readyEpoch + nobody before the first LIVE, while stopping, and at the end", () => {
  assert.equal(readyEpoch(at({ kind: "idle" })), undefined);
  assert.equal(readyEpoch(at({ kind: "ended", exitCode: 0, reason: "" })), undefined);
  const stopping = {
    kind: "stopping",
    exitCode: 0,
    reason: "",
    times: 1,
    child: undefined,
    predecessor: undefined,
  } as const;
  assert.equal(readyEpoch(at({ ...stopping, newest: epoch(2, 0), step: { kind: "terminating" } })), undefined);
});

Deno.test("isReady + only with a marker that can be written", () => {
  assert.equal(isReady(serving()), true);
  assert.equal(isReady({ ...serving(), markerProblem: "read-only file system" }), false);
});
