// Owns: the life of `epochd run`: prepare, start, wire signals, watches and API, wait for the end. Must not: decide anything.

import type { CloseApi } from "../api/server.ts";
import { countUsableCpus } from "../adapters/cpus.ts";
import { SystemClock } from "../adapters/clock.ts";
import { onSignals } from "../adapters/signals.ts";
import { prepareStateDir, readBootId } from "../adapters/state_dir.ts";
import type { RunConfig } from "../config/run_config.ts";
import { type ServiceConfig, toSettings } from "../config/service_config.ts";
import type { Subject } from "../core/event.ts";
import { lineOptions, type Log, openLog } from "../observe/log.ts";
import { runtime, version } from "../observe/version.ts";
import type { Service } from "../runtime/service.ts";
import { Supervisor } from "../runtime/supervisor.ts";
import { assemble, type Assembled } from "./assemble.ts";

/** A blocked stderr, or a file system that hangs, must not hold the exit longer than this. */
const FLUSH_MS = 1_000;

/** Resolves to the exit code of `epochd run`; 2 when a directory or a marker can't be used. */
export async function run(config: RunConfig): Promise<number> {
  const format = lineOptions(config.log.format, Deno.stderr.isTerminal(), Deno.env.get("NO_COLOR") !== undefined);
  const log = openLog({ ...format, level: config.log.level });
  const names = Object.keys(config.services);
  log.shell({ kind: "supervisor_started", version, runtime, pid: Deno.pid, services: names });
  if (config.configPath !== undefined) log.shell({ kind: "config_loaded", path: config.configPath, services: names });
  const code = await supervise(config, log);
  log.shell({ kind: "supervisor_ended", exitCode: code });
  await log.flush(FLUSH_MS);
  return code;
}

async function supervise(config: RunConfig, log: Log): Promise<number> {
  const bug = (where: string, error: unknown) => {
    const what = error instanceof Error ? error.stack ?? error.message : String(error);
    log.shell({ kind: "bug", problem: `${where}: ${what}` });
  };
  const supervisor = new Supervisor({
    version,
    pid: Deno.pid,
    clock: new SystemClock(),
    observers: [(record) => log.fact(record)],
    bug,
  });
  const self = {
    instance: crypto.randomUUID(),
    pod: Deno.env.get("POD_NAME") ?? Deno.hostname(),
    bootId: await readBootId() ?? "unknown",
    version,
  };
  const wired: { readonly config: ServiceConfig; readonly service: Service; readonly assembled: Assembled }[] = [];
  for (const [name, service] of Object.entries(config.services)) {
    const assembled = assemble(service, concurrencyOf(service, log), self);
    const { marker } = assembled;
    const problem = await prepareStateDir(service.stateDir) ?? await marker?.removeStale(() => {
      log.shell({ kind: "stale_marker_removed", path: marker.path });
    });
    if (problem !== undefined) {
      log.shell({ kind: "start_refused", problem });
      return 2;
    }
    const added = supervisor.add({ name, ports: assembled.ports, settings: toSettings(service) });
    wired.push({ config: service, service: added, assembled });
  }
  // Before the first epoch: a signal that comes early must not end epochd by its default action, and Envoy with it. For good,
  // since one that comes late must not change the exit code.
  onSignals(hearing(supervisor, log));
  const ended = supervisor.run();
  const closers = wired.flatMap(({ config, service, assembled }) => watch(config, service, assembled));
  const api = serveApi(config.apiSocket, supervisor, log);
  try {
    return await ended;
  } finally {
    for (const close of closers) close();
    // The marker's removal may still be on its way; what is asked now comes after it.
    const last = [api.then((close) => close?.()), ...wired.map(({ assembled }) => assembled.marker?.remove())];
    await Promise.race([Promise.all(last), new Promise((resolve) => setTimeout(resolve, FLUSH_MS))]);
  }
}

function concurrencyOf(config: ServiceConfig, log: Log): number {
  if (config.concurrency !== undefined) return config.concurrency;
  const concurrency = countUsableCpus();
  log.shell({ kind: "concurrency_chosen", concurrency, why: "the CPUs this process may use" });
  return concurrency;
}

function hearing(supervisor: Supervisor, log: Log) {
  const hear = (signal: string, act: () => void) => () => {
    log.shell({ kind: "signal_received", signal });
    act();
  };
  return {
    SIGHUP: hear("SIGHUP", () => supervisor.triggerAll("signal")),
    SIGTERM: hear("SIGTERM", () => supervisor.stop("SIGTERM")),
    SIGINT: hear("SIGINT", () => supervisor.stop("SIGINT")),
    SIGUSR1: hear("SIGUSR1", () => supervisor.reopenLogs()),
  };
}

function watch(config: ServiceConfig, service: Service, { watchOf }: Assembled): (() => void)[] {
  const watched: readonly (readonly [Subject, boolean, string])[] = [
    ["bootstrap", config.watchConfig, config.envoyConfig],
    ["binary", config.watchBinary, config.envoyPath],
  ];
  return watched.filter(([, wanted]) => wanted).map(([subject, , path]) => {
    const { close } = watchOf(subject).watch(
      path,
      (content) => service.submit({ kind: "content", subject, content, jitter: Math.random() }),
      (mode, why) => service.submit({ kind: "watch", subject, mode, why }),
    );
    return close;
  });
}

/** The API is loaded after the first epoch was spawned: it costs milliseconds that a start should not wait for. */
async function serveApi(path: string, supervisor: Supervisor, log: Log): Promise<CloseApi | undefined> {
  try {
    const { startApi } = await import("../api/server.ts");
    return await startApi({ path, control: supervisor, log });
  } catch (error) {
    // Serving matters more than being asked: without its API epochd still obeys signals and files.
    log.shell({ kind: "api_failed", path, problem: error instanceof Error ? error.message : String(error) });
    return undefined;
  }
}
