// Owns: what new settings mean for what is already under way: timers that run by an old one. Must not: start or end anything.

import type { Draft } from "./draft.ts";
import type { Subject } from "./event.ts";
import { watchdogTickMs } from "./arrive.ts";
import { waited } from "./settle.ts";

/** The draft carries the new settings already. What belongs to an epoch that runs (its drain, its end) keeps its own. */
export function retune(d: Draft): void {
  const { phase, debouncing } = d.state;
  // `debounce_max` goes on: it bounds the wait of a change that was seen by then.
  if (debouncing !== undefined) d.timer("debounce", d.settings.debounceMs);
  if (phase.kind === "serving" || phase.kind === "replacing") {
    d.timer("watchdog", watchdogTickMs(d.settings.watchdogMs));
  }
  if (phase.kind === "starting" || phase.kind === "replacing") {
    const { step } = phase;
    if (step.kind === "initialising" && step.deadlineAtMs === undefined) {
      d.timer("deadline", Math.max(0, step.child.spawnedAtMs + d.settings.liveTimeoutMs - d.nowMs));
    }
  }
  waited(d);
}

/** Nobody looks at it any more: what was seen last says nothing about now. */
export function unwatched(d: Draft, subject: Subject): void {
  const { [subject]: _seen, ...seen } = d.state.seen;
  const { [subject]: _watch, ...watch } = d.state.watch;
  d.set({ seen, watch });
}
