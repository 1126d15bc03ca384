// Owns: one service's mailbox: event -> transition -> commit -> record -> perform, one at a time.
// Must not: block, or look into a phase.

import type { Epoch } from "../core/epoch.ts";
import type { Happening } from "../core/event.ts";
import type { ExitCode, Fact } from "../core/fact.ts";
import type { Settings } from "../core/settings.ts";
import { initialState, type State } from "../core/state.ts";
import type { ServiceStatus } from "../core/status.ts";
import { transition } from "../core/transition.ts";
import { epochsOf, view } from "../core/view.ts";
import { Performer, type ServicePorts } from "./perform.ts";
import type { ChildProcess, Clock } from "./ports.ts";
import { Timers } from "./timers.ts";

/** Without a happening: only its turn is told, by `seen`. */
interface Letter {
  readonly happening?: Happening;
  readonly seen?: () => void;
  /** Only for timers: see Timers.redeem. */
  readonly ticket?: number;
  /** Hold from this step on. */
  readonly settings?: Settings;
}

export interface ServiceOptions {
  readonly name: string;
  readonly ports: ServicePorts;
  readonly clock: Clock;
  readonly settings: Settings;
  readonly record: (fact: Fact) => void;
  readonly bug: (where: string, error: unknown) => void;
}

export class Service {
  readonly name: string;
  readonly ended: Promise<ExitCode>;
  #state: State = initialState;
  #settings: Settings;
  #mailbox: Letter[] = [];
  #stepping = false;
  readonly #timers: Timers;
  readonly #performer: Performer;
  readonly #options: ServiceOptions;
  #resolveEnded!: (code: ExitCode) => void;

  constructor(options: ServiceOptions) {
    this.#options = options;
    this.#settings = options.settings;
    this.name = options.name;
    this.ended = new Promise((resolve) => this.#resolveEnded = resolve);
    this.#timers = new Timers(
      options.clock,
      (name, ticket) => this.#post({ happening: { kind: "timer", name }, ticket }),
    );
    const submit = (happening: Happening) => this.submit(happening);
    this.#performer = new Performer(options.ports, options.clock, this.#timers, submit, options.bug);
  }

  submit(happening: Happening): void {
    this.#post({ happening });
  }

  /** New settings, in their turn: what was posted before is still decided by the old ones. */
  apply(settings: Settings): void {
    this.#post({ happening: { kind: "settings" }, settings });
  }

  /** Calls back once the mailbox has come to it: proof that it moves. */
  pulse(seen: () => void): void {
    this.#post({ seen });
  }

  /** The epoch that serves, or served last; undefined before the first is LIVE. */
  get newest(): Epoch | undefined {
    const found = epochsOf(this.#state).find(([, role]) => role === "newest")?.[0];
    return found !== undefined && "liveAtMs" in found ? found : undefined;
  }

  status(): ServiceStatus {
    const status = view(this.#state, this.#options.clock.nowMs());
    return this.#settings.onSupervisorDeath === "serve" ? { ...status, outlivesSupervisor: true } : status;
  }

  get living(): readonly ChildProcess[] {
    return this.#performer.living;
  }

  #post(letter: Letter): void {
    this.#mailbox.push(letter);
    // An effect that answers at once (spawn) only adds to the mailbox: steps never nest.
    if (this.#stepping) return;
    this.#stepping = true;
    try {
      for (let next = this.#mailbox.shift(); next !== undefined; next = this.#mailbox.shift()) this.#step(next);
    } finally {
      this.#stepping = false;
    }
  }

  #step({ happening, ticket, settings, seen }: Letter): void {
    if (happening === undefined) return seen?.();
    if (settings !== undefined) this.#settings = settings;
    const stale = happening.kind === "timer" && ticket !== undefined && !this.#timers.redeem(happening.name, ticket);
    if (stale || this.#state.phase.kind === "ended") return;
    const { clock, record, bug } = this.#options;
    const event = { ...happening, atMs: clock.nowMs() };
    let step;
    try {
      step = transition(this.#state, event, this.#settings);
    } catch (error) {
      // The state before is still whole: serving on beats ending Envoy for a bug in an unrelated event.
      return bug(`transition of ${happening.kind} in ${this.#state.phase.kind}`, error);
    }
    this.#state = step.state;
    for (const fact of step.facts) record(fact);
    for (const effect of step.effects) {
      try {
        this.#performer.perform(effect);
      } catch (error) {
        bug(`effect ${effect.kind}`, error);
      }
    }
    if (step.state.phase.kind !== "ended") return;
    this.#timers.clearAll();
    this.#resolveEnded(step.state.phase.exitCode);
  }
}
