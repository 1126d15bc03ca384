// Owns: one supervisor as a pod has it: a PID and a mount namespace of its own; network, /dev/shm and the state directory are the node's.
// Must not: know what is tested, or start an Envoy itself.

import { domainSockets, removeSegment } from "../../support/base_ids.ts";
import { envoyPath, type EnvoyVersion } from "../../support/envoys.ts";
import { type CommandResult, epochdCommand, runEpochd } from "../../support/epochd.ts";
import { type LogEvent, LogLines } from "../../support/log_lines.ts";
import { argvOf, childrenOf, isAlive, processesWithArgument } from "../../support/procfs.ts";
import { until, within } from "../../support/until.ts";

export interface PodOptions {
  readonly name: string;
  /** Its own: marker, socket, bootstrap. */
  readonly directory: string;
  /** Shared with the other pods. */
  readonly stateDir: string;
  readonly baseId: number;
  readonly bootstrapPath: string;
  readonly version?: EnvoyVersion;
  readonly envoyPath?: string;
  readonly concurrency?: number;
  readonly drainTime?: string;
  readonly parentShutdownTime?: string;
  readonly gracePeriod?: string;
  /** A flag given here replaces the one that this helper would give; `--no-cross-pod` takes that flag away. */
  readonly flags?: readonly string[];
  /** Without: in the namespaces of the test, so that its death reaches its Envoy as a signal only. */
  readonly isolated?: boolean;
  /** In front of everything, such as `setpriv --reuid 1234`. */
  readonly under?: readonly string[];
}

const ISOLATION = ["unshare", "--pid", "--fork", "--kill-child=SIGKILL", "--mount-proc", "--mount"];

export class Pod {
  readonly log = new LogLines();
  readonly marker: string;
  readonly apiSocket: string;
  readonly exit: Promise<Deno.CommandStatus>;
  readonly #child: Deno.ChildProcess;
  readonly #read: Promise<void>;
  ended: Deno.CommandStatus | undefined;

  constructor(readonly options: PodOptions) {
    const { directory, name, isolated = true } = options;
    Deno.mkdirSync(directory, { recursive: true, mode: 0o700 });
    this.marker = `${directory}/ready`;
    this.apiSocket = `${directory}/api.sock`;
    const line = [...(isolated ? ISOLATION : []), ...(options.under ?? []), ...epochdCommand(), ...this.#arguments()];
    this.#child = new Deno.Command(line[0]!, {
      args: line.slice(1),
      env: { POD_NAME: name },
      stdin: "null",
      stdout: "null",
      stderr: "piped",
    }).spawn();
    this.#read = this.log.collect(this.#child.stderr);
    this.exit = this.#child.status.then((status) => {
      this.ended = status;
      this.log.end(`${name} ended with ${JSON.stringify(status)}`);
      return status;
    });
  }

  /** The supervisor's pid, seen from here; undefined before it runs and after its end. */
  get pid(): number | undefined {
    if (this.ended !== undefined) return undefined;
    if (this.options.isolated === false) return this.#child.pid;
    return childrenOf(this.#child.pid)[0]?.pid;
  }

  signal(signal: Deno.Signal): void {
    const pid = this.pid;
    if (pid !== undefined && isAlive(pid)) Deno.kill(pid, signal);
  }

  /** Its own living Envoys by epoch. */
  envoys(): Map<number, number> {
    const mine = this.pid;
    const found = new Map<number, number>();
    if (mine === undefined) return found;
    for (const { pid } of childrenOf(mine)) {
      const argv = argvOf(pid);
      if (argv.includes("--restart-epoch") && !argv.includes("--mode") && isAlive(pid)) {
        found.set(Number(argv[argv.indexOf("--restart-epoch") + 1]), pid);
      }
    }
    return found;
  }

  event(name: string, where?: (event: LogEvent) => boolean, timeoutMs = 30_000, since = 0): Promise<LogEvent> {
    return this.log.waitFor(name, { since, timeoutMs, ...(where === undefined ? {} : { where }) });
  }

  said(...names: string[]): LogEvent[] {
    return this.log.events.filter(({ event }) => names.includes(event));
  }

  live(epoch: number, since = 0): Promise<LogEvent> {
    return this.event("epoch_live", (event) => event.epoch === epoch, 30_000, since);
  }

  ready(since = 0): Promise<LogEvent> {
    return this.event("ready_changed", ({ ready }) => ready === true, 30_000, since);
  }

  async status(): Promise<Record<string, unknown> & { phase: string; ready: boolean }> {
    const { code, stdout, stderr } = await this.command("status", "--json");
    if (code !== 0) throw new Error(`status of ${this.options.name}: ${stderr}`);
    return JSON.parse(stdout).services.envoy;
  }

  command(name: string, ...args: string[]): Promise<CommandResult> {
    return runEpochd([name, "--api-socket", this.apiSocket, ...args]);
  }

  /** SIGTERM, and its exit code. */
  async stop(): Promise<number> {
    await until(`${this.options.name} runs`, () => this.pid);
    this.signal("SIGTERM");
    return (await within(`the end of ${this.options.name}`, this.exit, 30_000)).code;
  }

  /** As the end of a container: the supervisor is killed; with a PID namespace of its own everything in it goes along. */
  async kill(): Promise<void> {
    this.signal("SIGKILL");
    await within(`the end of ${this.options.name}`, this.exit);
  }

  async end(): Promise<void> {
    if (this.ended === undefined) {
      this.signal("SIGKILL");
      await within(`the end of ${this.options.name}`, this.exit);
    }
    await this.#read;
    // For whoever wants to know why a test has failed.
    const logs = Deno.env.get("EPOCHD_TEST_LOGS");
    if (logs === undefined) return;
    Deno.mkdirSync(logs, { recursive: true });
    const file = `${logs}/${this.options.baseId}-${this.options.name}.log`;
    Deno.writeTextFileSync(file, this.log.lines.map((line) => `${line}\n`).join(""));
  }

  #arguments(): string[] {
    const { options } = this;
    const flags = options.flags ?? [];
    const own: [string, ...string[]][] = [
      ["--envoy-path", options.envoyPath ?? envoyPath(options.version)],
      ["--envoy-config", options.bootstrapPath],
      ["--base-id", String(options.baseId)],
      ["--concurrency", String(options.concurrency ?? 1)],
      ["--drain-time", options.drainTime ?? "1s"],
      ["--parent-shutdown-time", options.parentShutdownTime ?? "2s"],
      ["--grace-period", options.gracePeriod ?? "0s"],
      ["--state-dir", options.stateDir],
      ["--api-socket", this.apiSocket],
      ["--ready-marker", this.marker],
      ["--log-format", "json"],
      ["--when-superseded", "wait"],
      ["--cross-pod"],
    ];
    const isTaken = (flag: string) => flags.includes(flag) || flags.includes(flag.replace(/^--/, "--no-"));
    return [
      "run",
      ...own.filter(([flag]) => !isTaken(flag)).flat(),
      ...flags.filter((flag) => flag !== "--no-cross-pod"),
    ];
  }
}

/** Ends every process of this base id and what they leave. */
export async function sweep(pods: readonly Pod[], baseId: number): Promise<void> {
  for (const pod of pods) await pod.end();
  const left = () => processesWithArgument("--base-id", String(baseId));
  await until(`no process of base id ${baseId} is left`, () => {
    for (const pid of left()) Deno.kill(pid, "SIGKILL");
    return left().length === 0 && domainSockets(baseId).length === 0;
  });
  removeSegment(baseId);
}
