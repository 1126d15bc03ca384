// Owns: living beside another pod's supervisor: heartbeat, looking out for a successor, the handoff lock's release.
// Must not: decide what a successor means for the phase; yielding.ts does.

import type { Draft } from "./draft.ts";
import type { Epoch } from "./epoch.ts";
import type { Sighting } from "./sighting.ts";
import type { Phase, State } from "./state.ts";
import { HEARTBEAT_MS, KILL_AFTER_MS, LOOK_MS } from "./bounds.ts";
import { readyEpoch } from "./ready.ts";

/** The epoch that is told to other pods: only one that serves. */
export function publishedEpoch(phase: Phase): Epoch | undefined {
  switch (phase.kind) {
    case "serving":
      return phase.epoch;
    case "replacing":
      return phase.from;
    case "yielding":
      return phase.isDeaf ? undefined : phase.epoch;
    case "stopping":
      return phase.step.kind === "awaiting_successor" ? phase.newest : undefined;
    default:
      return undefined;
  }
}

/** Called after every step where the base id is shared. */
export function keepCompany(d: Draft, before: State): void {
  if (!d.settings.crossPod) return;
  const { phase } = d.state;
  const was = publishedEpoch(before.phase);
  const is = publishedEpoch(phase);
  const wasReady = readyEpoch(before) !== undefined;
  if (is !== undefined && (is.attempt !== was?.attempt || (readyEpoch(d.state) !== undefined) !== wasReady)) publish(d);
  if (is !== undefined && was === undefined && phase.kind === "serving") d.timer("look", LOOK_MS);
  if (is === undefined && was !== undefined) d.stopTimers("heartbeat");
  // A wish for it that is over must not be granted later.
  if (!needsLock(phase) && (d.state.handoffLock || needsLock(before.phase))) {
    d.set({ handoffLock: false });
    d.do({ kind: "release_handoff_lock" });
  }
}

/** Tells the other pods who serves here, and goes on telling. */
export function publish(d: Draft): void {
  const epoch = publishedEpoch(d.state.phase);
  if (epoch === undefined) return;
  const ready = readyEpoch(d.state) !== undefined;
  const { number, version, plan: { admin, proof } } = epoch;
  const told = proof === undefined ? {} : { proof };
  d.do({ kind: "publish", epoch: number, ready, admin, envoyVersion: version, ...told });
  d.timer("heartbeat", HEARTBEAT_MS);
}

/** Looks for a successor of another pod, and goes on looking. `ask`: admin as well, which costs Envoy more than all the rest. */
export function lookOut(d: Draft, newest: Epoch, ask: "ask" | "sockets" = "sockets"): void {
  d.do({ kind: "look", ...(ask === "ask" ? { admin: newest.plan.admin } : {}), probeLock: true });
  d.timer("look", LOOK_MS);
}

/** From before a spawn until LIVE, or until the dead child is reaped and the flag it left is cleared. */
function needsLock(phase: Phase): boolean {
  switch (phase.kind) {
    case "detecting":
      return phase.step.kind !== "giving_way";
    case "starting":
      return true;
    case "replacing":
      return !["preflight", "counting", "awaiting_control_plane"].includes(phase.step.kind);
    case "yielding":
      return phase.mending !== undefined;
    case "stopping":
      return phase.child !== undefined || phase.isRepairing === true ||
        phase.step.kind === "verifying" || phase.step.kind === "terminating";
    case "idle":
    case "pausing":
    case "serving":
    case "superseded":
    case "ended":
      return false;
  }
}

/** A parent socket of the next number, where none of this supervisor's own can have it. */
export function hasForeignSuccessor(state: State, epoch: Epoch, seen: Sighting): boolean {
  const slot = (epoch.number + 1) % 3;
  const ownInSlot = state.leaving.some(({ epoch: { number } }) => number % 3 === slot);
  // Started, and its socket not there yet.
  const comes = seen.launches?.unfinished !== undefined && seen.launches.unfinished.epoch % 3 === slot;
  return !ownInSlot && (seen.slots.includes(slot) || comes);
}

/**
 * As long as a start may take, and not so long that kubelet would cut what follows: the drain of an epoch that stays alone, or the
 * parent shutdown time of one whose successor comes at the last moment.
 */
export function successorBoundMs(d: Draft): number {
  const { liveTimeoutMs, gracePeriodMs, drainTimeMs, parentShutdownTimeMs } = d.settings;
  if (gracePeriodMs === 0) return liveTimeoutMs;
  const restMs = gracePeriodMs - Math.max(drainTimeMs, parentShutdownTimeMs) - KILL_AFTER_MS;
  return Math.max(0, Math.min(liveTimeoutMs, restMs));
}
