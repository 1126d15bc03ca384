// Owns: scraping at fixed times, as Prometheus does: the time of a sample is that of the question, one that fails is missing.
// Must not: know Envoy.
import { fetchOnce, type Target } from "../../tests/support/http_client.ts";
import { pause } from "../../tests/support/until.ts";
import { parseExposition } from "./exposition.ts";
import type { Point } from "./promql.ts";

export interface Scraped {
  /** By series, e.g. `up{job="x"}`. */
  readonly series: ReadonlyMap<string, readonly Point[]>;
  /** Of scrapes that failed. */
  readonly missed: readonly { readonly atMs: number; readonly why: string }[];
  readonly scrapes: number;
}

export interface ScrapeOptions {
  readonly target: Target;
  readonly path: string;
  readonly everyMs: number;
  /** Read in the moment of each scrape, whatever becomes of it: what the scraped one ought to know. */
  readonly beside?: () => Readonly<Record<string, number>>;
  readonly wanted: (series: string) => boolean;
}

export interface Scraper {
  stop(): Promise<Scraped>;
}

export function startScraper(options: ScrapeOptions): Scraper {
  const series = new Map<string, Point[]>();
  const missed: { atMs: number; why: string }[] = [];
  let [scrapes, stopping] = [0, false];
  const add = (name: string, point: Point) => {
    const points = series.get(name);
    if (points === undefined) series.set(name, [point]);
    else points.push(point);
  };
  const scrape = async () => {
    scrapes++;
    const atMs = performance.now();
    for (const [name, value] of Object.entries(options.beside?.() ?? {})) add(name, { atMs, value });
    try {
      const { status, body } = await fetchOnce(options.target, { path: options.path, timeoutMs: options.everyMs });
      if (status !== 200) throw new Error(`status ${status}`);
      for (const [name, value] of parseExposition(body)) if (options.wanted(name)) add(name, { atMs, value });
    } catch (error) {
      missed.push({ atMs, why: error instanceof Error ? error.message : String(error) });
    }
  };
  const run = async () => {
    for (let dueMs = performance.now(); !stopping; dueMs += options.everyMs) {
      await pause(Math.max(0, dueMs - performance.now()));
      await scrape();
    }
  };
  const running = run();
  return {
    async stop() {
      stopping = true;
      await running;
      return { series, missed, scrapes };
    },
  };
}
