// Owns: the life of `epochd run`: prepare, start, wire signals, watches and API, wait for the end. Must not: decide anything.

import type { RunningApi } from "../api/server.ts";
import { SystemClock } from "../adapters/clock.ts";
import { onSignals } from "../adapters/signals.ts";
import { predecessor } from "../adapters/successor.ts";
import { readBootId } from "../adapters/state_dir.ts";
import { ConfigHistory } from "../config/history.ts";
import type { Loaded } from "../config/load.ts";
import type { LogConfig, RunConfig } from "../config/run_config.ts";
import { writtenConfig } from "../config/written.ts";
import { lineOptions, type Log, openLog } from "../observe/log.ts";
import type { ShellFact } from "../observe/shell_fact.ts";
import { otelSettings } from "../observe/otel_settings.ts";
import { Observatory } from "../observe/observatory.ts";
import { runtime, version } from "../observe/version.ts";
import type { Binaries } from "../runtime/binaries.ts";
import { Configuration } from "../runtime/configuration.ts";
import { Supervisor } from "../runtime/supervisor.ts";
import type { UpgradeControl } from "../runtime/upgrade_status.ts";
import { watchConfig } from "./config_watch.ts";
import { WiredFleet } from "./fleet.ts";
import { openManager } from "./manager_wiring.ts";
import { wireUpgrade } from "./upgrade_wiring.ts";

/** A blocked stderr, or a file system that hangs, must not hold the exit longer than this. */
const FLUSH_MS = 1_000;

/** The API comes up after this all the same, where no epoch is started yet (another pod's is looked for). */
const API_WAIT_MS = 1_000;

type Given = Extract<Loaded, { kind: "loaded" }>;

/** Resolves to the exit code of `epochd run`; 2 when a directory or a marker can't be used. `chosen`: by `--base-id auto`. */
export async function run(loaded: Given, chosen?: number): Promise<number> {
  const { config } = loaded;
  const log = heard(openLog(logOptions(config.log)));
  const names = Object.keys(config.services);
  log.shell({ kind: "supervisor_started", version, runtime, pid: Deno.pid, services: names });
  if (config.configPath !== undefined) log.shell({ kind: "config_loaded", path: config.configPath, services: names });
  if (chosen !== undefined) log.shell({ kind: "base_id_chosen", baseId: chosen });
  const code = await supervise(loaded, log);
  log.shell({ kind: "supervisor_ended", exitCode: code });
  await log.flush(FLUSH_MS);
  return code;
}

/** A log whose facts others see as well: see `hearers`. */
interface HeardLog extends Log {
  readonly hearers: Set<(fact: ShellFact) => void>;
}

function heard(log: Log): HeardLog {
  const hearers: HeardLog["hearers"] = new Set();
  return {
    ...log,
    hearers,
    shell(fact) {
      log.shell(fact);
      for (const hear of hearers) hear(fact);
    },
  };
}

function logOptions({ format, level }: LogConfig) {
  const noColour = Deno.env.get("NO_COLOR") !== undefined;
  return { ...lineOptions(format, Deno.stderr.isTerminal(), noColour), level };
}

async function supervise(loaded: Given, log: HeardLog): Promise<number> {
  const { config } = loaded;
  const bug = (where: string, error: unknown) => {
    const what = error instanceof Error ? error.stack ?? error.message : String(error);
    log.shell({ kind: "bug", problem: `${where}: ${what}` });
  };
  const predecessorLives = predecessor();
  const succeeds = predecessorLives !== undefined;
  const supervisor = new Supervisor({
    version,
    pid: Deno.pid,
    clock: new SystemClock(),
    observers: [(record) => log.fact(record)],
    bug,
    succeeds,
  });
  const fleet = new WiredFleet(supervisor, log, {
    instance: crypto.randomUUID(),
    pod: Deno.env.get("POD_NAME") ?? Deno.hostname(),
    bootId: await readBootId() ?? "unknown",
    version,
  }, succeeds);
  for (const [name, service] of Object.entries(config.services)) {
    const problem = await fleet.prepare(name, service);
    if (problem === undefined) continue;
    log.shell({ kind: "start_refused", problem });
    return 2;
  }
  const observatory = new Observatory({
    control: supervisor,
    pid: Deno.pid,
    droppedLogLines: () => log.droppedLines(),
    stateDirOf: (name) => fleet.stateDirOf(name),
    census: (name) => fleet.census(name),
    problem: (problem) => log.shell({ kind: "ledger_failed", problem }),
    traceProblem: (problem) => log.shell({ kind: "traces_failed", problem }),
    otel: otelSettings((name) => Deno.env.get(name)),
  });
  let useApi: (config: RunConfig) => void = () => {};
  const configuration = new Configuration({
    loaded,
    fleet,
    history: new ConfigHistory(Object.values(config.services)[0]!.stateDir),
    tell: (fact) => log.shell(fact),
    useLog: (next) => log.use(logOptions(next)),
    useApi: (next) => useApi(next),
    isStopping: () => supervisor.status().stopping,
  }, writtenConfig(loaded.fields));
  const upgrade = wireUpgrade(supervisor, fleet, fleet.binaries, configuration, (fact) => log.shell(fact));
  const manager = openManager(supervisor, () => upgrade.status, (fact) => log.shell(fact), predecessorLives);
  if (manager !== undefined) {
    supervisor.subscribe(manager.observe);
    log.hearers.add((fact) => manager.shell(fact));
  }
  const stop = (source: string) => {
    upgrade.stop();
    supervisor.stop(source);
  };
  const reload = () => {
    if (config.configPath === undefined) return supervisor.triggerAll("signal");
    configuration.reload({ who: "SIGHUP", source: "signal" }).catch((error) => bug("reload by SIGHUP", error));
  };
  // Before the first epoch: a signal that comes early must not end epochd by its default action, and Envoy with it. For good,
  // since one that comes late must not change the exit code.
  onSignals(hearing(supervisor, reload, stop, log));
  const turn = turnOf(supervisor, config);
  const ended = supervisor.run();
  fleet.watch();
  let isOver = false;
  const afterwards = spawned(supervisor, ended).then(async () => {
    if (isOver) return undefined;
    const close = config.configPath === undefined
      ? undefined
      : watchConfig(config.configPath, configuration, (fact) => log.shell(fact), bug);
    const api = await serveApi(supervisor, configuration, observatory, fleet.binaries, upgrade, log, turn);
    useApi = (next) => api?.use(next);
    await configuration.begin();
    return { close: () => close?.(), api };
  });
  try {
    const code = await ended;
    await upgrade.conclude(supervisor.isSucceeded);
    return code;
  } finally {
    isOver = true;
    const last = [
      afterwards.then((begun) => (begun?.close(), begun?.api?.close())),
      fleet.close(),
      observatory.close(),
    ];
    await Promise.race([Promise.all(last), new Promise((resolve) => setTimeout(resolve, FLUSH_MS))]);
  }
}

/** What a start does not need waits until its Envoy runs. */
function spawned(supervisor: Supervisor, ended: Promise<unknown>): Promise<void> {
  return new Promise((resolve) => {
    const go = () => {
      clearTimeout(timer);
      unsubscribe();
      resolve();
    };
    const timer = setTimeout(go, API_WAIT_MS);
    // A fact comes within a step, which must not wait for imports.
    const unsubscribe = supervisor.subscribe(({ fact }) => {
      if (fact.kind === "epoch_spawned") setTimeout(go);
    });
    void ended.then(go);
  });
}

/** Where it shares its base id, when all it began with has been LIVE: until then the other supervisor is who to ask. */
function turnOf(supervisor: Supervisor, { services }: RunConfig): Promise<void> | undefined {
  if (!Object.values(services).some(({ crossPod }) => crossPod)) return undefined;
  const awaited = new Set(Object.keys(services));
  return new Promise((resolve) => {
    const unsubscribe = supervisor.subscribe(({ service, fact }) => {
      if (fact.kind !== "epoch_live") return;
      awaited.delete(service);
      if (awaited.size > 0) return;
      unsubscribe();
      resolve();
    });
  });
}

function hearing(supervisor: Supervisor, reload: () => void, stop: (source: string) => void, log: Log) {
  const hear = (signal: string, act: () => void) => () => {
    log.shell({ kind: "signal_received", signal });
    act();
  };
  return {
    SIGHUP: hear("SIGHUP", reload),
    SIGTERM: hear("SIGTERM", () => stop("SIGTERM")),
    SIGINT: hear("SIGINT", () => stop("SIGINT")),
    SIGUSR1: hear("SIGUSR1", () => supervisor.reopenLogs()),
  };
}

async function serveApi(
  supervisor: Supervisor,
  configuration: Configuration,
  observed: Observatory,
  binaries: Binaries,
  upgrade: UpgradeControl,
  log: Log,
  turn: Promise<void> | undefined,
): Promise<RunningApi | undefined> {
  const { apiSocket: path } = configuration.running.config;
  try {
    const { startApi } = await import("../api/server.ts");
    return await startApi({
      path,
      control: supervisor,
      configuration,
      observed,
      binaries,
      upgrade,
      log,
      ...(turn && { turn }),
    });
  } catch (error) {
    // Serving matters more than being asked: without its API epochd still obeys signals and files.
    log.shell({ kind: "api_failed", path, problem: error instanceof Error ? error.message : String(error) });
    return undefined;
  }
}
