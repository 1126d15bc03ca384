// Owns: what is seen of a child between spawn and LIVE, the same for a successor and for an epoch without a parent.
// Must not: decide what follows; its callers do.

import type { Child, Epoch } from "./epoch.ts";
import type { Event } from "./event.ts";
import type { Draft } from "./draft.ts";
import { POLL_FAST_FOR_MS, POLL_FAST_MS, POLL_SLOW_MS } from "./bounds.ts";
import { type Refusal, refusal } from "./refusal.ts";

export type Progress =
  | { readonly kind: "nothing" }
  | { readonly kind: "going"; readonly child: Child; readonly told: string }
  | { readonly kind: "live"; readonly epoch: Epoch }
  | { readonly kind: "not_spawned"; readonly refusal: Refusal }
  | { readonly kind: "too_late"; readonly refusal: Refusal };

export function pollAfterMs(tookMs: number): number {
  return tookMs < POLL_FAST_FOR_MS ? POLL_FAST_MS : POLL_SLOW_MS;
}

/** `told`: the state that was last reported, so that a slow start is shown and not repeated. */
export function progress(d: Draft, child: Child, told: string, event: Event): Progress {
  const tookMs = d.nowMs - child.spawnedAtMs;
  switch (event.kind) {
    case "spawned":
      if (event.attempt !== child.attempt) return { kind: "nothing" };
      d.say({ kind: "epoch_spawned", epoch: child.number, attempt: child.attempt, pid: event.pid });
      return { kind: "going", child: { ...child, pid: event.pid }, told };
    case "spawn_failed":
      if (event.attempt !== child.attempt) return { kind: "nothing" };
      d.stopTimers("deadline", "poll");
      return { kind: "not_spawned", refusal: event.refusal };
    case "timer":
      if (event.name === "poll") d.do({ kind: "ask_identity", attempt: child.attempt, admin: child.plan.admin });
      else if (event.name === "deadline") {
        const seconds = d.settings.liveTimeoutMs / 1000;
        const state = told === "" ? "its admin never answered" : `its admin said ${told}`;
        return {
          kind: "too_late",
          refusal: refusal("live_timeout", `epoch ${child.number} not LIVE in ${seconds} s: ${state}`),
        };
      }
      return { kind: "nothing" };
    case "identity": {
      if (event.attempt !== child.attempt) return { kind: "nothing" };
      const { answer } = event;
      // Until the child has taken the admin its parent answers there, at its own epoch: not progress, not a failure.
      const mine = answer.kind === "answered" && answer.identity.epoch === child.number ? answer.identity : undefined;
      if (mine?.state === "LIVE") {
        d.say({
          kind: "epoch_live",
          epoch: child.number,
          pid: child.pid ?? 0,
          version: mine.version,
          tookMs,
        });
        const { version, hotRestartVersion } = mine;
        return { kind: "live", epoch: { ...child, liveAtMs: d.nowMs, version, hotRestartVersion } };
      }
      d.timer("poll", pollAfterMs(tookMs));
      if (mine === undefined || mine.state === told) return { kind: "nothing" };
      d.say({ kind: "epoch_progress", epoch: child.number, state: mine.state, tookMs });
      return { kind: "going", child, told: mine.state };
    }
    default:
      return { kind: "nothing" };
  }
}
