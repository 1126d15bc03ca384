// Owns: running epochd in tests, as a process, from source or compiled. Must not import any of its code: what a test
// sees is what an operator sees.
import { domainSockets, freeBaseId, removeSegment } from "./base_ids.ts";
import { type LogEvent, LogLines, type WaitOptions } from "./log_lines.ts";
import { isAlive, processesWithArgument } from "./procfs.ts";
import { type TempDir, tempDir } from "./tempdir.ts";
import { until, within } from "./until.ts";

/** From source, `dist/epochd`, or a command line that stands for it (a copy elsewhere, a chroot). */
export type Program = "source" | "dist" | readonly [string, ...string[]];

export interface EpochdOptions {
  readonly envoyPath: string;
  readonly bootstrapPath: string;
  /** An epochd.yaml that describes everything but the API's socket: no other flag is given then. */
  readonly configPath?: string;
  /** Default: a free one. */
  readonly baseId?: number;
  /** Default 1. "default": no flag, epochd chooses. */
  readonly concurrency?: number | "default";
  /** Defaults: 2 s and 4 s, so that tests see a whole handoff soon. */
  readonly drainTimeMs?: number;
  readonly parentShutdownTimeMs?: number;
  /** Added to the command line. A flag given here replaces the one that this helper would give. */
  readonly extraArguments?: readonly string[];
  readonly environment?: Readonly<Record<string, string>>;
  /** In a session of its own: Ctrl-C at the terminal is then for who started it alone. */
  readonly detached?: boolean;
  /** Where state, socket and marker go. Default: a directory of its own, removed with it. */
  readonly directory?: TempDir;
  /** Default: EPOCHD_TEST_PROGRAM, else source. */
  readonly program?: Program;
}

export interface CommandResult {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

export interface Epochd extends AsyncDisposable {
  readonly pid: number;
  readonly baseId: number;
  readonly stateDir: string;
  readonly apiSocket: string;
  readonly readyMarker: string;
  readonly exit: Promise<Deno.CommandStatus>;
  readonly log: LogLines;
  readonly stdout: () => string;
  waitForEvent(name: string, where?: WaitOptions["where"], options?: Omit<WaitOptions, "where">): Promise<LogEvent>;
  /** `epochd status --json`, parsed. */
  status(): Promise<unknown>;
  /** Any command of epochd against this one, e.g. `command("restart", "--wait")`. */
  command(...args: string[]): Promise<CommandResult>;
  signal(signal: Deno.Signal): void;
  /** Living Envoys of this base id, by pid. */
  envoyPids(): number[];
}

export function epochdCommand(program: Program = defaultProgram()): readonly [string, ...string[]] {
  if (typeof program !== "string") return program;
  const root = decodeURIComponent(new URL("../../", import.meta.url).pathname);
  return program === "dist" ? [`${root}dist/epochd`] : [Deno.execPath(), "run", "-A", "--quiet", `${root}main.ts`];
}

/** Runs one epochd command to its end. A `run` that is refused ends by itself; one that is not needs startEpochd. */
export async function runEpochd(
  args: readonly string[],
  program?: Program,
  timeoutMs = 30_000,
): Promise<CommandResult> {
  const [path, ...first] = epochdCommand(program);
  const child = new Deno.Command(path, { args: [...first, ...args], stdin: "null", stdout: "piped", stderr: "piped" })
    .spawn();
  try {
    const { code, stdout, stderr } = await within(`the end of epochd ${args.join(" ")}`, child.output(), timeoutMs);
    const decoder = new TextDecoder();
    return { code, stdout: decoder.decode(stdout), stderr: decoder.decode(stderr) };
  } catch (error) {
    if (isAlive(child.pid)) child.kill("SIGKILL");
    throw error;
  }
}

export function startEpochd(options: EpochdOptions): Epochd {
  const directory = options.directory ?? tempDir();
  const baseId = options.baseId ?? freeBaseId();
  const runDir = directory.at("run");
  Deno.mkdirSync(runDir, { recursive: true, mode: 0o700 });
  const stateDir = `${runDir}/state`;
  const apiSocket = `${runDir}/api.sock`;
  const readyMarker = `${runDir}/ready`;
  const extra = options.extraArguments ?? [];
  const flags = Object.entries(
    options.configPath !== undefined
      ? {
        "--config": options.configPath,
        "--api-socket": apiSocket,
        "--log-format": "json",
      }
      : {
        "--envoy-path": options.envoyPath,
        "--envoy-config": options.bootstrapPath,
        "--base-id": String(baseId),
        ...(options.concurrency === "default" ? {} : { "--concurrency": String(options.concurrency ?? 1) }),
        "--drain-time": duration(options.drainTimeMs ?? 2_000),
        "--parent-shutdown-time": duration(options.parentShutdownTimeMs ?? 4_000),
        "--state-dir": stateDir,
        "--api-socket": apiSocket,
        "--ready-marker": readyMarker,
        "--log-format": "json",
      },
  ).filter(([flag]) => !extra.some((argument) => argument === flag || argument.startsWith(`${flag}=`)));

  const program = options.program ?? defaultProgram();
  const [path, ...first] = epochdCommand(program);
  const child = new Deno.Command(path, {
    args: [...first, "run", ...flags.flat(), ...extra],
    ...(options.environment === undefined ? {} : { env: { ...options.environment } }),
    detached: options.detached ?? false,
    stdin: "null",
    stdout: "piped",
    stderr: "piped",
  }).spawn();

  const log = new LogLines();
  let stdout = "";
  const read = Promise.all([
    log.collect(child.stderr),
    (async () => {
      for await (const text of child.stdout.pipeThrough(new TextDecoderStream())) stdout += text;
    })(),
  ]);
  let ended: Deno.CommandStatus | undefined;
  const exit = child.status.then((status) => {
    ended = status;
    // Envoys share its stderr and may write on after its end, so the end of the stream is not waited for.
    log.end(`epochd ended with ${JSON.stringify(status)}`);
    return status;
  });
  const signal = (name: Deno.Signal) => {
    if (ended === undefined) child.kill(name);
  };
  const command = (...args: string[]) => {
    // At the end: a command such as `config set` has its options there.
    return runEpochd([...args, "--api-socket", apiSocket], program);
  };
  const envoyPids = () =>
    processesWithArgument("--base-id", String(baseId)).filter((pid) => pid !== child.pid && pid !== Deno.pid);

  return {
    pid: child.pid,
    baseId,
    stateDir,
    apiSocket,
    readyMarker,
    exit,
    log,
    stdout: () => stdout,
    signal,
    command,
    envoyPids,
    waitForEvent: (name, where, rest) => log.waitFor(name, { ...rest, ...(where === undefined ? {} : { where }) }),
    async status() {
      const { code, stdout, stderr } = await command("status", "--json");
      if (code !== 0) throw new Error(`epochd status ended with ${code}: ${stderr}`);
      return JSON.parse(stdout);
    },
    async [Symbol.asyncDispose]() {
      signal("SIGTERM");
      // It may wait for a successor's protocol or a drain; a test that wants to see that waits for `exit` itself.
      await within("", exit, 10_000).catch(() => signal("SIGKILL"));
      await within(`the end of epochd ${child.pid}`, exit, 10_000);
      const left = await leftovers(envoyPids);
      for (const pid of left) Deno.kill(pid, "SIGKILL");
      await within("the end of epochd's output", read, 10_000);
      await until(`the sockets of base id ${baseId} are gone`, () => domainSockets(baseId).length === 0);
      removeSegment(baseId);
      if (options.directory === undefined) await directory[Symbol.asyncDispose]();
      if (left.length > 0) throw new Error(`epochd left Envoys behind: ${left.join(", ")}\n${log.tail()}`);
    },
  };
}

/** What is still there a moment after epochd has ended: Envoy needs that moment to follow its SIGTERM. */
async function leftovers(envoyPids: () => number[]): Promise<number[]> {
  // Several looks: a process in the middle of an exec shows no arguments for a moment.
  let emptyLooks = 0;
  const isEmpty = () => (emptyLooks = envoyPids().length === 0 ? emptyLooks + 1 : 0) >= 3;
  try {
    await until("no Envoy is left", isEmpty, { timeoutMs: 2_000 });
    return [];
  } catch {
    return envoyPids();
  }
}

function defaultProgram(): Program {
  return Deno.env.get("EPOCHD_TEST_PROGRAM") === "dist" ? "dist" : "source";
}

function duration(ms: number): string {
  return ms % 1000 === 0 ? `${ms / 1000}s` : `${ms}ms`;
}
