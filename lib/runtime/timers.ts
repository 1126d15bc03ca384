// Owns: the running timers of one service. Must not: decide what a timer means.

import type { TimerName } from "../core/event.ts";
import type { Clock } from "./ports.ts";

/** A timer that fired and was cleared before its event was looked at is no event any more. */
export class Timers {
  readonly #running = new Map<TimerName, { readonly ticket: number; readonly cancel: () => void }>();
  #tickets = 0;

  constructor(readonly clock: Clock, readonly fire: (name: TimerName, ticket: number) => void) {}

  set(name: TimerName, afterMs: number): void {
    this.clear(name);
    const ticket = ++this.#tickets;
    // Rounded up: a timer that fires early would find its wait not over.
    const cancel = this.clock.after(Math.max(0, Math.ceil(afterMs)), () => this.fire(name, ticket));
    this.#running.set(name, { ticket, cancel });
  }

  clear(name: TimerName): void {
    this.#running.get(name)?.cancel();
    this.#running.delete(name);
  }

  /** True once: the firing that carries this ticket is the one that was set last and not cleared since. */
  redeem(name: TimerName, ticket: number): boolean {
    if (this.#running.get(name)?.ticket !== ticket) return false;
    this.#running.delete(name);
    return true;
  }

  clearAll(): void {
    for (const { cancel } of this.#running.values()) cancel();
    this.#running.clear();
  }
}
