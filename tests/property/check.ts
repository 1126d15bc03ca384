// Owns: how a property is registered, repeated and replayed.
// EPOCHD_PROPERTY_RUNS=100 runs a hundred times as many; EPOCHD_PROPERTY_SEED and _PATH replay what a failure printed.

import fc from "fast-check";

const factor = Number(Deno.env.get("EPOCHD_PROPERTY_RUNS") ?? "1");
const seed = Deno.env.get("EPOCHD_PROPERTY_SEED");
const path = Deno.env.get("EPOCHD_PROPERTY_PATH");

export interface Options {
  readonly runs: number;
}

/** `holds` throws or asserts where the property does not hold. */
export function property<T>(name: string, arbitrary: fc.Arbitrary<T>, { runs }: Options, holds: (value: T) => void) {
  Deno.test(name, () => {
    fc.assert(fc.property(arbitrary, holds), {
      numRuns: Math.max(1, Math.round(runs * factor)),
      ...(seed === undefined ? {} : { seed: Number(seed) }),
      ...(path === undefined ? {} : { path }),
    });
  });
}
