// Owns: what is seen of a child between spawn and LIVE, the same for a successor and for an epoch without a parent.
// Must not: decide what follows; its callers do.

import type { Child, Epoch } from "./epoch.ts";
import type { Event, IdentityAnswer } from "./event.ts";
import type { Draft } from "./draft.ts";
import type { Initialising } from "./state.ts";
import { POLL_FAST_FOR_MS, POLL_FAST_MS, POLL_SLOW_MS } from "./bounds.ts";
import { type Refusal, refusal } from "./refusal.ts";

/** What an event means for a child. */
export type Progress =
  | { readonly kind: "nothing" }
  | { readonly kind: "going"; readonly seen: Initialising }
  | { readonly kind: "live"; readonly epoch: Epoch }
  | { readonly kind: "not_spawned"; readonly refusal: Refusal }
  | { readonly kind: "too_late"; readonly refusal: Refusal };

/** What an event says about a child: slow is shown and not repeated, and nothing but LIVE extends its deadline. */
export function progress(d: Draft, seen: Initialising, event: Event): Progress {
  const { child } = seen;
  switch (event.kind) {
    case "spawned":
      if (event.attempt !== child.attempt) return { kind: "nothing" };
      d.say({ kind: "epoch_spawned", epoch: child.number, attempt: child.attempt, pid: event.pid });
      return { kind: "going", seen: { ...seen, child: { ...child, pid: event.pid } } };
    case "spawn_failed":
      if (event.attempt !== child.attempt) return { kind: "nothing" };
      d.stopTimers("deadline", "poll");
      return { kind: "not_spawned", refusal: event.refusal };
    case "timer":
      if (event.name !== "poll" && event.name !== "deadline") return { kind: "nothing" };
      askChild(d, child);
      if (event.name === "poll") return { kind: "nothing" };
      d.stopTimers("poll");
      return { kind: "going", seen: { ...seen, deadlineAtMs: d.nowMs } };
    case "identity":
      return event.attempt === child.attempt ? answered(d, seen, event.askedAtMs, event.answer) : { kind: "nothing" };
    default:
      return { kind: "nothing" };
  }
}

function answered(d: Draft, seen: Initialising, askedAtMs: number, answer: IdentityAnswer): Progress {
  const { child, told, deadlineAtMs } = seen;
  const tookMs = d.nowMs - child.spawnedAtMs;
  // Until the child has taken the admin its parent answers there, at its own epoch: not progress, not a failure.
  const mine = answer.kind === "answered" && answer.identity.epoch === child.number ? answer.identity : undefined;
  if (mine?.state === "LIVE") {
    const { version, hotRestartVersion } = mine;
    d.say({ kind: "epoch_live", epoch: child.number, pid: child.pid ?? 0, version, tookMs });
    return { kind: "live", epoch: { ...child, liveAtMs: d.nowMs, version, hotRestartVersion } };
  }
  if (deadlineAtMs !== undefined) return askedAtMs < deadlineAtMs ? { kind: "nothing" } : tooLate(d, child, told);
  d.timer("poll", pollAfterMs(tookMs));
  if (mine === undefined || mine.state === told) return { kind: "nothing" };
  d.say({ kind: "epoch_progress", epoch: child.number, state: mine.state, tookMs });
  return { kind: "going", seen: { ...seen, told: mine.state } };
}

function tooLate(d: Draft, child: Child, told: string): Progress {
  const tookMs = Math.min(d.settings.liveTimeoutMs, d.nowMs - child.spawnedAtMs);
  const seconds = Math.round(tookMs / 100) / 10;
  const state = told === "" ? "its admin never answered" : `its admin said ${told}`;
  return {
    kind: "too_late",
    refusal: refusal("live_timeout", `epoch ${child.number} not LIVE in ${seconds} s: ${state}`),
  };
}

function askChild(d: Draft, { attempt, plan }: Child): void {
  d.do({ kind: "ask_identity", attempt, admin: plan.admin });
}

/** Polls fast while a start is as fast as it usually is. */
export function pollAfterMs(tookMs: number): number {
  return tookMs < POLL_FAST_FOR_MS ? POLL_FAST_MS : POLL_SLOW_MS;
}

/** The first look at a child that is spawned in this step; its two timers start with it. */
export function watchChild(d: Draft, child: Child): Initialising {
  d.timer("deadline", d.settings.liveTimeoutMs);
  d.timer("poll", pollAfterMs(0));
  return { kind: "initialising", child, told: "", deadlineAtMs: undefined };
}
