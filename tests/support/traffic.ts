// Owns: live traffic against one port while something is done to the Envoy behind it.
// Must not retry: what fails is counted. Must not know what is being done.
import { serverInfo } from "./admin.ts";
import { HttpConnection, HttpFailure, type Target } from "./http_client.ts";
import { type HeldStream, holdStream, type StreamOutcome } from "./held_stream.ts";
import { Meter, type SeenFailure, type TrafficReport } from "./meter.ts";

export type { TrafficReport } from "./meter.ts";

export interface TrafficOptions {
  readonly port: number;
  readonly hostname?: string;
  /** Default `/direct`: answered by Envoy itself, so that the upstream in this process costs nothing. */
  readonly path?: string;
  /** Clients that open a connection for each request. Default 2. */
  readonly newConnectionClients?: number;
  /** Clients that keep theirs as long as the server lets them. Default 2. */
  readonly keepAliveClients?: number;
  /** Of all clients together. Default 400; Infinity is allowed. */
  readonly requestsPerSecond?: number;
  /** Streams that are always held: reopened when complete, not when broken. Default 0. */
  readonly heldStreams?: number;
  readonly stream?: { readonly chunks: number; readonly everyMs: number };
  readonly timeoutMs?: number;
  /** Asked now and then on fresh connections, for the versions in the report. */
  readonly admin?: Target;
  readonly onFailure?: (failure: SeenFailure) => void;
  /** For every good answer. */
  readonly onAnswer?: (latencyMs: number) => void;
}

export interface Traffic extends AsyncDisposable {
  snapshot(): TrafficReport;
  /** One more stream; it counts in the report like the permanent ones. */
  hold(stream: { readonly chunks: number; readonly everyMs: number }): HeldStream;
  /** Lets requests under way end, gives up the streams that still flow, and reports. May be called twice. */
  stop(): Promise<TrafficReport>;
}

const ADMIN_EVERY_MS = 200;
/** A server that is down must not be asked in a tight loop. */
const AFTER_FAILURE_MS = 5;

export function startTraffic(options: TrafficOptions): Traffic {
  const { newConnectionClients = 2, keepAliveClients = 2, heldStreams = 0, requestsPerSecond = 400 } = options;
  const target = { hostname: options.hostname ?? "127.0.0.1", port: options.port };
  const path = options.path ?? "/direct";
  const timeoutMs = options.timeoutMs ?? 10_000;
  const permanent = options.stream ?? { chunks: 100, everyMs: 50 };
  const meter = new Meter(options.onFailure);
  const stopping = new AbortController();
  const { signal } = stopping;
  const streams = new Set<HeldStream>();
  const outcomes = new Set<Promise<unknown>>();

  const ask = async (connection: HttpConnection, headers: Record<string, string>, startMs: number) => {
    const response = await connection.request({ path, headers, timeoutMs });
    if (response.status !== 200) {
      throw new HttpFailure("bad_status", `${response.status} ${response.body.slice(0, 100)}`);
    }
    const latencyMs = performance.now() - startMs;
    meter.good(latencyMs, response.headers);
    options.onAnswer?.(latencyMs);
  };

  const newConnectionRequest = async () => {
    const startMs = performance.now();
    using connection = await HttpConnection.open(target, timeoutMs);
    await ask(connection, { connection: "close" }, startMs);
  };

  const keepAliveRequest = () => {
    let connection: HttpConnection | undefined;
    let announced = false;
    const request = async () => {
      const startMs = performance.now();
      if (connection !== undefined && !connection.reusable) {
        meter.counts[announced ? "reconnects" : "idleCloses"]++;
        connection.close();
        connection = undefined;
      }
      try {
        connection ??= await HttpConnection.open(target, timeoutMs);
        await ask(connection, {}, startMs);
        announced = !connection.reusable;
      } catch (error) {
        connection?.close();
        connection = undefined;
        throw error;
      }
    };
    return { request, end: () => connection?.close() };
  };

  const periodMs = 1000 * (newConnectionClients + keepAliveClients) / requestsPerSecond;
  const runClient = async (name: string, request: () => Promise<void>) => {
    let dueMs = performance.now() + Math.random() * periodMs;
    while (!signal.aborted) {
      const waitMs = dueMs - performance.now();
      if (waitMs > 0) await sleep(waitMs, signal);
      if (signal.aborted) break;
      // What was missed is made up for, but not more than a moment's worth: an outage must not end in a flood.
      dueMs = Math.max(dueMs + periodMs, performance.now() - 50);
      try {
        await request();
      } catch (error) {
        meter.failed(name, error);
        await sleep(AFTER_FAILURE_MS, signal);
      }
    }
  };

  const hold = (stream: { readonly chunks: number; readonly everyMs: number }): HeldStream => {
    const held = holdStream({ target, ...stream });
    streams.add(held);
    const counted = held.outcome.then((outcome) => {
      streams.delete(held);
      outcomes.delete(counted);
      count(outcome);
    });
    outcomes.add(counted);
    return held;
  };
  const count = (outcome: StreamOutcome) => {
    if (outcome.kind === "broken") meter.streamBroken("stream", outcome.detail);
    else meter.counts[outcome.kind === "complete" ? "streamsComplete" : "streamsAbandoned"]++;
  };
  const runStream = async () => {
    while (!signal.aborted) if ((await hold(permanent).outcome).kind !== "complete") return;
  };

  const watchVersions = async (admin: Target) => {
    while (!signal.aborted) {
      try {
        const info = await serverInfo(admin, 1_000);
        if (info.state === "LIVE") meter.sawVersion(info.version);
      } catch { /* between two epochs nobody answers admin */ }
      await sleep(ADMIN_EVERY_MS, signal);
    }
  };

  const running: Promise<void>[] = [];
  for (let i = 0; i < newConnectionClients; i++) running.push(runClient(`new-${i}`, newConnectionRequest));
  for (let i = 0; i < keepAliveClients; i++) {
    const { request, end } = keepAliveRequest();
    running.push(runClient(`keep-${i}`, request).finally(end));
  }
  for (let i = 0; i < heldStreams; i++) running.push(runStream());
  if (options.admin !== undefined) running.push(watchVersions(options.admin));

  let stopped: Promise<TrafficReport> | undefined;
  const stop = () =>
    stopped ??= (async () => {
      stopping.abort();
      for (const held of streams) held.abandon();
      meter.finish();
      await Promise.all(running);
      await Promise.all(outcomes);
      return meter.report();
    })();
  return { snapshot: () => meter.report(), hold, stop, [Symbol.asyncDispose]: async () => void await stop() };
}

function sleep(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const wake = () => {
      clearTimeout(timer);
      signal.removeEventListener("abort", wake);
      resolve();
    };
    const timer = setTimeout(wake, ms);
    signal.addEventListener("abort", wake);
  });
}
