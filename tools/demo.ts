// deno-lint-ignore-file no-console
// Owns: `make demo`: a real Envoy under live traffic, handed over three times. Must not: hide a failure; the exit code tells.

import { envoyPath } from "../tests/support/envoys.ts";
import { type Epochd, startEpochd } from "../tests/support/epochd.ts";
import type { LogEvent } from "../tests/support/log_lines.ts";
import { freePorts } from "../tests/support/ports.ts";
import { tempDir } from "../tests/support/tempdir.ts";
import { startTraffic, type Traffic } from "../tests/support/traffic.ts";
import { startUpstream } from "../tests/support/upstream.ts";
import { writeBootstrap } from "../tests/support/bootstrap.ts";

const DRAIN_TIME_MS = 3_000;
const PARENT_SHUTDOWN_TIME_MS = 6_000;
/** Held from before a handoff until after the drain: 50 chunks in 5 s. */
const STREAM = { chunks: 50, everyMs: 100 };

const startedAtMs = performance.now();

function tell(text: string): void {
  const seconds = ((performance.now() - startedAtMs) / 1000).toFixed(1).padStart(5);
  console.log(`${seconds} s  ${text}`);
}

/** What an operator does on a node: the file goes to the supervisor, which checks it and switches. */
async function push(epochd: Epochd, file: string): Promise<void> {
  const { code, stdout, stderr } = await epochd.command("push", file);
  if (code !== 0) throw new Error(`epochd push ${file} ended with ${code}: ${stderr}`);
  tell(`  epochd push: ${stdout.trim()}`);
}

interface Shown {
  readonly epochs: number[];
  readonly handoffsMs: number[];
}

/** The few events that tell the story, in people's words. */
function show(event: LogEvent, shown: Shown): void {
  const { event: kind, msg } = event;
  if (kind === "epoch_live") shown.epochs.push(Number(event.epoch));
  if (kind === "handoff_live") shown.handoffsMs.push(Number(event.tookMs));
  if (
    ["epoch_spawned", "epoch_live", "handoff_began", "handoff_live", "handoff_done", "ready_changed"].includes(kind)
  ) {
    tell(`  epochd: ${msg}`);
  } else if (event.level === "warn" || event.level === "error") tell(`  epochd: ${event.level}: ${msg}`);
}

async function handOver(what: string, epochd: Epochd, traffic: Traffic, handoff: number, act: () => unknown) {
  const held = traffic.hold(STREAM);
  await held.opened;
  tell(what);
  await act();
  await epochd.waitForEvent("handoff_live", (event) => event.handoff === handoff);
  const outcome = await held.outcome;
  tell(`  the stream that was open before: ${outcome.kind}, ${STREAM.chunks} chunks in order`);
  await epochd.waitForEvent("handoff_done", (event) => event.handoff === handoff);
  const { requests, failed } = traffic.snapshot();
  tell(`  so far ${requests} requests, ${failed} failed`);
}

async function demo(): Promise<boolean> {
  await using directory = tempDir();
  const [adminPort, listenPort, upstreamPort] = freePorts(3) as [number, number, number];
  const bootstrapOf = (generation: string) => ({ adminPort, listenPort, upstreamPort, generation });
  const bootstrapPath = writeBootstrap(directory.at("envoy.yaml"), bootstrapOf("first"));

  await using _upstream = startUpstream(upstreamPort);
  tell("starting epochd with Envoy 1.39.3");
  await using epochd = startEpochd({
    envoyPath: envoyPath("1.39.3"),
    bootstrapPath,
    directory,
    drainTimeMs: DRAIN_TIME_MS,
    parentShutdownTimeMs: PARENT_SHUTDOWN_TIME_MS,
    extraArguments: ["--slots-dir", directory.at("slots")],
  });
  const shown: Shown = { epochs: [], handoffsMs: [] };
  epochd.log.onEvent((event) => show(event, shown));
  await epochd.waitForEvent("epoch_live");

  tell("traffic begins: a connection for each request, keep-alive sessions, and one long stream over each handoff");
  await using traffic = startTraffic({ port: listenPort, admin: { port: adminPort }, requestsPerSecond: 600 });
  await handOver("an edit of the bootstrap", epochd, traffic, 1, () => {
    writeBootstrap(bootstrapPath, bootstrapOf("second"));
  });
  await handOver("a SIGHUP", epochd, traffic, 2, () => epochd.signal("SIGHUP"));
  await handOver("a push: Envoy 1.40.0", epochd, traffic, 3, () => push(epochd, envoyPath("1.40.0")));

  const report = await traffic.stop();
  tell("SIGTERM: drain, then the end");
  epochd.signal("SIGTERM");
  const { code } = await epochd.exit;
  tell(`epochd ended with exit code ${code}`);
  for (const failure of report.failures) tell(`failed: ${JSON.stringify(failure)}`);
  console.log(JSON.stringify({
    requests: report.requests,
    failed: report.failed,
    streams_broken: report.streamsBroken,
    epochs: shown.epochs,
    envoy_versions: report.envoyVersions,
    handoff_ms: shown.handoffsMs.map(Math.round),
  }));
  return code === 0 && report.failed === 0 && report.streamsBroken === 0 && shown.epochs.join() === "0,1,2,3" &&
    report.generations.includes("second");
}

Deno.exit(await demo() ? 0 : 1);
