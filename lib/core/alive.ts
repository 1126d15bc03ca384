// Owns: which Envoys of this supervisor live in a phase, as a stop has to treat them. Must not: end any.

import type { Phase, Stopping } from "./state.ts";

/** Who has to end, and in which order. */
export type Alive = Pick<Stopping, "child" | "newest" | "predecessor" | "foreign">;

/** Nothing lives. */
export const NOBODY: Alive = { child: undefined, newest: undefined, predecessor: undefined, foreign: undefined };

/** What is alive when the stop begins. */
export function alive(phase: Phase): Alive {
  switch (phase.kind) {
    case "idle":
    case "detecting":
    case "superseded":
    case "ended":
    case "stopping":
      return NOBODY;
    case "yielding":
      return { ...NOBODY, newest: phase.epoch, predecessor: phase.predecessor };
    case "serving":
      return { ...NOBODY, newest: phase.epoch, predecessor: phase.predecessor, foreign: phase.foreign };
    case "replacing": {
      const child = "child" in phase.step ? phase.step.child : undefined;
      return { child, newest: phase.from, predecessor: phase.predecessor };
    }
    case "starting": {
      const child = "child" in phase.step ? phase.step.child : undefined;
      return { ...NOBODY, child, predecessor: phase.comeback.parent };
    }
    case "pausing":
      return { ...NOBODY, predecessor: phase.comeback.parent };
  }
}
