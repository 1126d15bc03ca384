// Owns: what follows the death of the newest epoch: revival, rollback, restart in place, or the end.
// Must not: handle a live one, or start anything but an epoch that nobody serves in place of.

import type { Child, Epoch, Exit, Plan } from "./epoch.ts";
import type { Draft } from "./draft.ts";
import type { Comeback, Predecessor, Replacing } from "./state.ts";
import { REFUSED_KEPT } from "./state.ts";
import { backoffMs, KILL_AFTER_MS, REVIVAL_TRIES } from "./bounds.ts";
import { endChild, exited } from "./arrive.ts";
import { pollAfterMs } from "./initialising.ts";
import { exitText, handoffFailed } from "./failing.ts";
import { type Refusal, refusal } from "./refusal.ts";
import { end } from "./stopping.ts";

export function newestDied(d: Draft, epoch: Epoch, exit: Exit, predecessor: Predecessor | undefined): void {
  d.stopTimers("watchdog", "poll", "deadline", "kill", "retry", "backoff");
  d.set({ retry: undefined });
  d.say(exited(d, epoch, exit, "newest"));
  const back = rollbackPlan(d, epoch);
  if (back !== undefined) refuse(d, epoch.plan, exit);
  const plan = back ?? epoch.plan;
  const shared = { plan, gapSinceMs: d.nowMs, tries: 0 };
  if (predecessor !== undefined) {
    d.say({ kind: "newest_died", epoch: epoch.number, exit, answer: back === undefined ? "revival" : "rollback" });
    // The same epoch number again, against the predecessor that still drains: its connections live on (1.38.3 to 1.40.0).
    return begin(d, { ...shared, cause: "revival", number: epoch.number, parent: predecessor });
  }
  if (back !== undefined) {
    d.say({ kind: "newest_died", epoch: epoch.number, exit, answer: "rollback" });
    return begin(d, { ...shared, cause: "crash", number: 0, parent: undefined });
  }
  crashed(d, { ...shared, cause: "crash", number: 0, parent: undefined }, epoch.number, exit);
}

/** The serving epoch died while its successor was on its way: that one goes on alone, or dies as well. */
export function adoptChild(d: Draft, phase: Replacing, child: Child, exit: Exit): void {
  d.stopTimers("watchdog");
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
    parent: phase.predecessor,
    gapSinceMs: d.nowMs,
    tries: 0,
  };
  const told = phase.step.kind === "initialising" ? phase.step.told : "";
  d.to({ kind: "starting", comeback, step: { kind: "initialising", child, told } });
}

function rollbackPlan(d: Draft, epoch: Epoch): Plan | undefined {
  if (d.nowMs - epoch.liveAtMs > d.settings.rollbackWithinMs) return undefined;
  return d.state.proven.find((plan) => plan.key !== epoch.plan.key);
}

function refuse(d: Draft, plan: Plan, exit: Exit): void {
  const { bootstrapDigest, binaryDigest } = plan;
  const why = refusal("child_died", `died soon after LIVE: ${exitText(exit)}`);
  const entry = { refusal: why, bootstrapDigest, binaryDigest, atMs: d.nowMs, tries: 0 };
  const proven = d.state.proven.filter((p) => p.key !== plan.key);
  d.set({ refused: [entry, ...d.state.refused].slice(0, REFUSED_KEPT), proven });
}

/** Spawns the epoch of a comeback. */
export function begin(d: Draft, comeback: Comeback): void {
  const { plan, number, cause, parent } = comeback;
  if (plan === undefined) return;
  const attempt = d.nextAttempt();
  const child: Child = { attempt, number, plan, spawnedAtMs: d.nowMs };
  const pid = parent?.epoch.plan.binaryDigest === plan.binaryDigest ? parent.epoch.pid : undefined;
  d.say({ kind: "start_began", epoch: number, cause });
  d.to({ kind: "starting", comeback, step: { kind: "initialising", child, told: "" } });
  d.do({ kind: "spawn", attempt, epoch: number, plan, ...(pid === undefined ? {} : { sameBinaryAsPid: pid }) });
  d.timer("deadline", d.settings.liveTimeoutMs);
  d.timer("poll", pollAfterMs(0));
}

/** An epoch of a comeback did not become LIVE; it is reaped and the segment is repaired. */
export function comebackFailed(d: Draft, comeback: Comeback, why: Refusal, exit: Exit): void {
  const tries = comeback.tries + 1;
  if (comeback.cause === "revival" && comeback.parent !== undefined && tries < REVIVAL_TRIES) {
    const waitMs = backoffMs(comeback.tries);
    d.say({ kind: "restart_paused", waitMs, used: tries, budget: REVIVAL_TRIES });
    return pause(d, { ...comeback, tries }, waitMs);
  }
  if (comeback.cause === "first") return end(d, why.name === "live_timeout" ? 4 : 1, `${why.name}: ${why.detail}`);
  crashed(d, { ...comeback, cause: "crash", number: 0, tries }, comeback.number, exit);
}

/** By `on_crash`: nobody serves, and nobody's sockets can be inherited. */
function crashed(d: Draft, comeback: Comeback, epoch: number, exit: Exit): void {
  const { onCrash, crashWindowMs, crashBudget } = d.settings;
  const recent = d.state.crashesAtMs.filter((atMs) => d.nowMs - atMs < crashWindowMs);
  if (onCrash === "exit" || recent.length >= crashBudget) {
    const answer = onCrash === "exit" ? "exit" : "budget_used_up";
    d.say({ kind: "newest_died", epoch, exit, answer });
    const reason = `epoch ${epoch} died: ${exitText(exit)}`;
    if (comeback.parent === undefined) return end(d, 1, reason);
    d.to({
      kind: "stopping",
      exitCode: 1,
      reason,
      times: 0,
      child: undefined,
      newest: comeback.parent.epoch,
      predecessor: undefined,
      step: { kind: "terminating" },
    });
    return endChild(d, comeback.parent.epoch, "predecessor", "SIGTERM", KILL_AFTER_MS);
  }
  d.say({ kind: "newest_died", epoch, exit, answer: "restart" });
  d.set({ crashesAtMs: [...recent, d.nowMs] });
  // Its successor is gone for good and its listeners are closed: epoch 0 could collide with its socket names.
  if (comeback.parent !== undefined) endChild(d, comeback.parent.epoch, "predecessor", "SIGTERM", KILL_AFTER_MS);
  if (recent.length === 0 && comeback.parent === undefined) return begin(d, comeback);
  const waitMs = backoffMs(recent.length);
  d.say({ kind: "restart_paused", waitMs, used: recent.length + 1, budget: crashBudget });
  pause(d, comeback, waitMs);
}

function pause(d: Draft, comeback: Comeback, waitMs: number): void {
  d.stopTimers("deadline", "poll");
  d.to({ kind: "pausing", comeback });
  d.timer("backoff", waitMs);
}
