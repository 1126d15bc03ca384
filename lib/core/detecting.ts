// Owns: the start of a supervisor that shares its base id with another pod: lock, look, check, join or start afresh.
// Must not: hold the table (predecessor.ts), or start anything without the lock.

import type { Event } from "./event.ts";
import type { Draft } from "./draft.ts";
import type { Plan } from "./epoch.ts";
import type { Owner, Sighting } from "./sighting.ts";
import type { Comeback, Detecting, Foreign } from "./state.ts";
import { LOOK_FAST_MS, PREDECESSOR_MARGIN_MS, SEEK_MS } from "./bounds.ts";
import { begin } from "./comeback.ts";
import { epochToJoin, type Verdict, verdict } from "./predecessor.ts";
import { beginFirst } from "./starting.ts";
import { end } from "./stopping.ts";

/** `tries`: joins that failed before. */
export function beginDetecting(d: Draft, tries: number): void {
  const attempt = d.nextAttempt();
  d.to({ kind: "detecting", attempt, sinceMs: d.nowMs, tries, told: false, step: { kind: "locking" } });
  d.do({ kind: "take_handoff_lock", attempt, waitMs: d.settings.liveTimeoutMs });
}

export function detecting(d: Draft, phase: Detecting, event: Event): void {
  const { step, attempt } = phase;
  switch (step.kind) {
    case "locking":
      if (event.kind === "handoff_lock" && event.attempt === attempt) locked(d, phase, event.taken, event.problem);
      return;
    case "looking":
      if (event.kind === "sighted") looked(d, phase, event.sighting);
      return;
    case "preflight":
      if (event.kind === "preflight_refused" && event.attempt === attempt) {
        d.say({ kind: "preflight_refused", refusal: event.refusal, tookMs: d.nowMs - step.beganAtMs });
        return end(d, 3, `${event.refusal.name}: ${event.refusal.detail}`);
      }
      if (event.kind !== "preflight_passed" || event.attempt !== attempt) return;
      d.to({ ...phase, sinceMs: d.nowMs, step: { kind: "deciding", plan: event.plan } });
      return d.do({ kind: "look", admin: event.plan.admin, probeLock: false });
    case "deciding":
      if (event.kind === "sighted") return decide(d, phase, step.plan, event.sighting);
      if (event.kind === "timer" && event.name === "look") {
        d.do({ kind: "look", admin: step.plan.admin, probeLock: false });
      }
      return;
  }
}

function locked(d: Draft, phase: Detecting, taken: boolean, problem: string | undefined): void {
  if (problem !== undefined) return end(d, 3, problem);
  const waitedMs = d.nowMs - phase.sinceMs;
  if (!taken) {
    if (waitedMs >= 2 * d.settings.liveTimeoutMs) {
      return end(d, 4, `another supervisor holds handoff.lock for ${Math.round(waitedMs / 1000)} s`);
    }
    d.say({ kind: "handoff_lock_awaited", waitedMs });
    return d.do({ kind: "take_handoff_lock", attempt: phase.attempt, waitMs: d.settings.liveTimeoutMs });
  }
  d.to({ ...phase, step: { kind: "looking" } });
  d.do({ kind: "look", probeLock: false });
}

/** Nobody there: an ordinary first start. Somebody: what he said of himself is taken over before the checks. */
function looked(d: Draft, phase: Detecting, seen: Sighting): void {
  if (verdict(seen) === "fresh_start") return beginFirst(d);
  adopt(d, seen.sameBoot === true ? seen.owner : undefined);
  d.to({ ...phase, step: { kind: "preflight", beganAtMs: d.nowMs } });
  d.do({ kind: "preflight", attempt: phase.attempt, depth: "full", provenKeys: [], joining: true });
}

/**
 * Concurrency must be equal in every epoch. The parent ends when this child's parent-shutdown-time says so (a parent started with 3 s
 * under a child with 9 s ended after 9.2 s), so it must fit into what the other pod's grace period bears.
 */
function adopt(d: Draft, owner: Owner | undefined): void {
  if (owner === undefined) return;
  const bornMs = owner.gracePeriodMs - PREDECESSOR_MARGIN_MS / 2;
  const capMs = owner.gracePeriodMs > 0 ? Math.max(1_000, Math.floor(bornMs / 1_000) * 1_000) : Infinity;
  const parentShutdownTimeMs = Math.min(d.settings.parentShutdownTimeMs, capMs);
  d.say({ kind: "settings_adopted", concurrency: owner.concurrency, parentShutdownTimeMs, pod: owner.pod });
  d.do({ kind: "adopt", concurrency: owner.concurrency, parentShutdownTimeMs });
}

function decide(d: Draft, phase: Detecting, plan: Plan, seen: Sighting): void {
  const how = verdict(seen);
  const comeback: Comeback = {
    cause: "first",
    number: 0,
    plan,
    parent: undefined,
    foreign: undefined,
    gapSinceMs: undefined,
    tries: phase.tries,
  };
  if (how === "fresh_start") return begin(d, comeback);
  const boundMs = seen.slots.length > 1
    ? (seen.owner?.parentShutdownTimeMs ?? d.settings.parentShutdownTimeMs) + PREDECESSOR_MARGIN_MS
    : SEEK_MS;
  const mayWait = how.startsWith("wait") && d.nowMs - phase.sinceMs < boundMs;
  if (mayWait) {
    if (!phase.told) {
      d.say({ kind: "predecessor_sought", slots: seen.slots, boundMs, why: how });
      d.to({ ...phase, told: true });
    }
    return d.timer("look", LOOK_FAST_MS);
  }
  const epoch = epochToJoin(seen, how) ?? 0;
  const foreign: Foreign = { epoch, sinceMs: d.nowMs, boundMs: boundOf(d, seen) };
  d.say({
    kind: "predecessor_found",
    epoch,
    by: proofOf(how),
    ...(seen.owner === undefined ? {} : { pod: seen.owner.pod }),
  });
  begin(d, { ...comeback, cause: "join", number: epoch + 1, foreign });
}

/** How long after LIVE its sockets may be there: this child's parent-shutdown-time rules. */
function boundOf(d: Draft, seen: Sighting): number {
  const grace = seen.owner?.gracePeriodMs ?? 0;
  const ownMs = d.settings.parentShutdownTimeMs;
  return (grace > 0 ? Math.min(ownMs, grace) : ownMs) + PREDECESSOR_MARGIN_MS;
}

function proofOf(how: Verdict): "admin" | "beat" | "sockets" {
  if (how === "join_by_admin" || how === "wait_then_by_admin") return "admin";
  return how === "join_by_beat" || how === "wait_then_by_beat" ? "beat" : "sockets";
}
