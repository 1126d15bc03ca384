// Owns: the stage of an integration test: ports, upstream, bootstrap, and the epochd and the traffic on it.
// Must not: know what is tested, or hide what went wrong (a failure shows epochd's log).
import assert from "node:assert/strict";
import { type BootstrapOptions, writeBootstrap } from "../support/bootstrap.ts";
import { envoyPath } from "../support/envoys.ts";
import {
  type CommandResult,
  type Epochd,
  epochdCommand,
  type EpochdOptions,
  type Program,
  startEpochd,
} from "../support/epochd.ts";
import type { Target } from "../support/http_client.ts";
import type { LogEvent } from "../support/log_lines.ts";
import { freePorts } from "../support/ports.ts";
import { type TempDir, tempDir } from "../support/tempdir.ts";
import { startTraffic, type Traffic, type TrafficOptions, type TrafficReport } from "../support/traffic.ts";
import { startUpstream } from "../support/upstream.ts";

export interface SceneOptions {
  readonly bootstrap?: Partial<BootstrapOptions>;
  /** Default `envoy.yaml`, in the scene's directory. */
  readonly bootstrapName?: string;
}

export interface Scene extends AsyncDisposable {
  readonly directory: TempDir;
  readonly bootstrapPath: string;
  readonly listener: { readonly port: number };
  readonly admin: Target;
  /** Replaces the bootstrap by a rename, with these changes to what the scene began with. */
  edit(changes: Partial<BootstrapOptions>, path?: string): string;
  /** In the order they were started. */
  readonly started: readonly Epochd[];
  /** Starts epochd and waits until epoch 0 is LIVE. */
  start(options?: Partial<EpochdOptions>): Promise<Epochd>;
  traffic(options?: Partial<TrafficOptions>): Traffic;
}

/** Flows on long after LIVE, and has ended well before the parent shutdown time (4 s) cuts it. */
export const STREAM = { chunks: 50, everyMs: 50 };

export function scene(options: SceneOptions = {}): Scene {
  const directory = tempDir();
  const [listenPort, adminPort, upstreamPort] = freePorts(3) as [number, number, number];
  const upstream = startUpstream(upstreamPort);
  const base: BootstrapOptions = { listenPort, adminPort, upstreamPort, generation: "first", ...options.bootstrap };
  const bootstrapPath = directory.at(options.bootstrapName ?? "envoy.yaml");
  const edit = (changes: Partial<BootstrapOptions>, path = bootstrapPath) =>
    writeBootstrap(path, { ...base, ...changes });
  edit({});
  const admin = base.adminPath === undefined ? { port: adminPort } : { path: base.adminPath };
  const started: Epochd[] = [];
  const flowing: Traffic[] = [];
  return {
    directory,
    bootstrapPath,
    listener: { port: listenPort },
    admin,
    edit,
    started,
    async start(more = {}) {
      const epochd = startEpochd({ envoyPath: envoyPath(), bootstrapPath, directory, ...more });
      started.push(epochd);
      await epochd.waitForEvent("epoch_live");
      return epochd;
    },
    traffic(more = {}) {
      const traffic = startTraffic({ port: listenPort, ...more });
      flowing.push(traffic);
      return traffic;
    },
    async [Symbol.asyncDispose]() {
      for (const traffic of flowing) await traffic.stop();
      for (const epochd of started.toReversed()) await epochd[Symbol.asyncDispose]();
      await upstream[Symbol.asyncDispose]();
      await directory[Symbol.asyncDispose]();
    },
  };
}

/** Nothing failed: not a request, not a stream. */
export function assertUnhurt(report: TrafficReport): void {
  assert.deepEqual(report.failures, []);
  assert.deepEqual([report.failed, report.streamsBroken], [0, 0]);
  assert.ok(report.requests > 0, "there must have been traffic");
}

export function eventsOf(epochd: Epochd, ...names: string[]): LogEvent[] {
  return epochd.log.events.filter(({ event }) => names.includes(event));
}

/**
 * Envoy's protocol ended every predecessor: epochd sent none of them a signal, and each had been asked by its child before it
 * gave itself the SIGTERM that ends it. `predecessors`: the epochs that must have ended so.
 */
export function assertEndedByProtocol(epochd: Epochd, predecessors: readonly number[]): void {
  assert.deepEqual(eventsOf(epochd, "epoch_ending").filter(({ role }) => role === "predecessor"), []);
  const ended = eventsOf(epochd, "epoch_exited").filter(({ role }) => role === "predecessor");
  assert.deepEqual(
    ended.map(({ epoch, exitCode, exitSignal }) => ({ epoch, exitCode, exitSignal })),
    predecessors.map((epoch) => ({ epoch, exitCode: 0, exitSignal: undefined })),
  );
  for (const epoch of predecessors) {
    const said = envoyLinesOf(epochd, epoch).map((line) =>
      /shutting down due to child|caught (?:ENVOY_)?SIG(?:TERM|INT)/.exec(line)?.[0]
    );
    const words = said.filter((word) => word !== undefined);
    assert.deepEqual(words, ["shutting down due to child", "caught ENVOY_SIGTERM"], `epoch ${epoch} was signalled`);
  }
}

/** What Envoy wrote as this epoch, by the default log format. */
export function envoyLinesOf(epochd: Epochd, epoch: number): string[] {
  return epochd.log.envoyLines.filter((line) => line.includes(`[epoch ${epoch}]`));
}

export async function handoff(epochd: Epochd, number: number, to: "live" | "done" = "live"): Promise<LogEvent> {
  return await epochd.waitForEvent(`handoff_${to}`, (event) => event.handoff === number);
}

/** Installs a file as package managers do: a new one, renamed onto the old. */
export function installByRename(from: string, to: string): void {
  Deno.copyFileSync(from, `${to}.new`);
  Deno.renameSync(`${to}.new`, to);
}

/** And as `cp --remove-destination` and `install` do: the old one is unlinked first, the new one grows. */
export function installByUnlink(from: string, to: string): void {
  Deno.removeSync(to);
  Deno.copyFileSync(from, to);
}

/** What epochd-probe says of the marker; from source or compiled, as epochd itself. */
export async function probe(
  epochd: Pick<Epochd, "readyMarker">,
  args: readonly string[] = [],
  program: Program | undefined = undefined,
): Promise<CommandResult> {
  const [path, ...first] = epochdCommand(program);
  const asProbe = (text: string) => text.replace(/main\.ts$/, "probe.ts").replace(/\/epochd$/, "/epochd-probe");
  const { code, stdout, stderr } = await new Deno.Command(asProbe(path), {
    args: [...first.map(asProbe), "--ready-marker", epochd.readyMarker, ...args],
    stdin: "null",
  }).output();
  const decoder = new TextDecoder();
  return { code, stdout: decoder.decode(stdout), stderr: decoder.decode(stderr) };
}

/** A program, run under a command such as `taskset -c 0`. */
export function under(command: readonly [string, ...string[]], program: readonly string[]): Program {
  return [...command, ...program];
}

/** For `change` of a bootstrap: the path of every request, into a file or to Envoy's stdout. */
export function logRequests(to: { readonly path: string } | "stdout"): NonNullable<BootstrapOptions["change"]> {
  const api = "type.googleapis.com/envoy.extensions.access_loggers";
  const log_format = { text_format_source: { inline_string: "request %REQ(:PATH)%\n" } };
  const sink = to === "stdout"
    ? { "@type": `${api}.stream.v3.StdoutAccessLog`, log_format }
    : { "@type": `${api}.file.v3.FileAccessLog`, path: to.path, log_format };
  return (bootstrap) => {
    for (const listener of bootstrap.static_resources.listeners) {
      for (const chain of listener.filter_chains) {
        for (const { typed_config: config } of chain.filters) config.access_log = [{ name: "log", typed_config: sink }];
      }
    }
  };
}
