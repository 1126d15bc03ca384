// Owns: the beginning of a handoff: its number, its preflight, its fork. Must not: look at how it goes on; replacing.ts does.

import type { Child, Plan } from "./epoch.ts";
import type { Inventory } from "./event.ts";
import type { Draft } from "./draft.ts";
import type { Handoff, Pending, Replacing, Serving } from "./state.ts";
import { watchChild } from "./initialising.ts";
import { refusal } from "./refusal.ts";
import { isTrial } from "./trial.ts";
import { unchanged } from "./triggers.ts";

/** The turn of what waited has come: a preflight of the newest content, unless nothing changed. */
export function beginHandoff(d: Draft, phase: Serving, pending: Pending): void {
  const source = pending.sources[0] ?? "signal";
  if (pending.when === "changed" && unchanged(d.state)) {
    d.set({ retry: undefined });
    return d.say({
      kind: "trigger_dropped",
      source,
      requests: pending.requests,
      refusal: refusal("unchanged", "content is what the newest epoch runs"),
    });
  }
  const tries = source === "retry" ? d.state.retry?.tries ?? 0 : 0;
  const { requests, when, force, drained = false } = pending;
  const onTrial = isTrial(d, pending);
  const handoff = number(d, { source, requests, when, force, tries, onTrial, ...(drained ? { drained } : {}) });
  const attempt = d.nextAttempt();
  enter(d, phase, handoff, { kind: "preflight", attempt, beganAtMs: d.nowMs });
  d.do({
    kind: "preflight",
    attempt,
    depth: "full",
    // Without a handoff nothing has to fit.
    ...(drained ? {} : { hotRestartVersion: phase.epoch.hotRestartVersion }),
    provenKeys: d.state.proven.map((plan) => plan.key),
  });
}

/** The serving epoch lost its admin to a failed successor: a new epoch of the same plan takes over at once. */
export function beginRecovery(d: Draft, phase: Serving): void {
  const handoff = number(d, {
    source: "recovery",
    requests: [],
    when: "always",
    force: true,
    tries: 0,
    onTrial: false,
  });
  const attempt = d.nextAttempt();
  const { plan } = phase.epoch;
  const isRepairing = d.state.flagLeft;
  enter(d, phase, handoff, { kind: "awaiting_control_plane", attempt, plan, told: false, isRepairing });
  if (isRepairing) d.do({ kind: "repair_segment", attempt });
  else fork(d, plan, undefined);
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
    to: handoff.drained ? 0 : from.number + 1,
    source: handoff.source,
    requests: handoff.requests,
  });
  d.to({ kind: "replacing", from, health, handoff, predecessor, step });
}

/** Starts the successor of the plan that has passed; where the base id is shared, under handoff.lock. */
export function fork(d: Draft, plan: Plan, before: Inventory | undefined): void {
  const { phase } = d.state;
  if (phase.kind !== "replacing" || phase.step.kind !== "awaiting_control_plane") return;
  const { attempt } = phase.step;
  d.stopTimers("poll", "deadline");
  const step = { kind: "locking", attempt, plan, before, lockedAtMs: undefined, isRepairing: false } as const;
  if (!d.settings.crossPod) return spawnSuccessor(d, phase, step);
  d.to({ ...phase, step });
  d.do({ kind: "take_handoff_lock", attempt, waitMs: d.settings.liveTimeoutMs });
}

/** Forks the successor; from here on the serving epoch has one. */
export function spawnSuccessor(
  d: Draft,
  phase: Replacing,
  { attempt, plan, before }: Extract<Replacing["step"], { kind: "locking" }>,
): void {
  const child: Child = { attempt, number: phase.from.number + 1, plan, spawnedAtMs: d.nowMs };
  const samePid = plan.binaryDigest === phase.from.plan.binaryDigest ? phase.from.pid : undefined;
  if (phase.predecessor !== undefined) {
    d.say({ kind: "third_generation", ends: phase.predecessor.epoch.number, successor: child.number });
  }
  d.to({ ...phase, step: { ...watchChild(d, child), before } });
  d.do({
    kind: "spawn",
    attempt,
    epoch: child.number,
    plan,
    ...(samePid === undefined ? {} : { sameBinaryAsPid: samePid }),
  });
}
