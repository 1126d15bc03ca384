import assert from "node:assert/strict";
import type { Event, Trigger } from "../../../lib/core/event.ts";
import { refusal } from "../../../lib/core/refusal.ts";
import type { State } from "../../../lib/core/state.ts";
import { transition } from "../../../lib/core/transition.ts";
import { refusedBefore, targetPlan, unchanged } from "../../../lib/core/triggers.ts";
import { at, epoch, plan, predecessor, serving, settings } from "./states.ts";

const usable = (digest: string) => ({ kind: "usable", digest }) as const;

function step(state: State, event: Event) {
  return transition(state, event, settings);
}

function trigger(patch: Partial<Trigger>): Event {
  const base: Trigger = { source: "signal", requests: [], when: "always", force: false, jitter: 0 };
  return { kind: "trigger", trigger: { ...base, ...patch }, atMs: 2_000 };
}

/** Something drains, so triggers wait. */
const waiting = serving({ epoch: epoch(3, 1), predecessor: predecessor(2, 0) });

Deno.test("unchanged + true only when something is watched and all of it is what runs", () => {
  assert.equal(unchanged(serving()), false);
  assert.equal(unchanged({ ...serving(), seen: { bootstrap: usable("b0") } }), true);
  assert.equal(unchanged({ ...serving(), seen: { bootstrap: usable("b0"), binary: usable("x1") } }), false);
  assert.equal(unchanged({ ...serving(), seen: { bootstrap: { kind: "unusable", problem: "" } } }), false);
});

Deno.test("targetPlan + what is about to run counts before what runs", () => {
  const handoff = predecessor(1, 0).handoff;
  const phase = {
    kind: "replacing",
    from: epoch(2, 0),
    health: { kind: "answering" },
    handoff,
    predecessor: undefined,
  } as const;
  const initialising = { kind: "initialising", told: "", deadlineAtMs: undefined, before: undefined } as const;
  const child = { ...epoch(3, 1, plan("b1")) };
  assert.equal(targetPlan(at({ ...phase, step: { ...initialising, child } }))?.key, "b1+x0");
  assert.equal(targetPlan(at({ ...phase, step: { kind: "preflight", attempt: 3, beganAtMs: 1 } }))?.key, "b0+x0");
  assert.equal(targetPlan(serving())?.key, "b0+x0");
  assert.equal(targetPlan(at({ kind: "idle" })), undefined);
});

Deno.test("refusedBefore + bootstrap and binary together", () => {
  const entry = { refusal: refusal("child_died", ""), bootstrapDigest: "b1", binaryDigest: "x0", atMs: 1, tries: 0 };
  const state = { ...serving(), refused: [entry] };
  assert.equal(refusedBefore(state, "b1", "x0"), entry);
  assert.equal(refusedBefore(state, "b1", "x1"), undefined);
});

Deno.test("triggers that meet + all requests kept, always and force win, the first time counts", () => {
  const first = step(waiting, trigger({ source: "bootstrap", when: "changed" })).state;
  const { state } = step(first, { ...trigger({ source: "api", requests: ["r1"], force: true }), atMs: 3_000 });
  const { pending } = step(state, trigger({ source: "bootstrap", requests: ["r2"], when: "changed" })).state;
  assert.deepEqual(pending?.sources, ["bootstrap", "api"]);
  assert.deepEqual(pending?.requests, ["r1", "r2"]);
  assert.deepEqual([pending?.when, pending?.force, pending?.sinceMs], ["always", true, 2_000]);
});

Deno.test("epochd's own retry + gives way to anybody's wish", () => {
  const retry = { when: "changed", tries: 1 } as const;
  const asked = step({ ...waiting, retry }, trigger({ source: "signal" }));
  assert.equal(asked.state.retry, undefined);
  assert.ok(asked.effects.some((effect) => effect.kind === "clear_timer" && effect.name === "retry"));
  const own = step({ ...waiting, retry }, { kind: "timer", name: "retry", atMs: 2_000 }).state;
  assert.deepEqual(own.pending?.sources, ["retry"]);
  assert.deepEqual(step(own, trigger({ source: "signal" })).state.pending?.sources, ["signal"]);
  const wish = step({ ...waiting, retry }, trigger({ source: "signal" })).state;
  const both = step({ ...wish, retry }, { kind: "timer", name: "retry", atMs: 2_000 }).state;
  assert.deepEqual(both.pending?.sources, ["signal"]);
});

Deno.test("content + of an edit seen while one subject is refused, the other one is still wanted", () => {
  const seen = { bootstrap: usable("b1"), binary: usable("x1") };
  const refused = [{
    refusal: refusal("bootstrap_invalid", ""),
    bootstrapDigest: "b1",
    binaryDigest: "x1",
    atMs: 1,
    tries: 0,
  }];
  const event: Event = { kind: "content", subject: "bootstrap", content: usable("b0"), jitter: 0, atMs: 2_000 };
  assert.notEqual(step({ ...serving(), seen, refused }, event).state.debouncing, undefined);
});

Deno.test("debounce over + told why nothing follows", () => {
  const debouncing = { jitter: 0, subject: "binary" } as const;
  const over: Event = { kind: "timer", name: "debounce", atMs: 2_000 };
  const put = step({ ...serving(), debouncing, seen: { binary: usable("x0") } }, over).facts[0];
  assert.ok(put?.kind === "trigger_dropped" && put.source === "binary" && put.refusal.name === "unchanged");
  const gone =
    step({ ...serving(), debouncing, seen: { binary: { kind: "unusable", problem: "gone" } } }, over).facts[0];
  assert.ok(gone?.kind === "trigger_dropped" && gone.refusal.detail === "binary can't be used: gone");
});
