// Owns: the way back to serving after a handoff that did not work: end, reap, repair, look at the admin, remember.
// Must not: signal anything but the child that failed.

import type { Child, Exit, Plan } from "./epoch.ts";
import type { IdentityAnswer, RepairOutcome } from "./event.ts";
import type { Draft } from "./draft.ts";
import type { AdminLost, Health, Replacing } from "./state.ts";
import { REFUSED_KEPT } from "./state.ts";
import { ADMIN_CHECK_MS, ADMIN_CHECK_POLL_MS, backoffMs, RECOVERY_TRIES } from "./bounds.ts";
import { enterServing, killChild } from "./arrive.ts";
import { type Refusal, refusal } from "./refusal.ts";
import { diedUnseen } from "./comeback.ts";
import { beginRecovery } from "./handoff.ts";
import { hung } from "./serving.ts";
import { mayFork } from "./settle.ts";
import { catchUp, refusedBefore } from "./triggers.ts";

/** The content that a preflight looked at. */
export type Looked = { readonly bootstrapDigest: string; readonly binaryDigest: string };

/** No child was made, so nothing needs repair and the admin is where it was. */
export function failBeforeFork(d: Draft, phase: Replacing, why: Refusal, looked: Looked | undefined): void {
  const { health, handoff } = phase;
  const lost = lostOf(health);
  const isRecovery = handoff.source === "recovery" && lost !== undefined && health.kind !== "hung";
  conclude(d, phase, why, looked, isRecovery ? { ...lost, recoveries: lost.recoveries + 1 } : health);
  planRecovery(d);
}

/** The child has to go; the serving epoch is looked after once it is reaped. */
export function endSuccessor(d: Draft, phase: Replacing, child: Child, why: Refusal, tookAdmin: boolean): void {
  d.stopTimers("poll", "deadline");
  d.to({ ...phase, step: { kind: "ending", child, refusal: why, tookAdmin } });
  killChild(d, child);
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
  const tookAdmin = step.kind === "ending" ? step.tookAdmin : step.told !== "";
  const { attempt, plan } = child;
  d.to({ ...phase, step: { kind: "repairing", attempt, plan, refusal: why, tookAdmin, sinceMs: d.nowMs, exit } });
  d.do({ kind: "repair_segment", attempt });
}

/** `exit code 1`, or `signal SIGKILL`. */
export function exitText(exit: Exit): string {
  if (exit.code === "unknown") return "exit status unknown";
  return exit.signal === undefined ? `exit code ${exit.code}` : `signal ${exit.signal}`;
}

/** A repair that failed is tried again before the next fork. */
export function tellRepair(d: Draft, outcome: RepairOutcome): void {
  d.set({ flagLeft: outcome.kind === "failed" });
  if (outcome.kind === "failed") d.say({ kind: "segment_repair_failed", detail: outcome.detail });
  else d.say({ kind: "segment_repaired", cleared: outcome.kind === "cleared" });
}

/** The flag is clear, or can't be cleared now: on to the admin. */
export function repaired(
  d: Draft,
  phase: Replacing,
  step: Extract<Replacing["step"], { kind: "repairing" }>,
  outcome: RepairOutcome,
): void {
  tellRepair(d, outcome);
  const { plan, refusal, tookAdmin, sinceMs, exit } = step;
  const isClean = outcome.kind === "clean";
  if (tookAdmin) return isClean ? diedUnseen(d, phase, step) : adminLost(d, phase, plan, refusal);
  d.to({ ...phase, step: { kind: "checking_admin", plan, refusal, sinceMs, exit, isClean } });
  checkAdmin(d, phase);
}

/** Asks at the address of the serving epoch; whoever answers says whose it is now. */
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
  // The watchdog's question from before the child took the admin proves nothing.
  if (askedAtMs < step.sinceMs) return;
  if (answer.kind === "answered" && answer.identity.epoch === from.number) {
    if (health.kind === "admin_lost") {
      d.say({ kind: "admin_back", epoch: from.number, silentMs: d.nowMs - health.sinceMs });
    }
    return conclude(d, phase, step.refusal, step.plan, { kind: "answering" });
  }
  const lost = lostOf(health);
  if (answer.kind === "silent" && answer.why !== "refused" && (lost === undefined || health.kind === "hung")) {
    const heard = health.kind === "silent" || health.kind === "hung" ? health : undefined;
    return conclude(
      d,
      phase,
      step.refusal,
      step.plan,
      heard ?? { kind: "silent", sinceMs: askedAtMs, lost },
    );
  }
  const isRefused = answer.kind === "silent";
  if (isRefused && step.isClean && lost === undefined) return diedUnseen(d, phase, step);
  if (d.nowMs - step.sinceMs < ADMIN_CHECK_MS) return d.timer("poll", ADMIN_CHECK_POLL_MS);
  adminLost(d, phase, step.plan, step.refusal);
}

function adminLost(d: Draft, phase: Replacing, plan: Plan, why: Refusal): void {
  const { from, health, handoff } = phase;
  const before = lostOf(health);
  const more = handoff.source === "recovery" ? 1 : 0;
  const lost: AdminLost = before === undefined
    ? { kind: "admin_lost", sinceMs: d.nowMs, recoveries: 0, unwellSinceMs: undefined }
    : { ...before, recoveries: before.recoveries + more };
  d.say({ kind: "admin_lost", epoch: from.number, policy: policyOf(d, lost) });
  conclude(d, phase, why, plan, health.kind === "hung" ? { ...health, by: "vitals", lost } : lost);
  planRecovery(d);
}

function lostOf(health: Health): AdminLost | undefined {
  return health.kind === "answering" ? undefined : health.kind === "admin_lost" ? health : health.lost;
}

function policyOf(d: Draft, lost: AdminLost): "handoff" | "keep" {
  return lost.recoveries < RECOVERY_TRIES ? d.settings.onLostAdmin : "keep";
}

/** A serving epoch whose admin is lost is replaced by its own plan: at once the first time, then with a growing pause. */
export function planRecovery(d: Draft): void {
  const { phase } = d.state;
  if (phase.kind !== "serving" || phase.health.kind !== "admin_lost") return;
  const { health } = phase;
  if (policyOf(d, health) !== "handoff") return;
  if (health.recoveries === 0 && health.sinceMs === d.nowMs && mayFork(d, phase.epoch.number + 1)) {
    beginRecovery(d, phase);
  } else d.timer("backoff", backoffMs(health.recoveries));
}

/** Names that say nothing about the content: the same may well work next time. */
function passing(why: Refusal): boolean {
  return why.name === "unchanged" || why.name === "refused_before" || why.name === "control_plane_away" ||
    why.name === "handoff_elsewhere";
}

function conclude(d: Draft, phase: Replacing, why: Refusal, looked: Looked | Plan | undefined, health: Health): void {
  const { handoff, from, predecessor } = phase;
  d.stopTimers("deadline", "poll", "kill");
  handoffFailed(d, phase, why);
  const { tries } = handoff;
  const before = looked && refusedBefore(d.state, looked.bootstrapDigest, looked.binaryDigest);
  // The executable is switched back, and whoever switched it is told why.
  const isOnce = handoff.source === "push" || handoff.source === "rollback";
  if (why.name === "refused_before" && before !== undefined && retryable(before.refusal)) {
    // The wish that came in between took the planned retry away; what is left of its tries is still due.
    planRetry(d, handoff.when, before.tries, before.refusal);
  } else if (why.name === "control_plane_away" || why.name === "handoff_elsewhere") {
    if (!isOnce) planRetry(d, handoff.when, tries, why);
  } else if (!passing(why) && handoff.source !== "recovery") {
    const entry = {
      refusal: why,
      bootstrapDigest: looked?.bootstrapDigest,
      binaryDigest: looked?.binaryDigest,
      atMs: d.nowMs,
      tries,
    };
    const others = d.state.refused.filter((r) =>
      r.bootstrapDigest !== looked?.bootstrapDigest || r.binaryDigest !== looked?.binaryDigest
    );
    d.set({ refused: [entry, ...others].slice(0, REFUSED_KEPT) });
    if (retryable(why) && !isOnce) planRetry(d, handoff.when, tries, why);
  }
  const settled = health.kind === "silent" && health.lost !== undefined ? health.lost : health;
  const isToBeKilled = health.kind === "hung" && d.settings.onHang === "kill";
  // While a successor may have been attached it was only told.
  if (isToBeKilled) hung(d, from, health.sinceMs, "still silent after the handoff failed");
  enterServing(d, { epoch: from, predecessor, health: settled });
  // Edited while this handoff was on its way with what was there before.
  if (looked !== undefined && d.state.seenChangedAtMs >= handoff.beganAtMs) catchUp(d);
}

/** Preflight's refusals are about the content and stay; what failed to run may have failed by circumstance. */
function retryable(why: Refusal): boolean {
  return why.name === "child_died" || why.name === "live_timeout" || why.name === "spawn_failed";
}

function planRetry(d: Draft, when: "always" | "changed", tried: number, why: Refusal): void {
  // An absent control plane says nothing against the content: it is waited for without a limit.
  const isAway = why.name === "control_plane_away";
  const tries = isAway ? 0 : tried;
  const isOver = !isAway && tries >= d.settings.retryLimit;
  // A newer wish is already waiting: it is the retry.
  if (isOver || d.state.pending !== undefined) return d.set({ retry: undefined });
  const waitMs = d.settings.retryBackoffMs * 2 ** tries;
  d.set({ retry: { when, tries: tries + 1 } });
  d.timer("retry", waitMs);
  d.say({ kind: "retry_planned", waitMs, tries: tries + 1, limit: d.settings.retryLimit });
}

/** The one outcome of a handoff that did not get to LIVE, told to whoever waits for it. */
export function handoffFailed(d: Draft, phase: Replacing, why: Refusal): void {
  const { handoff, from } = phase;
  d.say({
    kind: "handoff_failed",
    handoff: handoff.id,
    from: from.number,
    to: handoff.drained ? 0 : from.number + 1,
    requests: handoff.requests,
    refusal: why,
    tookMs: d.nowMs - handoff.beganAtMs,
  });
}
