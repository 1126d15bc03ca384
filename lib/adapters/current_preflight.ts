// Owns: which settings a preflight goes by while settings change, and with which flags each plan was checked: those are what it
// runs with, also when it is started again later. Must not: check anything itself.

import type { Plan } from "../core/epoch.ts";
import type { Preflight, PreflightOutcome, PreflightRequest } from "../runtime/ports.ts";
import type { EpochFlags } from "./envoy_args.ts";

/** A preflight of fixed settings, and the flags among them. */
export interface Generation {
  readonly preflight: Preflight;
  readonly flags: () => EpochFlags;
}

/** Plans that may still be started: the running one, the last good one, and what is under way. */
const mostPlans = 16;

export class CurrentPreflight implements Preflight {
  readonly #flagsOf = new Map<string, EpochFlags>();

  constructor(private generation: Generation) {}

  /** From the next preflight on. */
  use(generation: Generation): void {
    this.generation = generation;
  }

  async run(request: PreflightRequest, signal: AbortSignal): Promise<PreflightOutcome> {
    const { preflight, flags } = this.generation;
    const outcome = await preflight.run(request, signal);
    if (outcome.kind === "refused") return outcome;
    const { key } = outcome.plan;
    const given = flags();
    this.#flagsOf.delete(key);
    this.#flagsOf.set(key, given);
    if (this.#flagsOf.size > mostPlans) this.#flagsOf.delete(this.#flagsOf.keys().next().value!);
    const { drainTimeMs, parentShutdownTimeMs } = given;
    return { ...outcome, plan: { ...outcome.plan, drainTimeMs, parentShutdownTimeMs } };
  }

  prune(keepDigests: readonly string[]): Promise<void> {
    return this.generation.preflight.prune(keepDigests);
  }

  flagsOf({ key }: Plan): EpochFlags {
    return this.#flagsOf.get(key) ?? this.generation.flags();
  }
}
