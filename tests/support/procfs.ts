// Owns: reading what /proc says about processes. Must not signal or change any of them.

export interface ProcessFacts {
  readonly pid: number;
  readonly parentPid: number;
  /** R, S, D, Z (zombie), T (stopped), ... */
  readonly state: string;
  readonly name: string;
}

/** Undefined when there is no such process. */
export function processFacts(pid: number): ProcessFacts | undefined {
  const stat = readProc(pid, "stat");
  if (stat === undefined) return undefined;
  const fields = statFields(stat);
  return {
    pid,
    state: fields[0] ?? "?",
    parentPid: Number(fields[1]),
    name: stat.slice(stat.indexOf("(") + 1, stat.lastIndexOf(")")),
  };
}

/** A zombie is not alive: it has ended and waits for its parent. */
export function isAlive(pid: number): boolean {
  const facts = processFacts(pid);
  return facts !== undefined && facts.state !== "Z" && facts.state !== "X";
}

export function childrenOf(pid: number): ProcessFacts[] {
  return allProcesses().filter((facts) => facts.parentPid === pid);
}

export function zombiesOf(pid: number): ProcessFacts[] {
  return childrenOf(pid).filter((facts) => facts.state === "Z");
}

/** Living processes whose argv holds `flag` followed by `value` (`--base-id`, `7`): how one finds the Envoys of a test. */
export function processesWithArgument(flag: string, value: string): number[] {
  return allPids().filter((pid) => {
    const argv = argvOf(pid);
    const at = argv.indexOf(flag);
    return at >= 0 && argv[at + 1] === value && isAlive(pid);
  });
}

export function argvOf(pid: number): string[] {
  const text = readProc(pid, "cmdline") ?? "";
  return text === "" ? [] : text.replace(/\0$/, "").split("\0");
}

export function environmentOf(pid: number): Record<string, string> {
  const environment: Record<string, string> = {};
  for (const item of (readProc(pid, "environ") ?? "").split("\0")) {
    const at = item.indexOf("=");
    if (at > 0) environment[item.slice(0, at)] = item.slice(at + 1);
  }
  return environment;
}

export function rssAnonBytes(pid: number): number {
  return 1024 * Number(/^RssAnon:\s+(\d+) kB/m.exec(readProc(pid, "status") ?? "")?.[1] ?? 0);
}

/** User and system time of all threads. The kernel counts in ticks of 10 ms. */
export function cpuTimeMs(pid: number): number {
  const stat = readProc(pid, "stat");
  if (stat === undefined) return 0;
  const fields = statFields(stat);
  return 10 * (Number(fields[11]) + Number(fields[12]));
}

export function openFileCount(pid: number): number {
  try {
    return [...Deno.readDirSync(`/proc/${pid}/fd`)].length;
  } catch {
    return 0;
  }
}

export function threadCount(pid: number): number {
  return Number(/^Threads:\s+(\d+)/m.exec(readProc(pid, "status") ?? "")?.[1] ?? 0);
}

function allPids(): number[] {
  const pids: number[] = [];
  for (const entry of Deno.readDirSync("/proc")) if (/^\d+$/.test(entry.name)) pids.push(Number(entry.name));
  return pids;
}

function allProcesses(): ProcessFacts[] {
  return allPids().map(processFacts).filter((facts) => facts !== undefined);
}

/** The fields after the name, which may itself hold spaces and brackets; [0] is the state. */
function statFields(stat: string): string[] {
  return stat.slice(stat.lastIndexOf(")") + 2).trim().split(" ");
}

function readProc(pid: number, file: string): string | undefined {
  try {
    return Deno.readTextFileSync(`/proc/${pid}/${file}`);
  } catch {
    return undefined;
  }
}
