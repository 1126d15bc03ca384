// Owns: which answers still have somebody who asked. Must not: say what an answer means.

import type { Event } from "./event.ts";
import type { Phase, State } from "./state.ts";

/** Attempts that the state still speaks of. */
export function livingAttempts(state: State): readonly number[] {
  const leaving = state.leaving.map(({ epoch }) => epoch.attempt);
  return [...attemptsOf(state.phase), ...leaving, ...some(state.standIn?.attempt)];
}

function attemptsOf(phase: Phase): readonly number[] {
  switch (phase.kind) {
    case "idle":
    case "ended":
      return [];
    case "detecting":
      return [phase.attempt];
    case "superseded":
      return [];
    case "yielding":
    case "serving":
      return [phase.epoch.attempt, ...some(phase.predecessor?.epoch.attempt)];
    case "pausing":
      return some(phase.comeback.parent?.epoch.attempt);
    case "starting": {
      const { step, comeback } = phase;
      const own = "attempt" in step ? step.attempt : step.child.attempt;
      return [own, ...some(comeback.parent?.epoch.attempt)];
    }
    case "replacing": {
      const { step } = phase;
      const own = "child" in step ? step.child.attempt : "attempt" in step ? step.attempt : undefined;
      return [...some(own), phase.from.attempt, ...some(phase.predecessor?.epoch.attempt)];
    }
    case "stopping":
      return [
        ...some(phase.child?.attempt),
        ...some(phase.newest?.attempt),
        ...some(phase.predecessor?.epoch.attempt),
        ...some(phase.step.kind === "ending_orphans" ? phase.step.attempt : undefined),
      ];
  }
}

function some(attempt: number | undefined): readonly number[] {
  return attempt === undefined ? [] : [attempt];
}

/** False for an answer about an epoch or attempt that is over: it is counted and ignored. */
export function isKnown(state: State, event: Event): boolean {
  if (!("attempt" in event)) return true;
  // A repair outlives the attempt it follows: asked for when the child is reaped, answered after the stop went on.
  if (event.kind === "segment_repaired" && state.phase.kind === "stopping") return true;
  // A lock that was granted is ours whatever became of the wish: the next step lets it go.
  if (event.kind === "handoff_lock") return true;
  return livingAttempts(state).includes(event.attempt);
}
