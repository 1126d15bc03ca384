// Owns: the stage of the orphan tests: a plain node with one service, whose supervisors are started one after the other, as systemd
// would; their Envoys outlive them. Must not: judge.

import { cachedLauncher } from "../../../tools/native_launcher.ts";
import { freeBaseId } from "../../support/base_ids.ts";
import { envoyPath, type EnvoyVersion } from "../../support/envoys.ts";
import { epochdCommand, runEpochd } from "../../support/epochd.ts";
import { type LogEvent, LogLines } from "../../support/log_lines.ts";
import { argvOf, childrenOf, isAlive, processesWithArgument } from "../../support/procfs.ts";
import { until, within } from "../../support/until.ts";
import type { BootstrapOptions } from "../../support/bootstrap.ts";
import { type Node, node } from "../pods/node.ts";

export interface StartOptions {
  readonly version?: EnvoyVersion;
  readonly envoyPath?: string;
  readonly bootstrapPath?: string;
  /** A flag given here replaces the one that this helper would give. */
  readonly flags?: readonly string[];
  /** In front of everything, such as `unshare --pid --fork`. */
  readonly under?: readonly string[];
  readonly environment?: Readonly<Record<string, string>>;
}

export interface Unit extends AsyncDisposable {
  readonly node: Node;
  start(options?: StartOptions): Promise<Generation>;
  /** And waits until its epoch serves. */
  serving(options?: StartOptions): Promise<Generation>;
  /** Living Envoys by epoch, whoever started them. */
  envoys(): Map<number, number>;
  /** Whatever runs by epochd-launch for this state directory or these Envoys. */
  launchers(): number[];
}

/** One supervisor. */
export class Generation {
  readonly log = new LogLines();
  readonly exit: Promise<Deno.CommandStatus>;
  readonly read: Promise<void>;
  readonly pid: number;
  ended: Deno.CommandStatus | undefined;

  constructor(private readonly child: Deno.ChildProcess, readonly apiSocket: string, readonly marker: string) {
    this.pid = child.pid;
    // Its Envoys have it as well, and outlive it.
    this.read = this.log.collect(child.stderr);
    this.exit = child.status.then((status) => {
      this.ended = status;
      this.log.end(`epochd ended with ${JSON.stringify(status)}`);
      return status;
    });
  }

  event(name: string, where?: (event: LogEvent) => boolean, timeoutMs = 60_000): Promise<LogEvent> {
    return this.log.waitFor(name, { timeoutMs, ...(where === undefined ? {} : { where }) });
  }

  said(...names: string[]): LogEvent[] {
    return this.log.events.filter(({ event }) => names.includes(event));
  }

  signal(signal: Deno.Signal): void {
    if (this.ended !== undefined) return;
    try {
      this.child.kill(signal);
    } catch {
      // It has just ended.
    }
  }

  async kill(signal: Deno.Signal = "SIGKILL"): Promise<Deno.CommandStatus> {
    this.signal(signal);
    // Rust's handler lets the first one pass that no access to memory has caused, and is gone with it.
    const again = setInterval(() => signal === "SIGSEGV" && this.signal(signal), 50);
    try {
      return await within("the end of epochd", this.exit, 30_000);
    } finally {
      clearInterval(again);
    }
  }

  async stop(): Promise<number> {
    return (await this.kill("SIGTERM")).code;
  }

  watchers(): number[] {
    return childrenOf(this.pid).filter(({ pid }) => argvOf(pid)[1] === "watch").map(({ pid }) => pid);
  }

  async status(): Promise<{ readonly phase: string; readonly ready: boolean }> {
    const { stdout } = await runEpochd(["status", "--json", "--api-socket", this.apiSocket]);
    return JSON.parse(stdout).services.envoy;
  }
}

export async function unit(base: Partial<BootstrapOptions> = {}, baseId = freeBaseId()): Promise<Unit> {
  const launcher = await cachedLauncher();
  const here = node(base, baseId);
  const bootstrapPath = here.bootstrap("service");
  const generations: Generation[] = [];
  // Where a test is cut short: these Envoys outlive whoever started them.
  globalThis.addEventListener("unload", () => {
    for (const pid of processesWithArgument("--base-id", String(here.baseId))) Deno.kill(pid, "SIGKILL");
  });
  const runDir = here.directory.at("run");
  Deno.mkdirSync(runDir, { mode: 0o700 });
  const start = (options: StartOptions = {}) => {
    const flags = options.flags ?? [];
    const [apiSocket, marker] = [`${runDir}/api.sock`, `${runDir}/ready`];
    const own: [string, ...string[]][] = [
      ["--envoy-path", options.envoyPath ?? envoyPath(options.version)],
      ["--envoy-config", options.bootstrapPath ?? bootstrapPath],
      ["--base-id", String(here.baseId)],
      ["--concurrency", "1"],
      ["--drain-time", "1s"],
      ["--parent-shutdown-time", "2s"],
      ["--state-dir", here.stateDir],
      ["--api-socket", apiSocket],
      ["--ready-marker", marker],
      ["--log-format", "json"],
      ["--on-supervisor-death", "serve"],
    ];
    const given = own.filter(([flag]) => !flags.includes(flag)).flat();
    const line = [...(options.under ?? []), ...epochdCommand(), "run", ...given, ...flags];
    const child = new Deno.Command(line[0]!, {
      args: line.slice(1),
      env: { EPOCHD_LAUNCHER: launcher, ...options.environment },
      stdin: "null",
      stdout: "null",
      stderr: "piped",
    }).spawn();
    const generation = new Generation(child, apiSocket, marker);
    generations.push(generation);
    return generation;
  };
  const launchers = () => {
    const mine = new Set(generations.map(({ pid }) => pid));
    return [
      ...processesWithArgument("start", `${here.stateDir}/launched-0`),
      ...[...mine].flatMap((pid) => childrenOf(pid).map((child) => child.pid)),
    ].filter((pid) => isAlive(pid) && argvOf(pid)[0] === launcher);
  };
  const envoys = () => {
    const found = new Map<number, number>();
    for (const pid of processesWithArgument("--base-id", String(here.baseId))) {
      const argv = argvOf(pid);
      const at = argv.indexOf("--restart-epoch");
      if (at >= 0 && !argv.includes("--mode") && argv[1] !== "start") found.set(Number(argv[at + 1]), pid);
    }
    return found;
  };
  return {
    node: here,
    start: (options) => Promise.resolve(start(options)),
    async serving(options) {
      const generation = start(options);
      await generation.event("epoch_live");
      return generation;
    },
    envoys,
    launchers,
    async [Symbol.asyncDispose]() {
      for (const generation of generations) await generation.kill();
      await here[Symbol.asyncDispose]();
      await until("no launcher is left", () => launchers().length === 0);
      for (const { read } of generations) await within("the end of its output", read, 10_000);
      const logs = Deno.env.get("EPOCHD_TEST_LOGS");
      if (logs === undefined) return;
      Deno.mkdirSync(logs, { recursive: true });
      const text = generations.map(({ log }, index) => `# ${index}\n${log.lines.map((line) => `${line}\n`).join("")}`);
      Deno.writeTextFileSync(`${logs}/${here.baseId}.log`, text.join(""));
    },
  };
}
