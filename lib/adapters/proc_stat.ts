// Owns: what /proc says about a process. Must not: signal it.

export interface ProcState {
  readonly pid: number;
  readonly name: string;
  /** R running, S sleeping, D in the kernel, T stopped, t traced, Z zombie, X dead. */
  readonly state: string;
  readonly parentPid: number;
  /** Clock ticks since boot: with the pid it names a process for ever. */
  readonly startTicks: number;
}

/** /proc/PID/stat; the name stands in parentheses and may hold blanks and parentheses itself. */
export function parseProcStat(text: string): ProcState | undefined {
  const [open, close] = [text.indexOf("("), text.lastIndexOf(")")];
  if (open < 0 || close < open) return undefined;
  const rest = text.slice(close + 1).trim().split(/\s+/);
  const [state, parentPid] = rest;
  const [pid, ticks] = [Number(text.slice(0, open)), Number(rest[19])];
  if (state === undefined || !Number.isInteger(pid) || !Number.isInteger(ticks)) return undefined;
  return { pid, name: text.slice(open + 1, close), state, parentPid: Number(parentPid), startTicks: ticks };
}

export async function readProcStat(pid: number, procDir = "/proc"): Promise<ProcState | undefined> {
  try {
    return parseProcStat(await Deno.readTextFile(`${procDir}/${pid}/stat`));
  } catch {
    return undefined;
  }
}

/** USER_HZ: what the kernel shows ticks in, on every architecture that Envoy is built for. */
const ticksPerSecond = 100;

/** How long ago it started; undefined where /proc does not say. */
export async function ageMs({ startTicks }: ProcState, procDir = "/proc"): Promise<number | undefined> {
  try {
    const upSeconds = Number((await Deno.readTextFile(`${procDir}/uptime`)).split(" ")[0]);
    const age = (upSeconds - startTicks / ticksPerSecond) * 1_000;
    return Number.isFinite(age) ? age : undefined;
  } catch {
    return undefined;
  }
}

/** Why such a process can't be serving, or undefined. */
export function deadState(state: string): string | undefined {
  const states: Readonly<Record<string, string>> = { T: "stopped", t: "traced", Z: "a zombie", X: "dead", x: "dead" };
  return states[state];
}
