// Owns: which steps of a handoff a waiting person sees, and in which words. Must not: write them.

import type { Fact } from "../core/fact.ts";
import type { RecordedFact } from "../observe/record.ts";
import { describe } from "../observe/describe.ts";

export interface Phase {
  /** What goes on from now on; undefined at the end. */
  readonly next: string | undefined;
  /** What is now known of what went on before. */
  readonly done: string;
}

/** `waiting`: another handoff may be under way, whose steps are not shown. */
type Stage = "elsewhere" | "waiting" | "running" | "draining";

/** Feed it the records of the stream in order; it answers with the steps of this request only. */
export function followPhases(service: string, request: string): (record: RecordedFact) => Phase | undefined {
  let stage: Stage = "elsewhere";
  return ({ service: subject, fact }) => {
    if (subject !== service) return undefined;
    if ("requests" in fact) {
      if (!fact.requests.includes(request)) return undefined;
      stage = stageAfter(fact.kind);
    }
    const next = steps[stage][fact.kind];
    return next === undefined ? undefined : { done: describe(fact).message, next: next === "" ? undefined : next };
  };
}

function stageAfter(kind: Fact["kind"]): Stage {
  if (kind === "trigger_accepted" || kind === "trigger_coalesced") return "waiting";
  if (kind === "handoff_began" || kind === "drained_restart") return "running";
  return kind === "handoff_live" ? "draining" : "elsewhere";
}

/** Which facts are steps in which stage, and what goes on after each. */
const steps: Readonly<Record<Stage, Partial<Record<Fact["kind"], string>>>> = {
  elsewhere: { handoff_done: "" },
  waiting: { trigger_accepted: "waiting", trigger_coalesced: "waiting", trigger_deferred: "waiting" },
  running: {
    handoff_began: "preflight",
    control_plane_awaited: "waiting for the control plane",
    preflight_passed: "start",
    epoch_spawned: "initialising",
    epoch_progress: "initialising",
    epoch_live: "LIVE",
    drained_restart: "draining",
    drain_began: "draining",
    drain_ended: "ending",
    epoch_exited: "start",
    start_began: "start",
  },
  draining: { handoff_live: "draining", successor_has_fewer: "draining", predecessor_overdue: "draining" },
};
