// Owns: twenty restarts under load: what fails, and what the supervisor's memory does meanwhile.
import { writeBootstrap } from "../tests/support/bootstrap.ts";
import { envoyPath } from "../tests/support/envoys.ts";
import { startEpochd } from "../tests/support/epochd.ts";
import { freePorts } from "../tests/support/ports.ts";
import { rssAnonBytes } from "../tests/support/procfs.ts";
import { tempDir } from "../tests/support/tempdir.ts";
import { startTraffic } from "../tests/support/traffic.ts";
import { startUpstream } from "../tests/support/upstream.ts";
import { until } from "../tests/support/until.ts";
import { atMost, type Figure } from "./report.ts";
import { median, round, spread } from "./sample.ts";

const RESTARTS = 20;
const REQUESTS = 20_000;
const MB = 1_000_000;
/** What a garbage collector does between two looks is no growth. */
const GROWTH = 1.1;

export async function loadFigures(tell: (text: string) => void): Promise<Figure[]> {
  await using directory = tempDir();
  const [listenPort, adminPort, upstreamPort] = freePorts(3) as [number, number, number];
  await using _upstream = startUpstream(upstreamPort);
  const bootstrapPath = writeBootstrap(directory.at("envoy.yaml"), { listenPort, adminPort, upstreamPort });
  await using epochd = startEpochd({
    envoyPath: envoyPath(),
    bootstrapPath,
    directory,
    program: "dist",
    drainTimeMs: 1_000,
    parentShutdownTimeMs: 2_000,
    extraArguments: ["--watch-binary"],
  });
  await epochd.waitForEvent("epoch_live");
  await using traffic = startTraffic({
    port: listenPort,
    newConnectionClients: 4,
    keepAliveClients: 4,
    requestsPerSecond: 600,
    heldStreams: 2,
    stream: { chunks: 15, everyMs: 100 },
  });
  const rss: number[] = [];
  for (let restart = 1; restart <= RESTARTS; restart++) {
    epochd.signal("SIGHUP");
    await epochd.waitForEvent("handoff_done", ({ to }) => to === restart);
    rss.push(rssAnonBytes(epochd.pid) / MB);
    tell(`restart under load, ${restart} of ${RESTARTS}: RssAnon ${round(rss.at(-1) ?? 0)} MB`);
  }
  await until("enough requests", () => traffic.snapshot().requests >= REQUESTS, { timeoutMs: 120_000 });
  const report = await traffic.stop();
  const handoffsMs = epochd.log.events.filter(({ event }) => event === "handoff_live").map(({ tookMs }) =>
    Number(tookMs)
  );
  const [early, late] = [median(rss.slice(4, 10)), median(rss.slice(-6))];
  const all = rss.map((value) => round(value)).join(", ");
  return [
    atMost({
      name: `failed in ${RESTARTS} restarts under load, compiled`,
      how:
        `keep-alive and new connections and held streams, ${report.requests} requests, ${report.streamsComplete} streams`,
      unit: "requests and streams",
      value: report.failed + report.streamsBroken,
      bound: `0 of ${REQUESTS} requests and more`,
      notes: [
        `latency p50 ${report.latency.p50Ms} ms, p99 ${report.latency.p99Ms} ms, longest ${report.latency.maxMs} ms; ` +
        `longest time without an answer ${report.longestGapMs} ms; handoff median ${round(median(handoffsMs))} ms`,
      ],
    }, 0),
    atMost({
      name: `RssAnon after ${RESTARTS} restarts, compiled`,
      how: "of epochd, by /proc/PID/status, in the same run",
      unit: "MB",
      value: rss.at(-1) ?? NaN,
      samples: spread(rss),
      bound: "< 32 MB",
      notes: [`after each restart: ${all}`],
    }, 32),
    atMost({
      name: "growth of RssAnon after the fifth restart, compiled",
      how: "median of the last six restarts beside the median of the fifth to the tenth",
      unit: "x",
      value: late / early,
      bound: `not growing: <= ${GROWTH} x`,
      notes: [`${round(early)} MB and ${round(late)} MB`],
    }, GROWTH),
  ];
}
