// Owns: the load over time: throughput and latency percentiles of each window. Must not: draw, or read a clock.

export interface Answer {
  /** When it was complete, Unix ms. */
  readonly atMs: number;
  readonly tookMs: number;
}

export interface Window {
  /** Its begin, since the begin of the timeline. */
  readonly fromMs: number;
  readonly perSecond: number;
  /** Undefined where nothing was answered. */
  readonly p50Ms?: number;
  readonly p99Ms?: number;
  readonly maxMs?: number;
}

/** Windows of equal length; the last, incomplete one is left out: its throughput would look like a dip. */
export function timeline(answers: readonly Answer[], startMs: number, endMs: number, windowMs: number): Window[] {
  const count = Math.max(0, Math.floor((endMs - startMs) / windowMs));
  const took: number[][] = Array.from({ length: count }, () => []);
  for (const { atMs, tookMs } of answers) took[Math.floor((atMs - startMs) / windowMs)]?.push(tookMs);
  return took.map((values, at) => {
    const fromMs = at * windowMs;
    const perSecond = values.length * 1000 / windowMs;
    if (values.length === 0) return { fromMs, perSecond };
    values.sort((a, b) => a - b);
    return {
      fromMs,
      perSecond,
      p50Ms: percentile(values, 0.5),
      p99Ms: percentile(values, 0.99),
      maxMs: percentile(values, 1),
    };
  });
}

/** Of sorted values: the least one that at least this share of them does not exceed. NaN of none. */
export function percentile(sorted: readonly number[], share: number): number {
  return sorted[Math.max(0, Math.ceil(sorted.length * share) - 1)] ?? NaN;
}

/** The longest time without an answer, the begin and the end included. */
export function longestGap(answers: readonly Answer[], startMs: number, endMs: number): number {
  const times = [...answers.map(({ atMs }) => atMs), endMs].sort((a, b) => a - b);
  let [longest, last] = [0, startMs];
  for (const atMs of times) {
    longest = Math.max(longest, atMs - last);
    last = Math.max(last, atMs);
  }
  return longest;
}
