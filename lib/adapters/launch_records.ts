// Owns: `launched-0` to `launched-2` of a state directory: which process epochd-launch made for each slot, and by whom.
// Must not: write them (epochd-launch does, before there is an Envoy), or trust a pid without its start time.

import { join } from "node:path";
import type { ChildSignal } from "../core/effect.ts";
import type { Launches } from "../core/orphan.ts";
import { parseProcStat } from "./proc_stat.ts";

/** Slots are epochs modulo 3, as Envoy names its sockets. */
const SLOTS = [0, 1, 2];

/** A process by its pid and its start (clock ticks since boot): a pid alone may be anybody's by now. */
export interface ProcessName {
  readonly pid: number;
  readonly startTicks: number;
}

export interface LaunchRecord extends ProcessName {
  /** Nanoseconds since boot, in the order of the launches. */
  readonly atNs: bigint;
  readonly supervisor: ProcessName;
  readonly epoch: number;
  /** Boot and PID namespace. */
  readonly place: string;
}

/** `"<pid> <start> <time> <supervisor> <its start> <epoch> <place>\n"` */
export function parseLaunchRecord(text: string): LaunchRecord | undefined {
  const match = /^(\d{1,10}) (\d{1,18}) (\d{1,19}) (\d{1,10}) (\d{1,18}) (\d{1,10}) (\S{1,200})\n$/.exec(text);
  if (match === null) return undefined;
  const [pid, startTicks, , supervisor, itsStart, epoch] = match.slice(1, 7).map(Number) as [
    number,
    number,
    number,
    number,
    number,
    number,
  ];
  return {
    pid,
    startTicks,
    atNs: BigInt(match[3]!),
    supervisor: { pid: supervisor, startTicks: itsStart },
    epoch,
    place: match[7]!,
  };
}

/** Undefined where pids can't be told apart from those of another boot or namespace. */
export function placeOf(bootId: string | undefined, procDir = "/proc"): string | undefined {
  try {
    const namespace = Deno.readLinkSync(`${procDir}/self/ns/pid`).replaceAll(/\D/g, "");
    return bootId === undefined ? undefined : `${bootId}/${namespace}`;
  } catch {
    return undefined;
  }
}

export interface LaunchRecordsOptions {
  readonly stateDir: string;
  readonly place: string;
  /** Whether INITIALIZING is set in the shared segment. */
  readonly initializing: () => Promise<boolean>;
  readonly procDir?: string;
}

export class LaunchRecords {
  readonly #procDir: string;

  constructor(private readonly options: LaunchRecordsOptions) {
    this.#procDir = options.procDir ?? "/proc";
  }

  pathOf(epoch: number): string {
    return join(this.options.stateDir, `launched-${epoch % 3}`);
  }

  wordsOf(epoch: number): string {
    return `${epoch} ${this.options.place}`;
  }

  /** Of this boot and namespace, newest first; whether they still live is another question. */
  read(): readonly LaunchRecord[] {
    return SLOTS.map((slot) => this.readOne(slot)).filter((record) => record !== undefined)
      .sort((a, b) => a.atNs < b.atNs ? 1 : -1);
  }

  readOne(epoch: number): LaunchRecord | undefined {
    try {
      const record = parseLaunchRecord(Deno.readTextFileSync(this.pathOf(epoch)));
      return record?.place === this.options.place ? record : undefined;
    } catch {
      return undefined;
    }
  }

  /** `slots`: where a parent socket was seen, before this is asked: an Envoy sets its flag before it binds that. */
  async look(slots: readonly number[]): Promise<Launches> {
    const records = this.read();
    const living = records.filter((record) => isAlive(record, this.#procDir));
    const isOrphan = ({ supervisor }: LaunchRecord) => !isAlive(supervisor, this.#procDir);
    const isOwned = living.some((record) => !isOrphan(record)) ||
      slots.some((slot) => !living.some(({ epoch }) => epoch % 3 === slot));
    const orphans = isOwned ? [] : living.map(({ epoch, pid }) => ({ epoch, pid }));
    const [newest] = records;
    // Those before it were LIVE when it was started, or are dead.
    if (newest === undefined || newest !== living[0]) return { orphans };
    const isFinished = slots.includes(newest.epoch % 3) && !await this.options.initializing();
    if (isFinished) return { orphans };
    const { epoch, pid } = newest;
    return { unfinished: { epoch, pid, ageMs: this.#ageMs(newest), isOrphan: isOrphan(newest) }, orphans };
  }

  /** Signals an Envoy without a supervisor. `unlessLive`: only as long as it initialises. */
  async signal(pid: number, signal: ChildSignal, unlessLive: boolean, slots: readonly number[]): Promise<void> {
    const record = this.read().find((one) => one.pid === pid);
    if (record === undefined || isAlive(record.supervisor, this.#procDir)) return;
    if (unlessLive && (await this.look(slots)).unfinished?.pid !== pid) return;
    signalProcess(record, signal, this.#procDir);
  }

  #ageMs({ atNs }: LaunchRecord): number {
    try {
      const upMs = Number(Deno.readTextFileSync(`${this.#procDir}/uptime`).split(" ")[0]) * 1_000;
      return Math.max(0, upMs - Number(atNs / 1_000_000n));
    } catch {
      return 0;
    }
  }
}

/** It runs, and is the one that was meant. */
export function isAlive({ pid, startTicks }: ProcessName, procDir = "/proc"): boolean {
  try {
    const stat = parseProcStat(Deno.readTextFileSync(`${procDir}/${pid}/stat`));
    return stat?.startTicks === startTicks && !/[ZXx]/.test(stat.state);
  } catch {
    return false;
  }
}

/** False where it has ended; nobody else who has its pid by now is signalled. */
export function signalProcess(process: ProcessName, signal: ChildSignal, procDir = "/proc"): boolean {
  if (!isAlive(process, procDir)) return false;
  try {
    Deno.kill(process.pid, signal);
    return true;
  } catch {
    return false;
  }
}
