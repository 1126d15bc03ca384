// Owns: an epoch with another pod's successor attached, and the supervisor that is left when the protocol has ended it.
// Must not: ever signal that epoch: its protocol ends it.

import type { Event } from "./event.ts";
import type { Draft } from "./draft.ts";
import { type Epoch, type Exit, mayBeClean } from "./epoch.ts";
import type { Sighting } from "./sighting.ts";
import type { Superseded, Yielding } from "./pod_phases.ts";
import {
  CLOSED_MS,
  LOOK_FAST_MS,
  LOOK_MS,
  READY_BY_BEAT_MS,
  READY_HANDOVER_MS,
  VANISHED_LIVE_MS,
  VANISHED_MS,
} from "./bounds.ts";
import { enterServing, exited, predecessorEnded } from "./arrive.ts";
import { begin, newestDied } from "./comeback.ts";
import { hasForeignSuccessor, lookOut } from "./company.ts";
import { beginDetecting } from "./detecting.ts";
import { planRecovery, tellRepair } from "./failing.ts";
import { endStuckSuccessor } from "./orphans.ts";
import { BEAT_AHEAD_MS, BEAT_TOO_OLD_MS } from "./predecessor.ts";
import { readyEpoch } from "./ready.ts";
import { refusal } from "./refusal.ts";
import { afterPredecessor } from "./stand_in.ts";
import { end, resumeStop } from "./stopping.ts";
import { catchUp, dropPending } from "./triggers.ts";

/** Another pod's successor is attached: nothing of this generation is signalled any more. */
export function enterYielding(
  d: Draft,
  from: Pick<Yielding, "epoch" | "predecessor" | "stop"> & { readonly isDeaf?: boolean },
): void {
  const to = from.epoch.number + 1;
  dropPending(d, refusal("superseded", `epoch ${to} of another supervisor takes over from epoch ${from.epoch.number}`));
  d.stopTimers("watchdog", "poll", "deadline", "retry", "backoff", "drain", "connections", "pre_drain", "kill");
  d.set({ retry: undefined });
  d.say({ kind: "successor_attached", epoch: from.epoch.number, to });
  d.to({
    kind: "yielding",
    ...from,
    sinceMs: d.nowMs,
    presentSinceMs: d.nowMs,
    successorLive: false,
    isDeaf: from.isDeaf === true,
    closedSinceMs: undefined,
    vanishedSinceMs: undefined,
    own: false,
    mending: undefined,
  });
  d.timer("look", LOOK_MS);
}

/** Every event while another pod's successor takes over. */
export function yielding(d: Draft, phase: Yielding, event: Event): void {
  switch (event.kind) {
    case "child_exited":
      if (event.attempt === phase.epoch.attempt) return ended(d, phase, event.exit);
      if (event.attempt !== phase.predecessor?.epoch.attempt) return;
      predecessorEnded(d, phase.predecessor, event.exit, phase.epoch.number);
      afterPredecessor(d, phase.predecessor.epoch.number, phase.epoch, event.exit, true);
      return d.to({ ...phase, predecessor: undefined });
    case "sighted":
      return sighted(d, phase, event.sighting);
    case "vitals":
      // A successor was LIVE, if only between two looks: nothing else closes these listeners.
      if (event.attempt !== phase.epoch.attempt || event.listens?.traffic !== false) return;
      return d.to({ ...phase, closedSinceMs: phase.closedSinceMs ?? d.nowMs });
    case "handoff_lock":
      if (event.attempt !== phase.epoch.attempt || phase.mending !== "locking") return;
      // Somebody is starting again: that one is waited for.
      if (!event.taken) return d.to({ ...phase, vanishedSinceMs: undefined, mending: undefined });
      d.to({ ...phase, mending: "repairing" });
      return d.do({ kind: "repair_segment", attempt: phase.epoch.attempt });
    case "segment_repaired":
      if (event.attempt !== phase.epoch.attempt || phase.mending !== "repairing") return;
      tellRepair(d, event.outcome);
      return back(d, phase);
    case "timer":
      if (event.name === "look") lookOut(d, phase.epoch, "ask");
      return;
    default:
      return;
  }
}

function sighted(d: Draft, phase: Yielding, seen: Sighting): void {
  const { epoch } = phase;
  const isThere = hasForeignSuccessor(d.state, epoch, seen);
  if (seen.handoffUnderWay !== true) endStuckSuccessor(d, seen);
  const successor = seen.identity !== undefined && seen.identity.epoch > epoch.number ? seen.identity : undefined;
  const answers = successor?.state === "LIVE";
  // Another one, started in its place between two looks.
  const isAnew = successor !== undefined && !answers;
  const presentSinceMs = isThere ? (isAnew ? undefined : phase.presentSinceMs) ?? d.nowMs : undefined;
  // What an earlier one has left in the state directory says nothing about this one.
  const beats = presentSinceMs !== undefined && isBeating(epoch, seen, d.nowMs - presentSinceMs);
  const successorLive = isThere && !isAnew && (phase.successorLive || answers || beats);
  // One that is LIVE says so at its admin or by a beat before that.
  const isClosed = phase.closedSinceMs !== undefined && (!isThere || d.nowMs - phase.closedSinceMs >= CLOSED_MS);
  const isDeaf = phase.isDeaf || successorLive || isClosed;
  if (!isDeaf) d.do({ kind: "ask_vitals", attempt: epoch.attempt, epoch: epoch.number, admin: epoch.plan.admin });
  if (!successorLive) d.timer("look", LOOK_FAST_MS);
  const now = { ...phase, presentSinceMs, successorLive, isDeaf };
  if (isThere || seen.handoffUnderWay === true) return d.to({ ...now, vanishedSinceMs: undefined });
  if (phase.mending !== undefined) return d.to(now);
  const vanishedSinceMs = phase.vanishedSinceMs ?? d.nowMs;
  const own = seen.identity?.epoch === epoch.number;
  d.to({ ...now, vanishedSinceMs, own });
  // Its supervisor is given the time to start it again.
  if (d.nowMs - vanishedSinceMs < (isDeaf ? VANISHED_LIVE_MS : VANISHED_MS)) return;
  d.say({ kind: "successor_vanished", epoch: epoch.number + 1, wasLive: isDeaf });
  d.to({ ...now, vanishedSinceMs, own, mending: "locking" });
  d.do({ kind: "take_handoff_lock", attempt: epoch.attempt, waitMs: 0 });
}

/** The successor is gone for good. One that was LIVE has closed this epoch's listeners: it is revived in its place. */
function back(d: Draft, phase: Yielding): void {
  const { epoch, predecessor, stop, isDeaf } = phase;
  if (stop !== undefined) return resumeStop(d, { ...stop, newest: epoch, predecessor });
  if (!isDeaf) {
    enterServing(d, {
      epoch,
      predecessor,
      health: phase.own
        ? { kind: "answering" }
        : { kind: "admin_lost", sinceMs: d.nowMs, recoveries: 0, unwellSinceMs: undefined },
    });
    // Edited while the successor was on its way with that edit.
    catchUp(d);
    return planRecovery(d);
  }
  const handoff = {
    id: d.state.handoffs + 1,
    source: "recovery",
    requests: [],
    when: "always",
    force: true,
    tries: 0,
    onTrial: false,
    beganAtMs: d.nowMs,
  } as const;
  d.set({ handoffs: handoff.id });
  begin(d, {
    cause: "revival",
    number: epoch.number + 1,
    plan: epoch.plan,
    parent: { epoch, handoff, drainsSinceMs: phase.sinceMs, revivals: 0 },
    foreign: undefined,
    gapSinceMs: phase.vanishedSinceMs ?? d.nowMs,
    tries: 0,
  });
}

function ended(d: Draft, phase: Yielding, exit: Exit): void {
  d.say(exited(d, phase.epoch, exit, "predecessor"));
  supersede(d, phase.epoch, exit, phase.stop, true);
}

/** The newest exited by itself: by protocol, if a successor is there to see; the next look tells. `attached`: one was seen before. */
export function supersede(d: Draft, epoch: Epoch, exit: Exit, stop: Yielding["stop"], attached: boolean): void {
  d.stopTimers("watchdog", "poll", "deadline", "retry", "backoff", "kill");
  if (stop !== undefined) return end(d, 0, stop.reason);
  d.to({
    kind: "superseded",
    epoch,
    exit,
    sinceMs: d.nowMs,
    attached,
    verified: false,
    // Only a successor that was LIVE ends its parent so.
    markerHeld: readyEpoch(d.state) !== undefined && mayBeClean(exit),
    vanishedSinceMs: undefined,
  });
  lookOut(d, epoch);
}

/** Every event after another pod's successor has taken over. */
export function superseded(d: Draft, phase: Superseded, event: Event): void {
  if (event.kind === "timer" && event.name === "look") {
    return lookOut(d, phase.epoch, phase.markerHeld ? "ask" : "sockets");
  }
  if (event.kind !== "sighted" || event.askedAtMs < phase.sinceMs) return;
  const seen = event.sighting;
  const { epoch } = phase;
  const isThere = seen.slots.length > 0 || seen.handoffUnderWay === true;
  // The supervisor of the successor was killed, and nobody else looks after that one.
  if ((seen.launches?.orphans.length ?? 0) > 0 && seen.handoffUnderWay !== true) return beginDetecting(d, 0);
  if (!phase.verified) {
    // A successor that gets SIGTERM ends its parent together with itself (1.38.3 to 1.40.0): nobody is left.
    if (!isThere && phase.attached) return afresh(d, epoch);
    if (!isThere) return newestDied(d, epoch, phase.exit, undefined);
    const policy = d.settings.whenSuperseded;
    d.say({ kind: "superseded", epoch: epoch.number, successor: epoch.number + 1, policy });
    dropPending(d, refusal("superseded", `epoch ${epoch.number + 1} of another supervisor serves`));
    // Outside pods nobody would start this supervisor again.
    if (policy === "exit") return end(d, 0, `succeeded by epoch ${epoch.number + 1} of another supervisor`);
  }
  const isReady = isPublished(epoch, seen)
    ? seen.owner?.ready === true
    : isBeating(epoch, seen, BEAT_TOO_OLD_MS) && d.nowMs - phase.sinceMs >= READY_BY_BEAT_MS;
  const starts = seen.identity !== undefined && seen.identity.state !== "LIVE";
  const mayServe = seen.slots.includes((epoch.number + 1) % 3) && !starts;
  const markerHeld = phase.markerHeld && mayServe && !isReady && d.nowMs - phase.sinceMs < READY_HANDOVER_MS;
  if (isThere) return d.to({ ...phase, verified: true, markerHeld, vanishedSinceMs: undefined });
  const vanishedSinceMs = phase.vanishedSinceMs ?? d.nowMs;
  if (d.nowMs - vanishedSinceMs < VANISHED_LIVE_MS) {
    return d.to({ ...phase, verified: true, markerHeld: false, vanishedSinceMs });
  }
  afresh(d, epoch);
}

function afresh(d: Draft, epoch: Epoch): void {
  d.say({ kind: "successor_vanished", epoch: epoch.number + 1, wasLive: true });
  beginDetecting(d, 0);
}

/** Another supervisor says in owner.json that it serves as a later epoch. */
function isPublished(epoch: Epoch, { owner, mine, sameBoot }: Sighting): boolean {
  return owner !== undefined && !mine && sameBoot === true && owner.epoch > epoch.number;
}

/** A later epoch was told of, no longer ago than this. The Go supervisor of this design does so too, and has no owner.json. */
function isBeating(epoch: Epoch, { heartbeat }: Sighting, withinMs: number): boolean {
  return heartbeat.kind === "beat" && heartbeat.epoch > epoch.number && heartbeat.ageMs <= withinMs &&
    heartbeat.ageMs >= -BEAT_AHEAD_MS;
}
