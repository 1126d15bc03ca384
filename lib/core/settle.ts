// Owns: when the turn of waiting triggers comes. Must not: say what is done then; handoff.ts does.

import type { Draft } from "./draft.ts";
import type { Pending, WaitReason } from "./state.ts";
import { beginHandoff } from "./handoff.ts";
import { endStandIn, isInTheWay } from "./stand_in.ts";
import { take } from "./triggers.ts";

/** The turn of what waits, where nothing is under way. Called after every step. */
export function settle(d: Draft): void {
  const { phase, pending } = d.state;
  if (pending === undefined) return;
  const isOnItsWay = phase.kind === "replacing" || (phase.kind === "stopping" && phase.after !== undefined);
  if (isOnItsWay) return wait(d, pending, "handoff");
  if (phase.kind !== "serving") return;
  const jitterMs = pending.notBeforeMs - d.nowMs;
  if (jitterMs > 0) return wait(d, pending, "jitter", jitterMs);
  // A fourth generation would collide with the socket names of the first.
  if (!mayFork(d, phase.epoch.number + 1) || phase.foreign !== undefined) return wait(d, pending, "predecessor_drains");
  // A successor asks it before anything else, and one that is given up meanwhile leaves questions whose answers nobody takes: a parent
  // that wakes to them aborts (1.38.3 to 1.40.0).
  const isHung = phase.health.kind === "hung" && phase.health.by === "admin";
  if (isHung && !pending.drained) return wait(d, pending, "hung");
  if (pending.drained && phase.predecessor !== undefined) return wait(d, pending, "predecessor_drains");
  const gap = d.settings.minGapMs;
  if (gap !== "parent_shutdown_time") {
    const waitMs = phase.epoch.liveAtMs + gap - d.nowMs;
    if (waitMs > 0) return wait(d, pending, "min_gap", waitMs);
  } else if (phase.predecessor !== undefined) {
    return wait(d, pending, "predecessor_drains");
  }
  beginHandoff(d, phase, take(d, pending));
}

/** Nobody is left of older generations whose socket names an epoch of this number could meet. A stand-in is sent away. */
export function mayFork(d: Draft, epoch: number): boolean {
  const isBlocked = isInTheWay(d.state, epoch);
  if (isBlocked) endStandIn(d);
  return d.state.leaving.length === 0 && !isInTheWay(d.state, epoch);
}

function wait(d: Draft, pending: Pending, reason: WaitReason, waitMs?: number): void {
  if (pending.told === reason) return;
  d.set({ pending: { ...pending, told: reason } });
  d.say({ kind: "trigger_deferred", reason, ...(waitMs === undefined ? {} : { waitMs }) });
  if (waitMs !== undefined && (reason === "jitter" || reason === "min_gap")) d.timer(reason, waitMs);
}

/** A wait is over: looked at afresh, so that a timer which fired a millisecond early is set again. */
export function waited(d: Draft): void {
  const { pending } = d.state;
  if (pending !== undefined) d.set({ pending: { ...pending, told: undefined } });
}
