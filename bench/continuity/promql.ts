// Owns: what Prometheus makes of the samples of a counter: `increase()` and `rate()`, with its extrapolation and its counter resets.
// Must not: know where samples come from. tests/peers/prometheus_test.ts compares it with a real Prometheus.

export interface Point {
  readonly atMs: number;
  readonly value: number;
}

/**
 * `increase(counter[rangeMs])` at `atMs`, of the samples after `atMs - rangeMs` and until `atMs`; undefined where fewer than two
 * lie there, as Prometheus then has no result either.
 */
export function increase(samples: readonly Point[], atMs: number, rangeMs: number): number | undefined {
  const within = samples.filter((sample) => sample.atMs > atMs - rangeMs && sample.atMs <= atMs);
  const [first, last] = [within[0], within.at(-1)];
  if (first === undefined || last === undefined || within.length < 2) return undefined;
  const increased = last.value - first.value + resets(within).reduce((sum, { before }) => sum + before, 0);
  const sampledMs = last.atMs - first.atMs;
  const apartMs = sampledMs / (within.length - 1);
  // As far as a sample may be missing from the edge, the counter is thought to have gone on; further, for half a step.
  const toEdge = (ms: number) => ms < 1.1 * apartMs ? ms : apartMs / 2;
  let beforeMs = toEdge(first.atMs - (atMs - rangeMs));
  // But not below zero: there the counter must have begun.
  if (increased > 0 && first.value >= 0) beforeMs = Math.min(beforeMs, sampledMs * first.value / increased);
  const afterMs = toEdge(atMs - last.atMs);
  return increased * (sampledMs + beforeMs + afterMs) / sampledMs;
}

/** A second. */
export function rate(samples: readonly Point[], atMs: number, rangeMs: number): number | undefined {
  const increased = increase(samples, atMs, rangeMs);
  return increased === undefined ? undefined : 1000 * increased / rangeMs;
}

export interface Reset {
  readonly atMs: number;
  /** The last value before the counter fell. */
  readonly before: number;
  readonly after: number;
}

export function resets(samples: readonly Point[]): Reset[] {
  const found: Reset[] = [];
  for (const [at, { atMs, value }] of samples.entries()) {
    const before = samples[at - 1]?.value;
    if (before !== undefined && value < before) found.push({ atMs, before, after: value });
  }
  return found;
}

/** From the first sample to the last, counter resets added and nothing extrapolated. */
export function total(samples: readonly Point[]): number {
  const [first, last] = [samples[0], samples.at(-1)];
  if (first === undefined || last === undefined) return 0;
  return last.value - first.value + resets(samples).reduce((sum, { before }) => sum + before, 0);
}
