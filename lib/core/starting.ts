// Owns: epochs that start while nobody serves: the first one, a revived one, one after a crash; and the pause before.
// Must not: decide what a death means; comeback.ts does.

import type { Child, Epoch, Exit } from "./epoch.ts";
import type { Event } from "./event.ts";
import type { Draft } from "./draft.ts";
import type { Comeback, Phase } from "./state.ts";
import { backoffMs, KILL_AFTER_MS, REVIVAL_LOCK_MS } from "./bounds.ts";
import { endChild, enterLive, exited, killChild, predecessorEnded, predecessorOverdue } from "./arrive.ts";
import { begin, beginAfresh, cleared, comebackFailed, spawn } from "./comeback.ts";
import { exitText, tellRepair } from "./failing.ts";
import { tellServes } from "./drained.ts";
import { progress } from "./initialising.ts";
import { beginDetecting } from "./detecting.ts";
import { killLeaving } from "./leaving.ts";
import { type Refusal, refusal } from "./refusal.ts";
import { standIn } from "./stand_in.ts";
import { end } from "./stopping.ts";
import { hasForeignSuccessor } from "./company.ts";
import { mayFork } from "./settle.ts";
import { enterYielding } from "./yielding.ts";

/** An epoch on its way while nobody serves. */
export type Starting = Extract<Phase, { kind: "starting" }>;
/** Between two starts. */
export type Pausing = Extract<Phase, { kind: "pausing" }>;

/** The very first start: only what is cheap is checked before the spawn, since there is nothing that could be harmed. */
export function beginFirst(d: Draft): void {
  const attempt = d.nextAttempt();
  const comeback: Comeback = {
    cause: "first",
    number: 0,
    plan: undefined,
    parent: undefined,
    foreign: undefined,
    gapSinceMs: undefined,
    tries: 0,
  };
  d.to({ kind: "starting", comeback, step: { kind: "preflight", attempt, beganAtMs: d.nowMs } });
  d.do({ kind: "preflight", attempt, depth: "first", provenKeys: [] });
}

/** Every event while an epoch starts that nobody serves in place of. */
export function starting(d: Draft, phase: Starting, event: Event): void {
  const { comeback, step } = phase;
  if (event.kind === "child_exited" && event.attempt === comeback.parent?.epoch.attempt) {
    predecessorEnded(d, comeback.parent, event.exit, comeback.number);
    // One that has not attached comes up alone.
    if (step.kind === "initialising" && step.told !== "") standIn(d, comeback.parent.epoch.number, step.child);
    return d.to({ ...phase, comeback: { ...comeback, parent: undefined } });
  }
  if (event.kind === "timer" && event.name === "predecessor") return predecessorOverdue(d, comeback.parent);
  switch (step.kind) {
    case "locking":
      return locking(d, phase, step, event);
    case "preflight":
      if (event.kind === "preflight_refused" && event.attempt === step.attempt) {
        d.say({ kind: "preflight_refused", refusal: event.refusal, tookMs: d.nowMs - step.beganAtMs });
        return end(d, 3, `${event.refusal.name}: ${event.refusal.detail}`);
      }
      if (event.kind !== "preflight_passed" || event.attempt !== step.attempt) return;
      return begin(d, { ...comeback, plan: event.plan });
    case "initialising":
      if (event.kind === "child_exited" && event.attempt === step.child.attempt) {
        d.say(exited(d, step.child, event.exit, "child"));
        const why = refusal("child_died", `epoch ${step.child.number} ended before LIVE: ${exitText(event.exit)}`);
        return childGone(d, phase, step.child.attempt, why, event.exit);
      }
      return initialising(d, phase, step, event);
    case "ending":
      if (event.kind === "child_exited" && event.attempt === step.child.attempt) {
        d.say(exited(d, step.child, event.exit, "child"));
        return childGone(d, phase, step.child.attempt, step.refusal, event.exit);
      }
      if (event.kind === "timer" && event.name === "kill") killChild(d, step.child);
      return;
    case "repairing":
      if (event.kind !== "segment_repaired" || event.attempt !== step.attempt) return;
      tellRepair(d, event.outcome);
      return comebackFailed(d, comeback, step.refusal, step.exit);
    case "clearing":
      return clearing(d, phase, step, event);
    case "diagnosing":
      return diagnosing(d, step, event);
  }
}

/** Whoever has the lock starts the successor of the predecessor that drains; without one there is nobody to be in the way of. */
function locking(
  d: Draft,
  phase: Starting,
  step: Extract<Starting["step"], { kind: "locking" }>,
  event: Event,
): void {
  const { comeback } = phase;
  if (event.kind === "handoff_lock" && event.attempt === step.attempt) {
    d.to({ ...phase, step: { ...step, lockedAtMs: d.nowMs } });
    return d.do({ kind: "look", probeLock: false });
  }
  if (event.kind !== "sighted" || step.lockedAtMs === undefined || event.askedAtMs < step.lockedAtMs) return;
  const { parent } = comeback;
  if (parent === undefined) return cleared(d, comeback);
  if (hasForeignSuccessor(d.state, parent.epoch, event.sighting)) {
    return enterYielding(d, { epoch: parent.epoch, predecessor: undefined, stop: undefined, isDeaf: true });
  }
  const mayWait = d.nowMs - step.sinceMs < d.settings.liveTimeoutMs;
  if (d.state.handoffLock || !mayWait) return spawn(d, comeback, step.attempt);
  d.to({ ...phase, step: { ...step, lockedAtMs: undefined } });
  d.do({ kind: "take_handoff_lock", attempt: step.attempt, waitMs: REVIVAL_LOCK_MS });
}

function initialising(
  d: Draft,
  phase: Starting,
  step: Extract<Starting["step"], { kind: "initialising" }>,
  event: Event,
): void {
  const { comeback } = phase;
  const outcome = progress(d, step, event);
  switch (outcome.kind) {
    case "nothing":
      return;
    case "going":
      d.to({ ...phase, step: outcome.seen });
      if (step.told === "" && outcome.seen.told !== "") adopted(d, comeback, outcome.seen.child);
      return;
    case "live":
      adopted(d, comeback, outcome.epoch);
      if (comeback.gapSinceMs !== undefined) {
        d.say({ kind: "service_gap", epoch: outcome.epoch.number, refusedMs: d.nowMs - comeback.gapSinceMs });
      }
      if (comeback.drained !== undefined) tellServes(d, comeback.drained, outcome.epoch.number);
      return enterLive(d, {
        epoch: outcome.epoch,
        predecessor: comeback.parent && { ...comeback.parent, revivals: comeback.tries + 1 },
        foreign: comeback.foreign && { ...comeback.foreign, sinceMs: d.nowMs },
        ...(comeback.foreign === undefined ? {} : { rejoins: comeback.tries }),
      });
    case "not_spawned":
      if (comeback.cause === "first") return end(d, 3, `${outcome.refusal.name}: ${outcome.refusal.detail}`);
      return comebackFailed(d, comeback, outcome.refusal, { code: 127 });
    case "too_late":
      d.stopTimers("poll", "deadline");
      d.to({ ...phase, step: { kind: "ending", child: step.child, refusal: outcome.refusal } });
      return killChild(d, step.child);
  }
}

/** It has its admin, and its parent is dead: nobody knows whether it had attached, and would talk to that one. */
function adopted(d: Draft, { cause, parent, number }: Comeback, child: Child | Epoch): void {
  if (cause === "revival" && parent === undefined && d.state.standIn === undefined) standIn(d, number - 1, child);
}

function childGone(d: Draft, phase: Starting, attempt: number, why: Refusal, exit: Exit): void {
  const { comeback } = phase;
  d.stopTimers("poll", "deadline", "kill");
  if (comeback.cause === "first" && why.name === "child_died") {
    const diagnosis = d.nextAttempt();
    d.to({ ...phase, step: { kind: "diagnosing", attempt: diagnosis, beganAtMs: d.nowMs, exit } });
    return d.do({ kind: "preflight", attempt: diagnosis, depth: "full", provenKeys: [] });
  }
  // Epoch 0 makes the segment anew; only a revived epoch meets the flag that its dead twin left.
  const hasParent = comeback.cause === "revival" || comeback.cause === "join";
  if (!hasParent) return comebackFailed(d, comeback, why, exit);
  d.to({ ...phase, step: { kind: "repairing", attempt, refusal: why, exit } });
  d.do({ kind: "repair_segment", attempt });
}

function clearing(
  d: Draft,
  phase: Starting,
  step: Extract<Starting["step"], { kind: "clearing" }>,
  event: Event,
): void {
  const { child, attempt } = step;
  if (child !== undefined && event.kind === "child_exited" && event.attempt === attempt) {
    d.stopTimers("kill");
    d.say(exited(d, child, event.exit, "child"));
    d.to({ ...phase, step: { ...step, child: undefined } });
    return d.do({ kind: "repair_segment", attempt });
  }
  if (child !== undefined && event.kind === "timer" && event.name === "kill") {
    return killChild(d, child);
  }
  if (child !== undefined || event.kind !== "segment_repaired" || event.attempt !== attempt) return;
  tellRepair(d, event.outcome);
  cleared(d, phase.comeback);
}

function diagnosing(d: Draft, step: Extract<Starting["step"], { kind: "diagnosing" }>, event: Event): void {
  if (event.kind === "preflight_refused" && event.attempt === step.attempt) {
    d.say({ kind: "preflight_refused", refusal: event.refusal, tookMs: d.nowMs - step.beganAtMs });
    return end(d, 3, `${event.refusal.name}: ${event.refusal.detail}`);
  }
  if (event.kind === "preflight_passed" && event.attempt === step.attempt) {
    end(d, 1, `epoch 0 ended before LIVE: ${exitText(step.exit)}`);
  }
}

/** A stand-in was in the way, and the first restart waits for nothing else. */
function retryAtOnce(d: Draft, comeback: Comeback): void {
  const isAfresh = comeback.cause === "crash" || comeback.cause === "drained";
  if (!isAfresh || d.state.crashesAtMs.length > 1 || comeback.parent !== undefined || !mayFork(d, 0)) return;
  d.stopTimers("backoff");
  beginAfresh(d, comeback);
}

/** Every event between two starts. */
export function pausing(d: Draft, phase: Pausing, event: Event): void {
  const { comeback } = phase;
  if (event.kind === "child_exited" && event.attempt === comeback.parent?.epoch.attempt) {
    d.stopTimers("kill");
    predecessorEnded(d, comeback.parent, event.exit, comeback.number);
    return d.to({ ...phase, comeback: { ...comeback, parent: undefined } });
  }
  if (event.kind === "stand_in_ended") return retryAtOnce(d, comeback);
  if (event.kind !== "timer") return;
  if (event.name === "kill" && comeback.parent !== undefined && comeback.cause === "crash") {
    return endChild(d, comeback.parent.epoch, "predecessor", "SIGKILL", KILL_AFTER_MS);
  }
  if (event.name === "predecessor") return predecessorOverdue(d, comeback.parent);
  if (event.name !== "backoff") return;
  if (comeback.cause === "join") return beginDetecting(d, comeback.tries);
  if (comeback.cause === "revival") return cleared(d, comeback);
  if (comeback.parent === undefined && mayFork(d, 0)) return beginAfresh(d, comeback);
  if (comeback.parent === undefined) killLeaving(d);
  d.timer("backoff", backoffMs(0));
}
