// Owns: one step under construction: next state, effects, facts. Must not: outlive the step or decide anything.

import type { Effect } from "./effect.ts";
import type { TimerName } from "./event.ts";
import type { Fact } from "./fact.ts";
import type { Settings } from "./settings.ts";
import type { Phase, State } from "./state.ts";

/** What one event made: all that follows is in it. */
export interface Step {
  readonly state: State;
  readonly effects: readonly Effect[];
  readonly facts: readonly Fact[];
}

/** One step under construction; the phases write into it. */
export class Draft {
  readonly effects: Effect[] = [];
  readonly facts: Fact[] = [];

  constructor(public state: State, readonly nowMs: number, readonly settings: Settings) {}

  to(phase: Phase): void {
    this.state = { ...this.state, phase };
  }

  set(patch: Partial<State>): void {
    this.state = { ...this.state, ...patch };
  }

  do(...effects: Effect[]): void {
    this.effects.push(...effects);
  }

  say(...facts: Fact[]): void {
    this.facts.push(...facts);
  }

  timer(name: TimerName, afterMs: number): void {
    this.effects.push({ kind: "set_timer", name, afterMs });
  }

  stopTimers(...names: TimerName[]): void {
    for (const name of names) this.effects.push({ kind: "clear_timer", name });
  }

  nextAttempt(): number {
    this.set({ attempts: this.state.attempts + 1 });
    return this.state.attempts;
  }

  step(): Step {
    return { state: this.state, effects: this.effects, facts: this.facts };
  }
}
