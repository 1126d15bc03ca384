// Owns: the way back to serving after a handoff that did not work: end, reap, repair, look at the admin, remember.
// Must not: signal anything but the child that failed.

import type { Child, Exit, Plan } from "./epoch.ts";
import type { IdentityAnswer, RepairOutcome } from "./event.ts";
import type { Draft } from "./draft.ts";
import type { Health, Replacing } from "./state.ts";
import { REFUSED_KEPT } from "./state.ts";
import { ADMIN_CHECK_MS, ADMIN_CHECK_POLL_MS, backoffMs, KILL_AFTER_MS, RECOVERY_TRIES } from "./bounds.ts";
import { endChild, enterServing } from "./arrive.ts";
import { type Refusal, refusal } from "./refusal.ts";
import { beginRecovery } from "./handoff.ts";

type Looked = { readonly bootstrapDigest: string; readonly binaryDigest: string };

/** No child was made, so nothing needs repair and the admin is where it was. */
export function failBeforeFork(d: Draft, phase: Replacing, why: Refusal, looked: Looked | undefined): void {
  conclude(d, phase, why, looked, phase.health);
}

export function endSuccessor(
  d: Draft,
  phase: Replacing,
  child: Child,
  why: Refusal,
  signal: "SIGTERM" | "SIGKILL",
): void {
  d.stopTimers("poll", "deadline");
  d.to({ ...phase, step: { kind: "ending", child, refusal: why } });
  endChild(d, child, "child", signal, KILL_AFTER_MS);
}

/**
 * A child that died before it was initialised leaves INITIALIZING set in the shared segment, and every later epoch would exit with
 * "previous envoy process is still initializing" (1.38.3 to 1.40.0). It is reaped, so the flag can be cleared.
 */
export function reaped(
  d: Draft,
  phase: Replacing,
  step: Extract<Replacing["step"], { kind: "initialising" | "ending" }>,
  exit: Exit,
): void {
  const { child } = step;
  const why = step.kind === "ending"
    ? step.refusal
    : refusal("child_died", `epoch ${child.number} ended before LIVE: ${exitText(exit)}`);
  d.stopTimers("poll", "deadline", "kill");
  d.to({ ...phase, step: { kind: "repairing", attempt: child.attempt, plan: child.plan, refusal: why } });
  d.do({ kind: "repair_segment", attempt: child.attempt });
}

export function exitText(exit: Exit): string {
  return exit.signal === undefined ? `exit code ${exit.code}` : `signal ${exit.signal}`;
}

export function tellRepair(d: Draft, outcome: RepairOutcome): void {
  if (outcome.kind === "failed") d.say({ kind: "segment_repair_failed", detail: outcome.detail });
  else d.say({ kind: "segment_repaired", cleared: outcome.kind === "cleared" });
}

export function repaired(
  d: Draft,
  phase: Replacing,
  step: Extract<Replacing["step"], { kind: "repairing" }>,
  outcome: RepairOutcome,
): void {
  tellRepair(d, outcome);
  const { plan, refusal } = step;
  d.to({ ...phase, step: { kind: "checking_admin", plan, refusal, sinceMs: d.nowMs } });
  checkAdmin(d, phase);
}

export function checkAdmin(d: Draft, phase: Replacing): void {
  d.do({ kind: "ask_identity", attempt: phase.from.attempt, admin: phase.from.plan.admin });
}

/** Did the failed child take the admin of the serving epoch with it? Refused for a while means yes; a timeout is the watchdog's. */
export function checkedAdmin(
  d: Draft,
  phase: Replacing,
  step: Extract<Replacing["step"], { kind: "checking_admin" }>,
  askedAtMs: number,
  answer: IdentityAnswer,
): void {
  const { from, health } = phase;
  if (answer.kind === "answered" && answer.identity.epoch === from.number) {
    if (health.kind === "admin_lost") {
      d.say({ kind: "admin_back", epoch: from.number, silentMs: d.nowMs - health.sinceMs });
    }
    return conclude(d, phase, step.refusal, step.plan, { kind: "answering" });
  }
  if (answer.kind === "silent" && answer.why !== "refused") {
    const since = health.kind === "silent" || health.kind === "hung" ? health.sinceMs : askedAtMs;
    return conclude(d, phase, step.refusal, step.plan, { kind: "silent", sinceMs: since });
  }
  if (d.nowMs - step.sinceMs < ADMIN_CHECK_MS) return d.timer("poll", ADMIN_CHECK_POLL_MS);
  const recoveries = health.kind === "admin_lost" ? health.recoveries + 1 : 0;
  const policy = recoveries < RECOVERY_TRIES ? d.settings.onLostAdmin : "keep";
  d.say({ kind: "admin_lost", epoch: from.number, policy });
  conclude(d, phase, step.refusal, step.plan, { kind: "admin_lost", sinceMs: d.nowMs, recoveries });
  if (policy === "handoff" && d.state.phase.kind === "serving") {
    if (recoveries === 0) beginRecovery(d, d.state.phase);
    else d.timer("backoff", backoffMs(recoveries));
  }
}

/** Names that say nothing about the content: the same may well work next time. */
function passing(why: Refusal): boolean {
  return why.name === "unchanged" || why.name === "refused_before";
}

function conclude(d: Draft, phase: Replacing, why: Refusal, looked: Looked | Plan | undefined, health: Health): void {
  const { handoff, from, predecessor } = phase;
  d.stopTimers("deadline", "poll", "kill");
  handoffFailed(d, phase, why);
  const tries = handoff.source === "retry" ? (d.state.retry?.tries ?? 0) : 0;
  if (!passing(why) && handoff.source !== "recovery") {
    const entry = {
      refusal: why,
      bootstrapDigest: looked?.bootstrapDigest,
      binaryDigest: looked?.binaryDigest,
      atMs: d.nowMs,
      tries,
    };
    const others = d.state.refused.filter((r) =>
      looked === undefined || r.bootstrapDigest !== looked.bootstrapDigest || r.binaryDigest !== looked.binaryDigest
    );
    d.set({ refused: [entry, ...others].slice(0, REFUSED_KEPT) });
    if (retryable(why)) planRetry(d, handoff.when, tries, why);
  }
  enterServing(d, { epoch: from, predecessor, health });
}

/** Preflight's refusals are about the content and stay; what failed to run may have failed by circumstance. */
function retryable(why: Refusal): boolean {
  return why.name === "child_died" || why.name === "live_timeout" || why.name === "control_plane_away" ||
    why.name === "spawn_failed";
}

function planRetry(d: Draft, when: "always" | "changed", tried: number, why: Refusal): void {
  // An absent control plane says nothing against the content: it is waited for without a limit.
  const tries = why.name === "control_plane_away" ? 0 : tried;
  // A newer wish is already waiting: it is the retry.
  if (tries >= d.settings.retryLimit || d.state.pending !== undefined) return d.set({ retry: undefined });
  const waitMs = d.settings.retryBackoffMs * 2 ** tries;
  d.set({ retry: { when, tries: tries + 1 } });
  d.timer("retry", waitMs);
  d.say({ kind: "retry_planned", waitMs, tries: tries + 1, limit: d.settings.retryLimit });
}

export function handoffFailed(d: Draft, phase: Replacing, why: Refusal): void {
  const { handoff, from } = phase;
  d.say({
    kind: "handoff_failed",
    handoff: handoff.id,
    from: from.number,
    to: from.number + 1,
    requests: handoff.requests,
    refusal: why,
    tookMs: d.nowMs - handoff.beganAtMs,
  });
}
