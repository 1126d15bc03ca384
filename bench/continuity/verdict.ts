// Owns: how far what was measured lies from what clients did. Must not: measure.
import { type Point, rate, resets, total } from "./promql.ts";

export interface Deviation {
  /** Percent of what clients did: the deepest dip (negative or 0) and the highest spike. */
  readonly dip: number;
  readonly spike: number;
  readonly windows: number;
}

/** `rate(of[rangeMs])` beside the same of `truth`, at every quarter of a scrape interval for which both have the whole range. */
export function rateDeviation(
  of: readonly Point[],
  truth: readonly Point[],
  { rangeMs, scrapeEveryMs }: { readonly rangeMs: number; readonly scrapeEveryMs: number },
): Deviation {
  const deviations: number[] = [];
  const [from, to] = [Math.max(of[0]?.atMs ?? NaN, truth[0]?.atMs ?? NaN) + rangeMs, truth.at(-1)?.atMs ?? NaN];
  for (let atMs = from; atMs <= to; atMs += scrapeEveryMs / 4) {
    const expected = rate(truth, atMs, rangeMs);
    if (expected === undefined || expected === 0) continue;
    deviations.push(100 * ((rate(of, atMs, rangeMs) ?? 0) / expected - 1));
  }
  return { dip: Math.min(0, ...deviations), spike: Math.max(0, ...deviations), windows: deviations.length };
}

/**
 * What the scrapes lost at each counter reset, in milliseconds of the load: positive lost, negative counted twice. At a reset a
 * scraper counts what the new epoch says; the truth is what was done since the last scrape of the old one.
 */
export function lostAtResetsMs(of: readonly Point[], truth: readonly Point[]): number[] {
  const perMs = total(truth) / ((truth.at(-1)?.atMs ?? 0) - (truth[0]?.atMs ?? 0));
  const at = (atMs: number) => truth.find((point) => point.atMs === atMs)?.value ?? NaN;
  return resets(of).map(({ atMs, after }) => {
    const before = of.findLast((point) => point.atMs < atMs)!;
    return (at(atMs) - at(before.atMs) - after) / perMs;
  });
}

/** Samples of a gauge that differ from what was so in the moment of the question. */
export function differing(of: readonly Point[], truth: readonly Point[]): number {
  const known = new Map(truth.map(({ atMs, value }) => [atMs, value]));
  return of.filter(({ atMs, value }) => known.get(atMs) !== value).length;
}
