// Owns: which answers still have somebody who asked. Must not: say what an answer means.

import type { Event } from "./event.ts";
import type { State } from "./state.ts";

/** Attempts that the phase still speaks of. */
export function livingAttempts(state: State): readonly number[] {
  const { phase } = state;
  switch (phase.kind) {
    case "idle":
    case "ended":
      return [];
    case "serving":
      return [phase.epoch.attempt, ...some(phase.predecessor?.epoch.attempt)];
    case "pausing":
      return some(phase.comeback.parent?.epoch.attempt);
    case "starting": {
      const { step, comeback } = phase;
      const own = "child" in step ? step.child.attempt : step.attempt;
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
  return livingAttempts(state).includes(event.attempt);
}
