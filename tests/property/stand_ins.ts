// Owns: a model of the stand-ins of one base id: who is up, and how each ends. Must not: know supervisor or Envoy.

import type { StandInEnd } from "../../lib/core/event.ts";
import type { Agenda } from "./agenda.ts";
import type { Random } from "./random.ts";

interface StandIn {
  readonly attempt: number;
  readonly epoch: number;
  isUp: boolean;
}

export class StandIns {
  #living: StandIn[] = [];
  works = true;
  /** That ever lived at once: one that is replaced dies in a moment. */
  most = 0;

  constructor(
    readonly agenda: Agenda,
    readonly random: Random,
    /** A living Envoy has this slot's name. */
    readonly isTaken: (slot: number) => boolean,
    readonly began: (attempt: number) => void,
    readonly ended: (attempt: number, end: StandInEnd) => void,
  ) {}

  get count(): number {
    return this.#living.length;
  }

  /** Answers in the place of this epoch. */
  isUp(epoch: number): boolean {
    return this.#living.some((one) => one.isUp && one.epoch === epoch);
  }

  holds(slot: number): boolean {
    return this.#living.some((one) => one.isUp && one.epoch % 3 === slot);
  }

  begin(attempt: number, epoch: number, boundMs: number): void {
    const one: StandIn = { attempt, epoch, isUp: false };
    this.#living.push(one);
    this.most = Math.max(this.most, this.#living.length);
    const { random, agenda } = this;
    agenda.at(random.between(1, 25), () => {
      if (!this.#living.includes(one)) return;
      if (!this.works || this.isTaken(epoch % 3) || this.holds(epoch % 3)) {
        return this.#end(one, {
          kind: this.works ? "name_taken" : "failed",
          problem: this.works ? "the name is taken" : "no such file",
        });
      }
      one.isUp = true;
      this.began(attempt);
    });
    agenda.at(boundMs, () => this.#end(one, { kind: "bound_over" }));
  }

  /** Its successor has told it to. */
  terminate(epoch: number): void {
    for (const one of this.#living.filter((each) => each.isUp && each.epoch === epoch)) {
      this.#end(one, { kind: "terminated" });
    }
  }

  kill(attempt?: number): void {
    for (const one of this.#living.filter((each) => attempt === undefined || each.attempt === attempt)) {
      this.agenda.at(this.random.between(0, 4), () => this.#end(one, { kind: "failed", problem: "signal SIGKILL" }));
    }
  }

  #end(one: StandIn, end: StandInEnd): void {
    if (!this.#living.includes(one)) return;
    this.#living = this.#living.filter((other) => other !== one);
    this.agenda.at(this.random.between(0, 20), () => this.ended(one.attempt, end));
  }
}
