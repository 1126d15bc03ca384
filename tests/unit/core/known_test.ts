import assert from "node:assert/strict";
import { isKnown, livingAttempts } from "../../../lib/core/known.ts";
import type { Event } from "../../../lib/core/event.ts";
import { at, child, epoch, plan, predecessor, serving } from "./states.ts";

function exit(attempt: number): Event {
  return { kind: "child_exited", attempt, exit: { code: 0 }, atMs: 1 };
}

Deno.test("isKnown + the newest, who drains, and who was ended by a third generation", () => {
  const state = { ...serving({ epoch: epoch(4, 2), predecessor: predecessor(3, 1) }), leaving: [predecessor(2, 0)] };
  assert.deepEqual([...livingAttempts(state)].sort(), [2, 3, 4]);
  for (const attempt of [2, 3, 4]) assert.equal(isKnown(state, exit(attempt)), true);
  assert.equal(isKnown(state, exit(1)), false);
});

Deno.test("isKnown + what is no answer, always", () => {
  assert.equal(isKnown(at({ kind: "idle" }), { kind: "stop", source: "SIGTERM", atMs: 1 }), true);
  assert.equal(isKnown(at({ kind: "idle" }), { kind: "timer", name: "kill", atMs: 1 }), true);
});

Deno.test("isKnown + the child that is put away after the serving epoch died, and its repair", () => {
  const comeback = {
    cause: "crash",
    number: 0,
    plan: plan("b0"),
    parent: undefined,
    foreign: undefined,
    gapSinceMs: 1,
    tries: 0,
  } as const;
  for (const one of [child(3, 1), undefined]) {
    const state = at({ kind: "starting", comeback, step: { kind: "clearing", attempt: 3, child: one } });
    assert.equal(isKnown(state, exit(3)), true);
    const repaired: Event = { kind: "segment_repaired", attempt: 3, outcome: { kind: "cleared" }, atMs: 1 };
    assert.equal(isKnown(state, repaired), true);
  }
});

Deno.test("isKnown + a repair that outlives its attempt, only while stopping", () => {
  const repaired: Event = { kind: "segment_repaired", attempt: 3, outcome: { kind: "clean" }, atMs: 1 };
  const stopping = at({
    kind: "stopping",
    exitCode: 0,
    reason: "",
    times: 1,
    child: undefined,
    newest: epoch(2, 0),
    predecessor: undefined,
    step: { kind: "terminating" },
  });
  assert.equal(isKnown(stopping, repaired), true);
  assert.equal(isKnown(serving(), repaired), false);
});
