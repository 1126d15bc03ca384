import assert from "node:assert/strict";
import type { Replacing } from "../../../lib/core/state.ts";
import { transition } from "../../../lib/core/transition.ts";
import { at, child, epoch, plan, serving, settings } from "./states.ts";

function initialising(): Replacing {
  return {
    kind: "replacing",
    from: epoch(2, 0),
    health: { kind: "answering" },
    handoff: {
      id: 1,
      source: "bootstrap",
      requests: [],
      when: "changed",
      force: false,
      tries: 0,
      onTrial: false,
      beganAtMs: 1_000,
    },
    predecessor: undefined,
    step: {
      kind: "initialising",
      child: child(3, 1, plan("b1")),
      told: "",
      deadlineAtMs: undefined,
      before: undefined,
    },
  };
}

const exitOfTheParent = { kind: "child_exited", attempt: 2 } as const;

Deno.test("a parent ended by protocol + its unseen successor serves on, judged without admin", () => {
  const atMs = 1_000 + settings.parentShutdownTimeMs + 10;
  const { state, effects, facts } = transition(
    at(initialising(), { attempts: 3 }),
    { ...exitOfTheParent, exit: { code: 0 }, atMs },
    settings,
  );
  assert.equal(state.phase.kind, "serving");
  assert.equal(state.phase.kind === "serving" && state.phase.health.kind, "admin_lost");
  assert.equal(effects.some(({ kind }) => kind === "signal"), false);
  const failed = facts.find((fact) => fact.kind === "handoff_failed");
  assert.equal(failed?.kind === "handoff_failed" && failed.refusal.name, "admin_address_differs");
});

Deno.test("a parent that crashed, or ended too soon for the protocol + its child is only waited for", () => {
  for (
    const [exit, ageMs] of [
      [{ code: 137, signal: "SIGKILL" }, settings.parentShutdownTimeMs + 10],
      [{ code: 0 }, settings.parentShutdownTimeMs - 1_000],
    ] as const
  ) {
    const atMs = 1_000 + ageMs;
    const { state } = transition(at(initialising(), { attempts: 3 }), { ...exitOfTheParent, exit, atMs }, settings);
    assert.equal(state.phase.kind, "starting");
  }
});

Deno.test("a question that epochd itself could not ask + says nothing about Envoy", () => {
  let state = serving();
  for (let atMs = 10_000; atMs < 60_000; atMs += 1_000) {
    const answer = { kind: "silent", why: "unasked", detail: "Too many open files" } as const;
    const step = transition(state, { kind: "identity", attempt: 2, askedAtMs: atMs - 1, answer, atMs }, settings);
    assert.deepEqual(step.facts, []);
    state = step.state;
  }
  assert.equal(state.phase.kind === "serving" && state.phase.health.kind, "answering");
});
