// Owns: the beginning of a handoff: its number, its preflight, its fork. Must not: look at how it goes on; replacing.ts does.

import type { Child, Plan } from "./epoch.ts";
import type { Inventory } from "./event.ts";
import type { Draft } from "./draft.ts";
import type { Handoff, Pending, Replacing, Serving } from "./state.ts";
import { pollAfterMs } from "./initialising.ts";
import { refusal } from "./refusal.ts";
import { unchanged } from "./triggers.ts";

export function beginHandoff(d: Draft, phase: Serving, pending: Pending): void {
  const source = pending.sources[0] ?? "signal";
  if (pending.when === "changed" && source !== "retry" && unchanged(d.state)) {
    return d.say({
      kind: "trigger_dropped",
      source,
      requests: pending.requests,
      refusal: refusal("unchanged", "content is what the newest epoch runs"),
    });
  }
  const handoff = number(d, { source, requests: pending.requests, when: pending.when, force: pending.force });
  const attempt = d.nextAttempt();
  enter(d, phase, handoff, { kind: "preflight", attempt, beganAtMs: d.nowMs });
  d.do({
    kind: "preflight",
    attempt,
    depth: "full",
    hotRestartVersion: phase.epoch.hotRestartVersion,
    provenKeys: d.state.proven.map((plan) => plan.key),
  });
}

/** The serving epoch lost its admin to a failed successor: a new epoch of the same plan takes over at once. */
export function beginRecovery(d: Draft, phase: Serving): void {
  const handoff = number(d, { source: "recovery", requests: [], when: "always", force: true });
  enter(d, phase, handoff, {
    kind: "awaiting_control_plane",
    attempt: d.nextAttempt(),
    plan: phase.epoch.plan,
    told: false,
  });
  fork(d, phase.epoch.plan, undefined);
}

function number(d: Draft, handoff: Omit<Handoff, "id" | "beganAtMs">): Handoff {
  d.set({ handoffs: d.state.handoffs + 1 });
  return { ...handoff, id: d.state.handoffs, beganAtMs: d.nowMs };
}

function enter(d: Draft, phase: Serving, handoff: Handoff, step: Replacing["step"]): void {
  const { epoch: from, predecessor, health } = phase;
  d.say({
    kind: "handoff_began",
    handoff: handoff.id,
    from: from.number,
    to: from.number + 1,
    source: handoff.source,
    requests: handoff.requests,
  });
  d.to({ kind: "replacing", from, health, handoff, predecessor, step });
}

/** Starts the successor of the plan that has passed. */
export function fork(d: Draft, plan: Plan, before: Inventory | undefined): void {
  const { phase } = d.state;
  if (phase.kind !== "replacing" || phase.step.kind !== "awaiting_control_plane") return;
  const { attempt } = phase.step;
  const child: Child = { attempt, number: phase.from.number + 1, plan, spawnedAtMs: d.nowMs };
  const samePid = plan.binaryDigest === phase.from.plan.binaryDigest ? phase.from.pid : undefined;
  d.stopTimers("poll", "deadline");
  d.to({ ...phase, step: { kind: "initialising", child, told: "", before } });
  d.do({
    kind: "spawn",
    attempt,
    epoch: child.number,
    plan,
    ...(samePid === undefined ? {} : { sameBinaryAsPid: samePid }),
  });
  d.timer("deadline", d.settings.liveTimeoutMs);
  d.timer("poll", pollAfterMs(0));
}
