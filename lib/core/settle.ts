// Owns: when the turn of waiting triggers comes. Must not: say what is done then; handoff.ts does.

import type { Draft } from "./draft.ts";
import type { Pending, WaitReason } from "./state.ts";
import { beginHandoff } from "./handoff.ts";
import { take } from "./triggers.ts";

/** The turn of what waits, where nothing is under way. Called after every step. */
export function settle(d: Draft): void {
  const { phase, pending } = d.state;
  if (phase.kind !== "serving" || pending === undefined) return;
  const jitterMs = pending.notBeforeMs - d.nowMs;
  if (jitterMs > 0) return wait(d, pending, "jitter", jitterMs);
  const gap = d.settings.minGapMs;
  if (phase.predecessor !== undefined) {
    if (gap === "parent_shutdown_time") return wait(d, pending, "predecessor_drains");
    const waitMs = phase.epoch.liveAtMs + gap - d.nowMs;
    if (waitMs > 0) return wait(d, pending, "min_gap", waitMs);
    d.say({ kind: "third_generation", ends: phase.predecessor.epoch.number, successor: phase.epoch.number + 1 });
  }
  beginHandoff(d, phase, take(d, pending));
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
