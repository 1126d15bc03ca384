// Owns: the soak's requests and held streams, and how many of them failed. Must not: know of handoffs.
import { type HeldStream, holdStream } from "../../tests/support/held_stream.ts";
import { LatencyHistogram, type LatencySummary } from "../../tests/support/latency.ts";
import type { SeenFailure } from "../../tests/support/meter.ts";
import { startTraffic, type TrafficReport } from "../../tests/support/traffic.ts";
import { pause } from "../../tests/support/until.ts";
import { requestExcuse, streamExcuse } from "./excuse.ts";
import { DRAIN_MS, PARENT_SHUTDOWN_MS } from "./stage.ts";
import { watchStandstills } from "./standstill.ts";

/** Lies across many a handoff, and has ended by itself well before the parent shutdown time would cut it. */
const STREAM = { chunks: 12, everyMs: 100 };
const STREAMS = 3;
/** Ends what would hang for ever; a machine that stands still for seconds is no failure. */
const PATIENCE_MS = 30_000;
const TIMES = { drainMs: DRAIN_MS, parentShutdownMs: PARENT_SHUTDOWN_MS };
const KEPT = 20;

export interface LoadReport {
  readonly traffic: TrafficReport;
  readonly requestsFailed: number;
  readonly streamsComplete: number;
  readonly streamsBroken: number;
  /** The first ones of both, verbatim. */
  readonly failures: readonly string[];
  /** Failed, but not by Envoy or epochd: see excuse.ts. */
  readonly excused: number;
  readonly excuses: readonly string[];
  /** The longest time in which the bench itself could not run. */
  readonly longestStandstillMs: number;
}

export interface Load extends AsyncDisposable {
  report(): LoadReport;
  /** Latencies since the last call. */
  window(): LatencySummary;
  stop(): Promise<LoadReport>;
}

export function startLoad(port: number, requestsPerSecond: number): Load {
  const standstills = watchStandstills();
  const counts = { requestsFailed: 0, streamsComplete: 0, streamsBroken: 0, excused: 0 };
  const [failures, excuses]: [string[], string[]] = [[], []];
  const keep = (list: string[], text: string) => void (list.length < KEPT && list.push(text));
  const count = (what: "requestsFailed" | "streamsBroken", text: string, excuse: string | undefined) => {
    counts[excuse === undefined ? what : "excused"]++;
    if (excuse === undefined) keep(failures, text);
    else keep(excuses, `${text} (${excuse})`);
  };

  let latest = new LatencyHistogram();
  const traffic = startTraffic({
    port,
    requestsPerSecond,
    newConnectionClients: 4,
    keepAliveClients: 4,
    timeoutMs: PATIENCE_MS,
    onAnswer: (ms) => latest.add(ms),
    onFailure: (failure) =>
      count("requestsFailed", textOf(failure), requestExcuse(failure, standstills.recentMs(), TIMES)),
  });

  const held = new Set<HeldStream>();
  let stopping = false;
  const runStream = async () => {
    while (!stopping) {
      const openedMs = performance.now();
      const stream = holdStream({ target: { port }, ...STREAM, stallMs: PATIENCE_MS });
      held.add(stream);
      const outcome = await stream.outcome;
      held.delete(stream);
      if (outcome.kind === "complete") counts.streamsComplete++;
      if (outcome.kind !== "broken") continue;
      const lastedMs = performance.now() - openedMs;
      const text = `stream after ${Math.round(lastedMs)} ms: ${outcome.detail}`;
      count("streamsBroken", text, streamExcuse(outcome.detail, lastedMs, TIMES));
      await pause(100);
    }
  };
  const streams = Array.from({ length: STREAMS }, runStream);

  const reportOf = (of: TrafficReport): LoadReport => ({
    traffic: of,
    ...counts,
    failures: [...failures],
    excuses: [...excuses],
    longestStandstillMs: Math.round(standstills.longestMs()),
  });
  let stopped: Promise<LoadReport> | undefined;
  const stop = () =>
    stopped ??= (async () => {
      stopping = true;
      for (const stream of held) stream.abandon();
      const report = await traffic.stop();
      await Promise.all(streams);
      standstills[Symbol.dispose]();
      return reportOf(report);
    })();
  return {
    report: () => reportOf(traffic.snapshot()),
    window() {
      const summary = latest.summary();
      latest = new LatencyHistogram();
      return summary;
    },
    stop,
    [Symbol.asyncDispose]: async () => void await stop(),
  };
}

function textOf({ atMs, client, detail }: SeenFailure): string {
  return `${client} at ${atMs} ms: ${detail}`;
}
