// Owns: what follows the death of the newest epoch: revival, rollback, restart in place, or the end.
// Must not: handle a live one, or start anything but an epoch that nobody serves in place of.

import { type Child, type Epoch, type Exit, mayBeClean, type Plan } from "./epoch.ts";
import type { Draft } from "./draft.ts";
import type { Comeback, Foreign, Initialising, Predecessor, Replacing } from "./state.ts";
import { REFUSED_KEPT } from "./state.ts";
import {
  ADOPTED_MS,
  backoffMs,
  KILL_AFTER_MS,
  PREDECESSOR_MARGIN_MS,
  RECOVERY_TRIES,
  REVIVAL_LOCK_MS,
  REVIVAL_TRIES,
} from "./bounds.ts";
import { endChild, enterLive, exited, wake } from "./arrive.ts";
import { goBack } from "./drained.ts";
import { watchChild } from "./initialising.ts";
import { beginDetecting } from "./detecting.ts";
import { exitText, handoffFailed } from "./failing.ts";
import { killLeaving, leave } from "./leaving.ts";
import { type Refusal, refusal } from "./refusal.ts";
import { endStandIn, isInTheWay } from "./stand_in.ts";
import { end, enterStopping } from "./stopping.ts";
import { trialOf } from "./trial.ts";
import { adminText } from "./view.ts";

/** What a failed successor left behind when the newest epoch died: its process, or after that the flag it set. */
export interface Remains {
  readonly attempt: number;
  readonly child: Child | undefined;
}

/** Nobody accepts connections from here on: the quickest way back, or the end. */
export function newestDied(
  d: Draft,
  epoch: Epoch,
  exit: Exit,
  predecessor: Predecessor | undefined,
  remains?: Remains,
): void {
  d.stopTimers("watchdog", "poll", "deadline", "retry", "backoff");
  // A failed successor on its way out keeps its own.
  if (remains?.child === undefined) d.stopTimers("kill");
  d.set({ retry: undefined });
  d.say(exited(d, epoch, exit, "newest"));
  const trial = trialOf(d, epoch);
  const back = trial?.back ?? rollbackPlan(d, epoch);
  if (back !== undefined) refuse(d, epoch.plan, exit, back);
  const plan = back ?? epoch.plan;
  const shared = {
    plan,
    foreign: undefined,
    gapSinceMs: d.nowMs,
    tries: back === undefined ? predecessor?.revivals ?? 0 : 0,
  };
  // One that dies soon after each LIVE would be revived for ever: its predecessor never gets to its end.
  if (predecessor !== undefined && shared.tries < REVIVAL_TRIES && trial?.afresh !== true) {
    d.say({ kind: "newest_died", epoch: epoch.number, exit, answer: back === undefined ? "revival" : "rollback" });
    // The same epoch number again, against the predecessor that still drains: its connections live on (1.38.3 to 1.40.0).
    return afterRemains(d, { ...shared, cause: "revival", number: epoch.number, parent: predecessor }, remains);
  }
  const comeback: Comeback = { ...shared, cause: "crash", number: 0, parent: predecessor };
  if (back === undefined) return crashed(d, comeback, epoch.number, exit, remains);
  d.say({ kind: "newest_died", epoch: epoch.number, exit, answer: "rollback" });
  afterRemains(d, comeback, remains);
}

/**
 * A child clears INITIALIZING when it tells its parent to close its listeners (1.38.3 to 1.40.0). One that died with the flag clear and
 * the admin taken was LIVE before anybody saw it; its parent drains since then, and nobody accepts.
 */
export function diedUnseen(
  d: Draft,
  phase: Replacing,
  { plan, exit, sinceMs }: { readonly plan: Plan; readonly exit: Exit; readonly sinceMs: number },
): void {
  const { from, handoff } = phase;
  d.stopTimers("watchdog", "poll", "deadline", "kill", "retry", "backoff");
  d.set({ retry: undefined });
  leave(d, phase.predecessor);
  const number = from.number + 1;
  const { id, requests, beganAtMs } = handoff;
  const isSame = plan.key === from.plan.key;
  if (!isSame) refuse(d, plan, exit, from.plan);
  d.say(
    { kind: "handoff_live", handoff: id, from: from.number, to: number, requests, tookMs: sinceMs - beganAtMs },
    { kind: "newest_died", epoch: number, exit, answer: isSame ? "revival" : "rollback" },
  );
  d.timer("predecessor", d.settings.parentShutdownTimeMs + PREDECESSOR_MARGIN_MS);
  const parent = { epoch: from, handoff, drainsSinceMs: sinceMs, revivals: 0 };
  begin(d, { cause: "revival", number, plan: from.plan, parent, gapSinceMs: sinceMs, tries: 0, foreign: undefined });
}

/** Two children at once would end or refuse each other, and a repair meant for one must not meet the other. */
function afterRemains(d: Draft, comeback: Comeback, remains: Remains | undefined): void {
  if (remains === undefined) return cleared(d, comeback);
  d.to({ kind: "starting", comeback, step: { kind: "clearing", ...remains } });
}

/** Nothing of a failed successor is left. */
export function cleared(d: Draft, comeback: Comeback): void {
  if (comeback.cause !== "revival") return startOver(d, comeback);
  if (comeback.parent !== undefined) return begin(d, comeback);
  const why = refusal("child_died", "predecessor ended before a successor could be revived");
  comebackFailed(d, comeback, why, { code: 1 });
}

/**
 * A parent that ends with 0 when its child is as old as its own parent-shutdown-time was ended by that child, which is LIVE: only its
 * admin is somewhere else than expected. It serves, so it is kept, judged by process and sockets.
 */
function wasEndedByProtocol(d: Draft, child: Child, exit: Exit): boolean {
  const parentShutdownTimeMs = child.plan.parentShutdownTimeMs ?? d.settings.parentShutdownTimeMs;
  return mayBeClean(exit) && d.nowMs - child.spawnedAtMs >= parentShutdownTimeMs;
}

/** The serving epoch ended before its successor was seen to be LIVE: that one may serve unseen, or come up alone. */
export function adoptChild(
  d: Draft,
  phase: Replacing,
  { child, told, deadlineAtMs }: Initialising,
  exit: Exit,
): void {
  if (wasEndedByProtocol(d, child, exit)) {
    const why = `epoch ${child.number} serves, and its admin does not answer at ${adminText(child.plan.admin)}`;
    leave(d, phase.predecessor);
    handoffFailed(d, phase, refusal("admin_address_differs", why));
    d.say(exited(d, phase.from, exit, "predecessor"), { kind: "admin_lost", epoch: child.number, policy: "keep" });
    const { version, hotRestartVersion } = phase.from;
    return enterLive(d, {
      epoch: { ...child, liveAtMs: d.nowMs, version, hotRestartVersion },
      predecessor: undefined,
      // Its own plan would be as unseen again.
      health: { kind: "admin_lost", sinceMs: d.nowMs, recoveries: RECOVERY_TRIES, unwellSinceMs: undefined },
    });
  }
  d.stopTimers("watchdog");
  d.timer("deadline", Math.min(ADOPTED_MS, Math.max(0, child.spawnedAtMs + d.settings.liveTimeoutMs - d.nowMs)));
  // Its successor is the one that died: no parent for the child, and ended since the child started.
  leave(d, phase.predecessor);
  handoffFailed(
    d,
    phase,
    refusal("superseded_by_crash", `epoch ${phase.from.number} died while epoch ${child.number} started`),
  );
  d.say(exited(d, phase.from, exit, "newest"), {
    kind: "newest_died",
    epoch: phase.from.number,
    exit,
    answer: "revival",
  });
  const comeback: Comeback = {
    cause: "revival",
    number: child.number,
    plan: child.plan,
    parent: undefined,
    foreign: undefined,
    gapSinceMs: d.nowMs,
    tries: 0,
  };
  d.to({ kind: "starting", comeback, step: { kind: "initialising", child, told, deadlineAtMs } });
}

function rollbackPlan(d: Draft, epoch: Epoch): Plan | undefined {
  const { rollbackWithinMs } = d.settings;
  if (rollbackWithinMs === 0 || d.nowMs - epoch.liveAtMs > rollbackWithinMs) return undefined;
  return d.state.proven.find((plan) => plan.key !== epoch.plan.key);
}

/** `back`: what comes instead. */
function refuse(d: Draft, plan: Plan, exit: Exit, back: Plan): void {
  const { bootstrapDigest, binaryDigest } = plan;
  const why = refusal("child_died", `died soon after LIVE: ${exitText(exit)}`);
  // Without a try left: it did run, and its users have paid for it.
  const entry = { refusal: why, bootstrapDigest, binaryDigest, atMs: d.nowMs, tries: d.settings.retryLimit };
  // With any bootstrap, where it is the executable that was on trial.
  const isBad = ({ key, binaryDigest }: Plan) => key === plan.key || binaryDigest === d.state.trial?.binaryDigest;
  const proven = [back, ...d.state.proven.filter((p) => !isBad(p) && p.key !== back.key)].slice(0, 2);
  d.set({ refused: [entry, ...d.state.refused].slice(0, REFUSED_KEPT), proven, trial: undefined });
}

/** Starts the epoch of a comeback. */
export function begin(d: Draft, comeback: Comeback): void {
  if (comeback.plan === undefined) return;
  const attempt = d.nextAttempt();
  if (!d.settings.crossPod || comeback.parent === undefined || d.state.handoffLock) return spawn(d, comeback, attempt);
  d.to({ kind: "starting", comeback, step: { kind: "locking", attempt, sinceMs: d.nowMs, lockedAtMs: undefined } });
  d.do({ kind: "take_handoff_lock", attempt, waitMs: REVIVAL_LOCK_MS });
}

/** Forks the child of a comeback. */
export function spawn(d: Draft, comeback: Comeback, attempt: number): void {
  const { plan, number, cause, parent } = comeback;
  if (plan === undefined) return;
  // Epoch 0 makes the segment anew.
  if (number === 0) d.set({ flagLeft: false });
  const child: Child = { attempt, number, plan, spawnedAtMs: d.nowMs };
  const pid = parent?.epoch.plan.binaryDigest === plan.binaryDigest ? parent.epoch.pid : undefined;
  d.say({ kind: "start_began", epoch: number, cause });
  wake(d, parent);
  d.to({ kind: "starting", comeback, step: watchChild(d, child) });
  d.do({ kind: "spawn", attempt, epoch: number, plan, ...(pid === undefined ? {} : { sameBinaryAsPid: pid }) });
}

/** An epoch of a comeback did not become LIVE; it is reaped and the segment is repaired. */
export function comebackFailed(d: Draft, comeback: Comeback, why: Refusal, exit: Exit): void {
  const { drained } = comeback;
  if (drained !== undefined && goBack(d, drained, why, exit)) return;
  const tries = comeback.tries + 1;
  if (comeback.cause === "revival" && comeback.parent !== undefined && tries < REVIVAL_TRIES) {
    const waitMs = backoffMs(comeback.tries);
    d.say({ kind: "restart_paused", waitMs, used: tries, budget: REVIVAL_TRIES });
    return pause(d, { ...comeback, tries }, waitMs);
  }
  if (comeback.cause === "join" && tries < REVIVAL_TRIES) {
    const waitMs = backoffMs(comeback.tries);
    d.say({ kind: "restart_paused", waitMs, used: tries, budget: REVIVAL_TRIES });
    return pause(d, { ...comeback, tries }, waitMs);
  }
  if (comeback.cause === "first" || comeback.cause === "join") {
    return end(d, why.name === "live_timeout" ? 4 : 1, `${why.name}: ${why.detail}`);
  }
  // A plan that was never LIVE is not what a fresh start is tried with.
  const { proven } = d.state;
  const plan = proven.find(({ key }) => key === comeback.plan?.key) ?? proven[0] ?? comeback.plan;
  crashed(d, { ...comeback, plan, cause: "crash", number: 0, tries, drained: undefined }, comeback.number, exit);
}

/** By `on_crash`: nobody serves, and nobody's sockets can be inherited. */
function crashed(d: Draft, comeback: Comeback, epoch: number, exit: Exit, remains?: Remains): void {
  const { onCrash, crashWindowMs, crashBudget } = d.settings;
  const recent = d.state.crashesAtMs.filter((atMs) => d.nowMs - atMs < crashWindowMs);
  if (onCrash === "exit" || recent.length >= crashBudget) {
    const answer = onCrash === "exit" ? "exit" : "budget_used_up";
    d.say({ kind: "newest_died", epoch, exit, answer });
    return enterStopping(d, {
      kind: "stopping",
      exitCode: 1,
      reason: `epoch ${epoch} died: ${exitText(exit)}`,
      times: 0,
      child: remains?.child,
      newest: undefined,
      predecessor: comeback.parent,
      step: { kind: "ending_child" },
    });
  }
  d.say({ kind: "newest_died", epoch, exit, answer: "restart" });
  d.set({ crashesAtMs: [...recent, d.nowMs] });
  afterRemains(d, comeback, remains);
}

/** Epoch 0 comes when the generations before it are gone: it could collide with their socket names. */
function startOver(d: Draft, comeback: Comeback): void {
  const used = d.state.crashesAtMs.length;
  // Its successor is gone for good and its listeners are closed.
  if (comeback.parent !== undefined) endChild(d, comeback.parent.epoch, "predecessor", "SIGTERM", KILL_AFTER_MS);
  else killLeaving(d);
  if (used <= 1 && comeback.parent === undefined && d.state.leaving.length === 0) return beginAfresh(d, comeback);
  const waitMs = backoffMs(Math.max(0, used - 1));
  d.say({ kind: "restart_paused", waitMs, used, budget: d.settings.crashBudget });
  pause(d, comeback, waitMs);
}

/** Epoch 0, unless another pod has come to the base id meanwhile. */
export function beginAfresh(d: Draft, comeback: Comeback): void {
  if (isInTheWay(d.state, 0)) {
    endStandIn(d);
    return pause(d, comeback, backoffMs(0));
  }
  if (d.settings.crossPod) beginDetecting(d, 0, comeback);
  else begin(d, comeback);
}

/** The newest died while another pod's predecessor drained, or because that one had ended too early: it is started again. */
export function rejoin(d: Draft, epoch: Epoch, exit: Exit, foreign: Foreign | undefined, tries: number): void {
  d.stopTimers("watchdog", "poll", "deadline", "retry", "backoff", "kill");
  d.set({ retry: undefined });
  d.say(exited(d, epoch, exit, "newest"), { kind: "newest_died", epoch: epoch.number, exit, answer: "revival" });
  const { number, plan } = epoch;
  const shared = { plan, parent: undefined, gapSinceMs: d.nowMs, tries };
  const comeback: Comeback = foreign === undefined
    ? { ...shared, cause: "crash", number: 0, foreign }
    : { ...shared, cause: "join", number, foreign };
  beginDetecting(d, tries, comeback);
}

function pause(d: Draft, comeback: Comeback, waitMs: number): void {
  d.stopTimers("deadline", "poll");
  d.to({ kind: "pausing", comeback });
  d.timer("backoff", waitMs);
}
