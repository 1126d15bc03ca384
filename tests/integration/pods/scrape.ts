// Owns: what a scraper sees of one counter across a roll: samples from whoever answers admin, and what Prometheus would make of it.
// Must not: smooth anything.

import { stats } from "../../support/admin.ts";
import { pause } from "../../support/until.ts";

const EVERY_MS = 250;

export interface Scraped {
  readonly atMs: number;
  readonly value: number;
  /** What clients have sent by then. */
  readonly sent: number;
}

export interface Scraper {
  readonly samples: readonly Scraped[];
  stop(): Promise<readonly Scraped[]>;
}

export function scrape(adminPort: number, counter: string, sent: () => number): Scraper {
  const samples: Scraped[] = [];
  let isOver = false;
  const scraping = (async () => {
    while (!isOver) {
      try {
        const value = (await stats({ port: adminPort }, `^${counter}$`)).get(counter);
        if (value !== undefined) samples.push({ atMs: performance.now(), value, sent: sent() });
      } catch { /* for a moment of each roll nobody answers */ }
      await pause(EVERY_MS);
    }
  })();
  return {
    samples,
    async stop() {
      isOver = true;
      await scraping;
      return samples;
    },
  };
}

/** Counted of what was sent, over windows of at least this length; a value that falls is a counter that began anew at 0. */
export function counted(samples: readonly Scraped[], windowMs: number): number[] {
  const found: number[] = [];
  let [increase, from] = [0, samples[0]];
  for (const [i, now] of samples.entries()) {
    const before = samples[i - 1];
    if (before === undefined || from === undefined) continue;
    increase += now.value >= before.value ? now.value - before.value : now.value;
    if (now.atMs - from.atMs < windowMs) continue;
    found.push(increase / (now.sent - from.sent));
    [increase, from] = [0, now];
  }
  return found;
}
