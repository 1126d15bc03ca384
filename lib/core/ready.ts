// Owns: what Ready means, and the marker that follows it. Must not: write files.

import type { Draft } from "./draft.ts";
import type { Epoch } from "./epoch.ts";
import type { Foreign, State } from "./state.ts";

/** The epoch that new connections reach, where one serves and is well. */
export function readyEpoch(state: State): Epoch | undefined {
  const { phase } = state;
  switch (phase.kind) {
    case "serving":
      return phase.health.kind === "hung" || isOthers(phase.foreign) ? undefined : phase.epoch;
    // Its own listeners are open until a successor is LIVE; from then on the successor must be there.
    case "yielding":
      return phase.isDeaf && !phase.successorLive ? undefined : phase.epoch;
    case "superseded":
      return phase.markerHeld ? phase.epoch : undefined;
    // It serves as before until it is known whether a successor comes.
    case "stopping":
      return phase.step.kind === "awaiting_successor" && !isOthers(phase.foreign) ? phase.newest : undefined;
    case "replacing":
      return phase.health.kind === "hung" ? undefined : phase.from;
    case "idle":
    case "detecting":
    case "starting":
    case "pausing":
    case "ended":
      return undefined;
  }
}

/** Another pod is Ready as long as its Envoy drains. Nobody speaks for an orphan. */
function isOthers(foreign: Foreign | undefined): boolean {
  return foreign !== undefined && foreign.orphanPid === undefined;
}

/** What is told: nobody is Ready for kubelet without a marker that can be written. */
export function isReady(state: State): boolean {
  return readyEpoch(state) !== undefined && state.markerProblem === undefined;
}

/** Called after every step: the marker appears and goes with readiness, in the step that changed it. */
export function readiness(d: Draft, before: State): void {
  const was = readyEpoch(before);
  const is = readyEpoch(d.state);
  if (is !== undefined && is.attempt !== was?.attempt) refreshMarker(d);
  const ready = isReady(d.state);
  if (ready !== isReady(before)) {
    d.say({ kind: "ready_changed", ready, ...(is === undefined ? {} : { epoch: is.number }) });
  }
  if (is !== undefined || was === undefined) return;
  d.stopTimers("marker");
  d.do({ kind: "remove_marker" });
}

/** Refreshed through the same queue as every decision: a supervisor that hangs lets its marker go stale. */
export function refreshMarker(d: Draft): void {
  const epoch = readyEpoch(d.state);
  if (epoch === undefined) return;
  d.do({ kind: "write_marker", epoch: epoch.number });
  d.timer("marker", d.settings.markerRefreshMs);
}
