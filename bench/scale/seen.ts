// Owns: what the figures of the scale are read from: epochd's and Envoy's own words, and /proc. Must not: start or judge anything.
import type { Epochd } from "../../tests/support/epochd.ts";
import type { LogEvent } from "../../tests/support/log_lines.ts";
import { rssAnonBytes } from "../../tests/support/procfs.ts";
import { cpuMs } from "../observe.ts";

/** Milliseconds of one handoff, each from the end of the one before. */
export interface Phases {
  /** From the trigger until its handoff begins: the debounce is in it. */
  readonly turn: number;
  readonly preflight: number;
  /** What is asked of the serving epoch, and the fork. */
  readonly fork: number;
  /** Until Envoy's first word: exec, and what its libraries do. */
  readonly exec: number;
  /** Until Envoy's main loop runs. */
  readonly initialising: number;
  /** Until epochd knows that it is LIVE. */
  readonly live: number;
  /** Until the predecessor has begun to end, and until it is reaped. */
  readonly drain: number;
  readonly end: number;
}

export const PHASES = ["turn", "preflight", "fork", "exec", "initialising", "live", "drain", "end"] as const;

/** Undefined where a word of it is missing. */
export function phasesOf(epochd: Epochd, handoff: number, triggeredAtMs: number): Phases | undefined {
  const { events, envoyLines } = epochd.log;
  const began = events.find((event) => event.event === "handoff_began" && event.handoff === handoff);
  if (began === undefined) return undefined;
  const after = events.slice(events.indexOf(began));
  const at = (name: string, where: (event: LogEvent) => boolean = () => true) => {
    const found = after.find((event) => event.event === name && where(event));
    return found === undefined ? NaN : Date.parse(String(found.time));
  };
  const [from, to] = [Number(began.from), Number(began.to)];
  const envoy = envoyWords(envoyLines.filter((line) => line.includes(`[epoch ${to}]`)));
  const parent = envoyLines.findLast((line) =>
    line.includes(`[epoch ${from}]`) && line.includes("caught ENVOY_SIGTERM")
  );
  const times = [
    triggeredAtMs,
    Date.parse(String(began.time)),
    at("preflight_passed"),
    at("epoch_spawned", ({ epoch }) => epoch === to),
    envoy.firstAtMs,
    envoy.loopAtMs,
    at("epoch_live", ({ epoch }) => epoch === to),
    timeOf(parent ?? ""),
    at("epoch_exited", ({ epoch }) => epoch === from),
  ];
  if (times.some(Number.isNaN)) return undefined;
  return Object.fromEntries(
    PHASES.map((name, index) => [name, times[index + 1]! - times[index]!]),
  ) as unknown as Phases;
}

/** Unix ms of an Envoy's first line and of its main loop's start. */
export function envoyWords(lines: readonly string[]): { readonly firstAtMs: number; readonly loopAtMs: number } {
  return {
    firstAtMs: timeOf(lines.find((line) => line.includes("initializing epoch")) ?? ""),
    loopAtMs: timeOf(lines.find((line) => line.includes("starting main dispatch loop")) ?? ""),
  };
}

/** Envoy writes the machine's own time, without a zone. */
function timeOf(line: string): number {
  const match = /^\[(\d{4}-\d\d-\d\d) (\d\d:\d\d:\d\d\.\d{3})\]/.exec(line);
  return match === null ? NaN : new Date(`${match[1]}T${match[2]}`).getTime();
}

export interface Held {
  readonly rssAnonMb: number;
  /** Its share of what it shares with others counted in: /proc/PID/smaps_rollup. */
  readonly pssMb: number;
  readonly cpuMs: number;
}

/** Zeros of a process that is gone. */
export function heldBy(pid: number): Held {
  try {
    const pss = /^Pss:\s+(\d+) kB/m.exec(Deno.readTextFileSync(`/proc/${pid}/smaps_rollup`))?.[1] ?? 0;
    return { rssAnonMb: rssAnonBytes(pid) / 1e6, pssMb: Number(pss) * 1024 / 1e6, cpuMs: cpuMs(pid) };
  } catch {
    return { rssAnonMb: 0, pssMb: 0, cpuMs: 0 };
  }
}
