// Owns: latencies of any number of requests in bounded memory (buckets 5 % apart). Must not read a clock.

const GROWTH = Math.log(1.05);
const SMALLEST_MS = 0.01;

export interface LatencySummary {
  readonly p50Ms: number;
  readonly p90Ms: number;
  readonly p99Ms: number;
  readonly p999Ms: number;
  readonly maxMs: number;
}

export class LatencyHistogram {
  readonly #buckets: number[] = [];
  #count = 0;
  #maxMs = 0;

  add(ms: number): void {
    const index = ms <= SMALLEST_MS ? 0 : Math.ceil(Math.log(ms / SMALLEST_MS) / GROWTH);
    this.#buckets[index] = (this.#buckets[index] ?? 0) + 1;
    this.#count++;
    if (ms > this.#maxMs) this.#maxMs = ms;
  }

  summary(): LatencySummary {
    return {
      p50Ms: this.#percentile(0.5),
      p90Ms: this.#percentile(0.9),
      p99Ms: this.#percentile(0.99),
      p999Ms: this.#percentile(0.999),
      maxMs: round(this.#maxMs),
    };
  }

  /** The upper bound of the bucket that holds it: at most 5 % too high, never too low. */
  #percentile(share: number): number {
    let left = Math.ceil(this.#count * share);
    for (const [index, count] of this.#buckets.entries()) {
      left -= count ?? 0;
      if (left <= 0 && this.#count > 0) return round(Math.min(this.#maxMs, SMALLEST_MS * Math.exp(index * GROWTH)));
    }
    return 0;
  }
}

function round(ms: number): number {
  return Math.round(ms * 100) / 100;
}
