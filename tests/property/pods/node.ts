// Owns: what several supervisors of one base id share, as a model: Envoys with their protocol, sockets, segment, lock, files.
// Measured on 1.38.3 to 1.40.0 where it is Envoy's. Must not: know the core.

import type { Exit, Identity } from "../../../lib/core/epoch.ts";
import type { StandInEnd } from "../../../lib/core/event.ts";
import type { Agenda } from "../agenda.ts";
import type { Random } from "../random.ts";

export interface Envoy {
  readonly pod: number;
  readonly attempt: number;
  readonly startedAtMs: number;
  readonly number: number;
  readonly parent: Envoy | undefined;
  /** Its socket is not there yet. */
  isUnbound: boolean;
  state: "starting" | "attached" | "live" | "dead";
  /** Accepts connections. */
  accepts: boolean;
  readonly exited: (exit: Exit) => void;
}

/** Of a pod's supervisor, for an Envoy that died while it drained. */
export interface StandIn {
  readonly pod: number;
  readonly attempt: number;
  readonly epoch: number;
  readonly isPrecaution: boolean;
  readonly ended: (end: StandInEnd) => void;
}

const VERSION = { version: "x/1.40.0/Clean/RELEASE/BoringSSL", hotRestartVersion: "11.104", concurrency: 2 };

export class Node {
  readonly envoys: Envoy[] = [];
  readonly broken: string[] = [];
  standIns: readonly StandIn[] = [];
  /** Who answers admin. */
  #admin: Envoy | undefined;
  /** INITIALIZING, and by whom it was set last. */
  #flag: Envoy | undefined;
  lockedBy: number | undefined;
  readonly files: { beat?: { epoch: number; atMs: number }; owner?: { pod: number; epoch: number; ready: boolean } } =
    {};

  constructor(readonly agenda: Agenda, readonly random: Random, readonly parentShutdownTimeMs: number) {}

  get living(): readonly Envoy[] {
    return this.envoys.filter(({ state }) => state !== "dead");
  }

  get serves(): boolean {
    return this.living.some(({ accepts }) => accepts);
  }

  get slots(): readonly number[] {
    const bound = this.living.filter(({ isUnbound }) => !isUnbound);
    return [...new Set(bound.map(({ number }) => number % 3))].sort();
  }

  /** Stand-ins have names too, and are told from Envoys. */
  #isTaken(slot: number): boolean {
    return this.slots.includes(slot) || this.standIns.some(({ epoch }) => epoch % 3 === slot);
  }

  spawn(pod: number, attempt: number, number: number, isStuck: boolean, exited: (exit: Exit) => void): void {
    const others = this.living;
    if (number === 0 && others.length > 0) this.#broke(`epoch 0 beside epoch ${others.map((e) => e.number)}`);
    const parent = number === 0 ? undefined : others.find((other) => other.number % 3 === (number + 2) % 3);
    const startedAtMs = this.agenda.nowMs;
    const envoy: Envoy = {
      pod,
      attempt,
      startedAtMs,
      number,
      parent,
      isUnbound: true,
      state: "starting",
      accepts: false,
      exited,
    };
    const isTaken = this.#isTaken(number % 3);
    this.envoys.push(envoy);
    if (isTaken) {
      this.#broke(`epoch ${number} of pod ${pod} in the slot of another one`);
      return this.#later(1, 5, () => this.#die(envoy, { code: 1 }));
    }
    if (number > 0 && this.#flag !== undefined) {
      // Somebody is initialising, or died at it.
      return this.#later(1, 5, () => this.#die(envoy, { code: 1 }));
    }
    const early = others.find(({ state }) => state === "starting" || state === "attached");
    if (this.outlives && early !== undefined) {
      this.#broke(`epoch ${number} beside epoch ${early.number}, which initialises`);
    }
    this.#later(this.outlives ? 1 : 0, this.outlives ? 120 : 0, () => this.#bind(envoy, isStuck));
  }

  /** Which supervisors live; a test that lets Envoys outlive theirs says so. */
  isAlive: (pod: number) => boolean = () => true;
  /** Envoys outlive their supervisors, and their sockets come a moment after their launch. */
  outlives = false;

  #bind(envoy: Envoy, isStuck: boolean): void {
    if (envoy.state !== "starting") return;
    const { number, parent } = envoy;
    if (number > 0 && this.#flag !== undefined) return this.#die(envoy, { code: 1 });
    this.#flag = envoy;
    envoy.isUnbound = false;
    this.#later(10, 80, () => {
      if (envoy.state !== "starting") return;
      envoy.state = "attached";
      this.#admin = envoy;
      // The third generation ends the first.
      if (parent?.parent !== undefined && parent.parent.state !== "dead") this.#die(parent.parent, { code: 0 });
      this.#terminateStandIns(number - 2);
      if (!isStuck) this.#later(20, 300, () => this.#live(envoy));
    });
  }

  /** SIGTERM of an Envoy that has attached ends its parent as well. */
  signal(envoy: Envoy, signal: "SIGTERM" | "SIGKILL"): void {
    if (envoy.state === "dead") return;
    if (signal === "SIGKILL") return this.#later(0, 10, () => this.#die(envoy, { code: 137, signal: "SIGKILL" }));
    this.#later(1, 400, () => {
      if (envoy.state === "dead") return;
      const { parent, state } = envoy;
      this.#die(envoy, { code: 0 });
      if (state !== "starting" && parent !== undefined) this.#die(parent, { code: 0 });
    });
  }

  identity(): Identity | undefined {
    if (this.#admin === undefined || this.#admin.state === "dead") return undefined;
    const { number, state } = this.#admin;
    return { epoch: number, state: state === "live" ? "LIVE" : "PRE_INITIALIZING", ...VERSION };
  }

  /** Takes the name, unless somebody has it. */
  standIn(one: StandIn): boolean {
    if (this.#isTaken(one.epoch % 3)) return false;
    this.standIns = [...this.standIns, one];
    return true;
  }

  endStandIn(one: StandIn, end: StandInEnd): void {
    if (!this.standIns.includes(one)) return;
    this.standIns = this.standIns.filter((other) => other !== one);
    one.ended(end);
  }

  holdsAdmin(envoy: Envoy): boolean {
    return this.#admin === envoy && envoy.state !== "dead";
  }

  drain(envoy: Envoy, drainTimeMs: number): void {
    this.agenda.at(drainTimeMs, () => envoy.accepts = false);
  }

  /** True when there was something to clear. */
  repair(): boolean {
    if (this.#flag === undefined) return false;
    if (this.#flag.state !== "dead") this.#broke(`cleared the flag of epoch ${this.#flag.number}, which initialises`);
    this.#flag = undefined;
    return true;
  }

  get isPoisoned(): boolean {
    return this.#flag !== undefined && this.#flag.state === "dead";
  }

  /** Set, by somebody who lives or is dead. */
  get isInitializing(): boolean {
    return this.#flag !== undefined;
  }

  childOf(envoy: Envoy): Envoy | undefined {
    return this.living.find(({ parent, state }) => parent === envoy && state !== "starting");
  }

  #live(envoy: Envoy): void {
    if (envoy.state !== "attached") return;
    envoy.state = "live";
    envoy.accepts = true;
    if (this.#flag === envoy) this.#flag = undefined;
    const { parent, number } = envoy;
    if (parent !== undefined && parent.state !== "dead") parent.accepts = false;
    this.agenda.at(this.parentShutdownTimeMs, () => {
      if (envoy.state === "dead") return;
      if (parent !== undefined) this.#die(parent, { code: 0 });
      this.#terminateStandIns(number - 1);
    });
  }

  #die(envoy: Envoy, exit: Exit): void {
    if (envoy.state === "dead") return;
    const child = this.childOf(envoy);
    envoy.state = "dead";
    envoy.accepts = false;
    envoy.exited(exit);
    for (const one of this.standIns) {
      if (one.epoch === envoy.number - 1 && !this.isAlive(one.pod)) this.endStandIn(one, { kind: "bound_over" });
    }
    // A child that was not told talks to it in vain, and aborts; one that did tell it has no more to say.
    if (child === undefined || exit.code === 0) return;
    const tries = (left: number) => {
      if (this.standIns.some(({ epoch }) => epoch === envoy.number)) return;
      if (left === 0) return this.#die(child, { code: 134, signal: "SIGABRT" });
      this.agenda.at(1_000, () => tries(left - 1));
    };
    this.agenda.at(700, () => tries(10));
  }

  #terminateStandIns(epoch: number): void {
    for (const one of this.standIns) if (one.epoch === epoch) this.endStandIn(one, { kind: "terminated" });
  }

  #later(fromMs: number, toMs: number, act: () => void): void {
    this.agenda.at(this.random.between(fromMs, toMs), act);
  }

  #broke(what: string): void {
    this.broken.push(`at ${this.agenda.nowMs}: ${what}`);
  }
}
