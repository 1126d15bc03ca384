// Owns: one run: an Envoy of one version, a steady load, held connections, handoffs, and what is scraped meanwhile. Must not: judge.
import { writeBootstrap } from "../../tests/support/bootstrap.ts";
import { envoyPath, type EnvoyVersion } from "../../tests/support/envoys.ts";
import { type Program, startEpochd } from "../../tests/support/epochd.ts";
import type { Json } from "../../tests/support/listeners.ts";
import { freePorts } from "../../tests/support/ports.ts";
import { tempDir } from "../../tests/support/tempdir.ts";
import { startTraffic } from "../../tests/support/traffic.ts";
import { pause, until } from "../../tests/support/until.ts";
import { holdConnections } from "./held.ts";
import { receiveStatsd } from "./statsd.ts";
import { type Scraped, startScraper } from "./scraper.ts";

export interface RunOptions {
  readonly version: EnvoyVersion;
  /** Of Envoy, to its statsd sink. */
  readonly flushEveryMs: number;
  readonly program: Program;
  readonly handoffs: number;
  /** From one handoff to the next; no multiple of `scrapeEveryMs`, so that they meet the scrapes at ever other times. */
  readonly everyMs: number;
  readonly scrapeEveryMs: number;
  readonly requestsPerSecond: number;
  readonly held: number;
  readonly parentShutdownTimeMs: number;
  readonly drainTimeMs: number;
}

export interface ContinuityRun {
  readonly options: RunOptions;
  /** Envoy's, with `SENT` and `HELD` of the clients and `SINK_*` of the sink's receiver beside it. */
  readonly envoy: Scraped;
  readonly epochd: Scraped;
  readonly handoffs: readonly { readonly liveAtMs: number; readonly endedAtMs: number }[];
  readonly failed: number;
  /** In the end, all told. */
  readonly sent: number;
  readonly counted: number;
}

export const SENT = "clients: requests answered";
export const HELD = "clients: connections held";
export const SINK_REQUESTS = "sink: requests";
export const SINK_CONNECTIONS = "sink: connections held";
export const REQUESTS = 'envoy_http_downstream_rq_total{envoy_http_conn_manager_prefix="main"}';
export const ANSWERS =
  'envoy_http_downstream_rq_xx{envoy_response_code_class="2",envoy_http_conn_manager_prefix="main"}';
export const HANDOFFS = 'epochd_handoffs_total{service="envoy",source="signal",result="live"}';
const ACTIVE = /^envoy_listener_downstream_cx_active\{envoy_listener_address="127\.0\.0\.1_(\d+)"\}$/;
export const CONNECTIONS = "envoy_listener_downstream_cx_active of the held connections' listener";

export async function runContinuity(options: RunOptions): Promise<ContinuityRun> {
  await using directory = tempDir();
  const [listenPort, heldPort, adminPort, statsdPort] = freePorts(4) as [number, number, number, number];
  await using sink = receiveStatsd(statsdPort);
  const bootstrapPath = writeBootstrap(directory.at("envoy.yaml"), {
    listenPort,
    adminPort,
    extraListenPorts: [heldPort],
    statsFlushIntervalMs: options.flushEveryMs,
    change: (bootstrap) => addStatsdSink(bootstrap, statsdPort),
  });
  await using epochd = startEpochd({
    envoyPath: envoyPath(options.version),
    bootstrapPath,
    directory,
    program: options.program,
    drainTimeMs: options.drainTimeMs,
    parentShutdownTimeMs: options.parentShutdownTimeMs,
  });
  await epochd.waitForEvent("epoch_live");
  const handoffs: { liveAtMs: number; endedAtMs: number }[] = [];
  epochd.log.onEvent(({ event }) => {
    if (event === "handoff_live") handoffs.push({ liveAtMs: performance.now(), endedAtMs: Infinity });
    if (event === "handoff_done") handoffs.push({ ...handoffs.pop()!, endedAtMs: performance.now() });
  });
  await using held = await holdConnections(heldPort, options.held);
  // One path alone: what each request is counted by is then the same.
  await using traffic = startTraffic({ port: listenPort, requestsPerSecond: options.requestsPerSecond });
  const sinkRequests = () => sink.value("envoy.http.main.downstream_rq_total") ?? 0;
  const sinkConnections = () => sink.value(`envoy.listener.127.0.0.1_${heldPort}.downstream_cx_active`) ?? 0;
  await until("the sink has all", () => sinkRequests() > 0 && sinkConnections() === options.held);
  const { scrapeEveryMs: everyMs } = options;
  const envoy = startScraper({
    target: { port: adminPort },
    path: "/stats/prometheus",
    everyMs,
    beside: () => ({
      [SENT]: traffic.snapshot().requests,
      [HELD]: held.open,
      [SINK_REQUESTS]: sinkRequests(),
      [SINK_CONNECTIONS]: sinkConnections(),
    }),
    wanted: (series) => series === REQUESTS || ACTIVE.exec(series)?.[1] === String(heldPort),
  });
  const own = startScraper({
    target: { path: epochd.apiSocket },
    path: "/metrics",
    everyMs,
    wanted: (series) => /^epochd_\w+_(?:total|count|sum)\b/.test(series),
  });
  const beganMs = performance.now();
  for (let number = 1; number <= options.handoffs; number++) {
    await pause(beganMs + number * options.everyMs - performance.now());
    epochd.signal("SIGHUP");
    await epochd.waitForEvent("handoff_done", ({ handoff }) => handoff === number, { timeoutMs: 120_000 });
  }
  await pause(options.everyMs);
  const scraped = await envoy.stop();
  const series = new Map([...scraped.series].map(([name, points]) => [ACTIVE.test(name) ? CONNECTIONS : name, points]));
  const ownScraped = await own.stop();
  const { failed, requests } = await traffic.stop();
  // What was counted before the end is flushed a little later; what is lost never comes.
  await until("all is flushed", () => sinkRequests() >= requests, { timeoutMs: 10_000 }).catch(
    () => {},
  );
  return {
    options,
    envoy: { ...scraped, series },
    epochd: ownScraped,
    handoffs,
    failed,
    sent: requests,
    counted: sinkRequests(),
  };
}

function addStatsdSink(bootstrap: Json, port: number): void {
  const address = { socket_address: { address: "127.0.0.1", port_value: port } };
  const endpoints = [{ lb_endpoints: [{ endpoint: { address } }] }];
  bootstrap.static_resources.clusters.push({
    name: "statsd",
    type: "STATIC",
    connect_timeout: "5s",
    load_assignment: { cluster_name: "statsd", endpoints },
  });
  const sink = { "@type": "type.googleapis.com/envoy.config.metrics.v3.StatsdSink", tcp_cluster_name: "statsd" };
  bootstrap.stats_sinks = [{ name: "envoy.stat_sinks.statsd", typed_config: sink }];
}
