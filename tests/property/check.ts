// Owns: how a property is registered, repeated and replayed.
// EPOCHD_PROPERTY_RUNS=100 runs a hundred times as many; EPOCHD_PROPERTY_SEED and _PATH replay what a failure printed.

import fc from "fast-check";

const factor = Number(Deno.env.get("EPOCHD_PROPERTY_RUNS") ?? "1");
/** The ring runs the same cases each time, so that red means the change at hand; longer runs draw new ones. */
const seed = Deno.env.get("EPOCHD_PROPERTY_SEED") ?? (factor === 1 ? "1" : undefined);
const path = Deno.env.get("EPOCHD_PROPERTY_PATH");

export interface Options {
  readonly runs: number;
}

/** For fast-check, by what the environment asks. */
export function parameters(runs: number) {
  return {
    numRuns: Math.max(1, Math.round(runs * factor)),
    ...(seed === undefined ? {} : { seed: Number(seed) }),
    ...(path === undefined ? {} : { path }),
  };
}

/** `holds` throws or asserts where the property does not hold. */
export function property<T>(name: string, arbitrary: fc.Arbitrary<T>, { runs }: Options, holds: (value: T) => void) {
  Deno.test(name, () => {
    fc.assert(fc.property(arbitrary, holds), parameters(runs));
  });
}
