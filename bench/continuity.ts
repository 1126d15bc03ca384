// Owns: whether a graph shows a handoff: rates, counters and gauges across ten of them, by each version of Envoy. Must not: hide what
// Envoy itself loses; it is shown as such.
import { ENVOY_VERSIONS } from "../tests/support/envoys.ts";
import type { Point } from "./continuity/promql.ts";
import { total } from "./continuity/promql.ts";
import {
  CONNECTIONS,
  type ContinuityRun,
  HANDOFFS,
  HELD,
  REQUESTS,
  runContinuity,
  SENT,
  SINK_CONNECTIONS,
  SINK_REQUESTS,
} from "./continuity/run.ts";
import { differing, lostAtResetsMs, rateDeviation } from "./continuity/verdict.ts";
import { atMost, type Figure } from "./report.ts";
import { round, spread } from "./sample.ts";

/** A tenth of what is usual in seconds: scrapes every 15 s, `rate()` over 1 m and 5 m; a flush every second instead of Envoy's 5. */
const OPTIONS = {
  program: "dist",
  handoffs: 10,
  everyMs: 6_300,
  scrapeEveryMs: 1_500,
  flushEveryMs: 100,
  requestsPerSecond: 150,
  held: 25,
  drainTimeMs: 1_000,
  parentShutdownTimeMs: 2_000,
} as const;
const RANGES_MS = [6_000, 30_000] as const;
const SINK_PERCENT = 5;

export async function continuityFigures(tell: (text: string) => void): Promise<Figure[]> {
  const seconds = Math.round((OPTIONS.handoffs + 1) * OPTIONS.everyMs / 1000);
  tell(`stats across ${OPTIONS.handoffs} handoffs, three versions at once: ${seconds} s`);
  const runs = await Promise.all(ENVOY_VERSIONS.map((version) => runContinuity({ ...OPTIONS, version })));
  return [lost(runs), sinkRate(runs), scrapedRate(runs), gauges(runs), own(runs)];
}

function lost(runs: readonly ContinuityRun[]): Figure {
  const off = runs.map(({ sent, counted }) => Math.abs(sent - counted));
  return atMost({
    name: `requests that Envoy's sink counts wrongly in ${OPTIONS.handoffs} handoffs`,
    how:
      "what clients had answered beside the sum of the deltas that Envoy's statsd sink sent, all told; the worst version",
    unit: "requests",
    value: Math.max(...off),
    bound: "0: counters go on as deltas",
    table: [
      [
        "Envoy",
        "answered",
        "sink: counted",
        ...RANGES_MS.map((ms) => `sink: rate[${seconds(ms)}]`),
        ...RANGES_MS.map((ms) => `scraped: rate[${seconds(ms)}]`),
        "scrape misses at a handoff",
        "gauge differs: scraped, sink",
      ],
      ...runs.map((run) => [
        run.options.version,
        run.sent,
        run.counted,
        ...RANGES_MS.map((ms) => range(run, SINK_REQUESTS, ms)),
        ...RANGES_MS.map((ms) => range(run, REQUESTS, ms)),
        `${round(Math.min(...lostOf(run)), 0)} to ${round(Math.max(...lostOf(run)), 0)} ms`,
        `${offOf(run, CONNECTIONS)}, ${offOf(run, SINK_CONNECTIONS)} of ${of(run, CONNECTIONS).length}`,
      ]),
    ],
  }, 0);
}

function sinkRate(runs: readonly ContinuityRun[]): Figure {
  const [rangeMs] = RANGES_MS;
  const worst = runs.map((run) => far(deviationOf(run, SINK_REQUESTS, rangeMs)));
  return atMost({
    name: "rate() of the sink's counter across handoffs, farthest from the clients'",
    how:
      `rate(requests[${seconds(rangeMs)}]) as Prometheus computes it, on samples every ${
        seconds(OPTIONS.scrapeEveryMs)
      } of a receiver of Envoy's statsd sink (flushed every ${
        seconds(OPTIONS.flushEveryMs)
      }), beside the same of what clients ` +
      "had answered; a window at each quarter of a scrape interval; the worst version",
    unit: "%",
    value: Math.max(...worst),
    bound: `<= ${SINK_PERCENT} % in every window: a flush lies before or after a sample`,
  }, SINK_PERCENT);
}

/** What a scrape of one epoch has not seen, and that epoch has flushed, no other epoch knows: at most one scrape interval. */
function scrapedRate(runs: readonly ContinuityRun[]): Figure {
  const all = runs.flatMap(lostOf);
  const limit = OPTIONS.scrapeEveryMs + OPTIONS.flushEveryMs;
  return atMost({
    name: "what a scrape of /stats/prometheus misses of the load at a handoff",
    how:
      "Envoy's own: each epoch counts from 0 and takes over what its parent has not flushed yet, so that what was flushed since " +
      "the last scrape is in neither; in time of the load, the most of all handoffs and versions",
    unit: "ms",
    value: Math.max(...all.map(Math.abs)),
    samples: spread(all),
    bound: `<= a scrape interval and a flush, ${limit} ms here; a sink misses nothing`,
  }, limit);
}

function gauges(runs: readonly ContinuityRun[]): Figure {
  const value = Math.max(...runs.flatMap((run) => [offOf(run, CONNECTIONS), offOf(run, SINK_CONNECTIONS)]));
  return atMost({
    name: "samples of a connection gauge that differ from what clients hold",
    how:
      `${OPTIONS.held} idle connections, opened again when a parent ends; listener.downstream_cx_active in every scrape and at the ` +
      "sink, beside the clients' count in that moment; the worst version",
    unit: "samples",
    value,
    bound: `<= 1 for each handoff: while a parent ends`,
  }, OPTIONS.handoffs);
}

function own(runs: readonly ContinuityRun[]): Figure {
  const fallen = runs.flatMap((run) =>
    [...run.epochd.series.values()].filter((points) =>
      points.some(({ value }, at) => value < (points[at - 1]?.value ?? 0))
    )
  );
  const counts = runs.map((run) => total(run.epochd.series.get(HANDOFFS) ?? []));
  const wrong = counts.filter((count) => count !== OPTIONS.handoffs).length;
  const missed = runs.reduce((sum, run) => sum + run.epochd.missed.length, 0);
  return atMost({
    name: "epochd's own counters that fall, miss a handoff or a scrape",
    how: "every counter of its /metrics in the same scrapes; it lives on through handoffs",
    unit: "",
    value: fallen.length + wrong + missed,
    bound: "0",
    notes: [
      `handoffs counted: ${counts.join(", ")}; ${runs[0]?.epochd.series.size} series, ${
        runs[0]?.epochd.scrapes
      } scrapes each`,
    ],
  }, 0);
}

function of(run: ContinuityRun, name: string): readonly Point[] {
  return run.envoy.series.get(name) ?? [];
}

function lostOf(run: ContinuityRun): number[] {
  return lostAtResetsMs(of(run, REQUESTS), of(run, SENT));
}

function deviationOf(run: ContinuityRun, name: string, rangeMs: number) {
  return rateDeviation(of(run, name), of(run, SENT), { rangeMs, scrapeEveryMs: OPTIONS.scrapeEveryMs });
}

function far({ dip, spike }: { readonly dip: number; readonly spike: number }): number {
  return Math.max(-dip, spike);
}

function range(run: ContinuityRun, name: string, rangeMs: number): string {
  const { dip, spike } = deviationOf(run, name, rangeMs);
  return `${round(dip)} to +${round(spike)} %`;
}

function offOf(run: ContinuityRun, name: string): number {
  return differing(of(run, name), of(run, HELD));
}

function seconds(ms: number): string {
  return `${ms / 1000} s`;
}
