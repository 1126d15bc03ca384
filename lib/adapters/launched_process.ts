// Owns: Envoys that are started by epochd-launch: nobody's children but init's, so that they outlive this supervisor; and their watch.
// Must not: take the end of a watcher for the end of an Envoy.

import type { ChildSignal } from "../core/effect.ts";
import type { Exit } from "../core/epoch.ts";
import type { ChildProcess } from "../runtime/ports.ts";
import type { Starter } from "./process.ts";
import { isAlive, type LaunchRecords, type ProcessName, signalProcess } from "./launch_records.ts";

/** What epochd-launch ends with beside the errno of an exec (lib/launch/launch.c). */
const FIRST_OWN_CODE = 200;
const NO_RECORD = 202;
/** A watcher that can't be had is asked for again this soon. */
const AGAIN_MS = 250;

export class Launcher implements Starter {
  constructor(readonly path: string, private readonly records: LaunchRecords) {}

  /** Takes some milliseconds: until the exec of Envoy has worked, or has not. */
  start(path: string, args: readonly string[], env: Readonly<Record<string, string>>, epoch: number): ChildProcess {
    const record = this.records.pathOf(epoch);
    const { code, signal } = new Deno.Command(this.path, {
      args: ["start", record, this.records.wordsOf(epoch), "--", path, ...args],
      env: { ...env },
      // What befalls this process' group is not for the launcher.
      detached: true,
      stdin: "null",
      stdout: "inherit",
      stderr: "inherit",
    }).outputSync();
    if (signal === null && code > 0 && code < FIRST_OWN_CODE) throw new Error(`${errnoText(code)} (os error ${code})`);
    if (code === NO_RECORD) throw new Error(`${record} can't be written, which tells the next supervisor of it`);
    if (code !== 0) throw new Error(`${this.path} ended with ${signal ?? code}`);
    const launched = this.records.readOne(epoch);
    if (launched === undefined) throw new Error(`${record} does not say what ${this.path} has started`);
    return new LaunchedProcess(launched, this.path);
  }
}

/** The texts that execRefusal shows; its names go by the number. */
function errnoText(errno: number): string {
  const texts: Readonly<Record<number, string>> = {
    2: "No such file or directory",
    7: "Argument list too long",
    8: "Exec format error",
    11: "Resource temporarily unavailable",
    12: "Cannot allocate memory",
    13: "Permission denied",
    20: "Not a directory",
    21: "Is a directory",
    23: "Too many open files in system",
    24: "Too many open files",
    26: "Text file busy",
    40: "Too many levels of symbolic links",
  };
  return texts[errno] ?? "Exec failed";
}

export class LaunchedProcess implements ChildProcess {
  readonly exit: Promise<Exit>;
  #ended = false;

  constructor(private readonly process: ProcessName, private readonly launcher: string) {
    this.exit = this.#watched().then((exit) => {
      this.#ended = true;
      return exit;
    });
  }

  get pid(): number {
    return this.process.pid;
  }

  signal(signal: ChildSignal): boolean {
    return !this.#ended && signalProcess(this.process, signal);
  }

  /** A watcher may be killed as anything may; its word ends the watch, its end does not. */
  async #watched(): Promise<Exit> {
    for (;;) {
      const word = await this.#watch();
      const exit = parseExit(word);
      if (exit !== undefined) return exit;
      if (!isAlive(this.process)) return { code: "unknown" };
      await new Promise((resolve) => setTimeout(resolve, AGAIN_MS));
    }
  }

  async #watch(): Promise<string> {
    try {
      const watcher = new Deno.Command(this.launcher, {
        args: ["watch", String(this.process.pid), String(this.process.startTicks)],
        detached: true,
        // Its end is how a watcher knows that this supervisor has ended.
        stdin: "piped",
        stdout: "piped",
        stderr: "null",
      }).spawn();
      const text = await new Response(watcher.stdout).text();
      await watcher.status;
      await watcher.stdin.close().catch(() => {});
      return text;
    } catch {
      return "";
    }
  }
}

/** The word of a watcher; undefined for one that was cut short. */
export function parseExit(word: string): Exit | undefined {
  if (word === "unknown\n" || word === "gone\n") return { code: "unknown" };
  const match = /^exit (\d{1,10})\n$/.exec(word);
  if (match === null) return undefined;
  // As wait(2) packs it.
  const status = Number(match[1]);
  const number = status & 0x7f;
  if (number === 0) return { code: (status >> 8) & 0xff };
  return { code: 128 + number, signal: signalName(number) };
}

function signalName(number: number): string {
  const names: Readonly<Record<number, string>> = {
    1: "SIGHUP",
    2: "SIGINT",
    3: "SIGQUIT",
    4: "SIGILL",
    5: "SIGTRAP",
    6: "SIGABRT",
    7: "SIGBUS",
    8: "SIGFPE",
    9: "SIGKILL",
    10: "SIGUSR1",
    11: "SIGSEGV",
    12: "SIGUSR2",
    13: "SIGPIPE",
    14: "SIGALRM",
    15: "SIGTERM",
    24: "SIGXCPU",
    25: "SIGXFSZ",
    31: "SIGSYS",
  };
  return names[number] ?? `signal ${number}`;
}
