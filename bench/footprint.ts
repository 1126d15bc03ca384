/**
 * What the compiled supervisor costs while it supervises a real Envoy: on disk, until Envoy's exec, and when idle.
 *
 *     deno run --allow-all bench/footprint.ts [--starts N] [--idle SECONDS] [--json] [EXECUTABLE]...
 */
// Owns: the figures of the supervisor's footprint. Must not: judge them, or measure a handoff (bench/main.ts does).
import { parseArgs } from "node:util";
import { join, resolve } from "node:path";
import { writeBootstrap } from "../tests/support/bootstrap.ts";
import { type Epochd, startEpochd } from "../tests/support/epochd.ts";
import { freePorts } from "../tests/support/ports.ts";
import { cpuTimeMs, isAlive, rssAnonBytes, threadCount } from "../tests/support/procfs.ts";
import { tempDir } from "../tests/support/tempdir.ts";
import { pause, until } from "../tests/support/until.ts";
import { compile, distDir } from "../tools/compile.ts";
import { envoyPath } from "../tools/toolchain.ts";

export interface FootprintFigure {
  readonly executable: string;
  readonly bytes: number;
  /** From the start of epochd until its child runs Envoy; medians. */
  readonly execMs: number;
  /** Of the fastest start: what is left on a busy machine of what the start itself costs. */
  readonly execLeastMs: number;
  readonly startCpuMs: number;
  readonly starts: number;
  /** After the idle time, of the last start; the greatest that was seen in it. */
  readonly rssAnonBytes: number;
  readonly rssAnonMostBytes: number;
  readonly rssBytes: number;
  readonly threads: number;
  /** Of one CPU, while idle. */
  readonly idleCpuPercent: number;
}

export interface FootprintOptions {
  readonly starts?: number;
  readonly idleMs?: number;
}

/** Starts of all executables in turn, so that what else the machine does falls on all alike. */
export async function measureFootprint(
  executables: readonly string[] = [join(distDir, "epochd")],
  { starts = 10, idleMs = 20_000 }: FootprintOptions = {},
): Promise<FootprintFigure[]> {
  await compile();
  const taken = executables.map((): Start[] => []);
  for (let round = 0; round < starts; round++) {
    for (const [at, executable] of executables.entries()) {
      taken[at]!.push(await start(executable, round === starts - 1 ? idleMs : 0));
    }
  }
  return executables.map((executable, at): FootprintFigure => {
    const all = taken[at]!;
    return {
      executable,
      bytes: Deno.statSync(executable).size,
      execMs: median(all.map(({ execMs }) => execMs)),
      execLeastMs: Math.min(...all.map(({ execMs }) => execMs)),
      startCpuMs: median(all.map(({ cpuMs }) => cpuMs)),
      starts,
      ...all.at(-1)!.idle,
    };
  });
}

export function formatFootprint(figures: readonly FootprintFigure[]): string {
  const megabytes = (bytes: number) => `${(bytes / 1e6).toFixed(1)} MB`;
  const rows = figures.map((figure) => [
    figure.executable,
    megabytes(figure.bytes),
    `${figure.execMs.toFixed(0)} ms`,
    `${figure.execLeastMs.toFixed(0)} ms`,
    `${figure.startCpuMs.toFixed(0)} ms`,
    megabytes(figure.rssAnonBytes),
    megabytes(figure.rssAnonMostBytes),
    megabytes(figure.rssBytes),
    String(figure.threads),
    `${figure.idleCpuPercent.toFixed(2)} %`,
  ]);
  const head = [
    "executable",
    "size",
    "start to Envoy's exec",
    "least",
    "CPU until LIVE",
    "RssAnon idle",
    "most",
    "RSS idle",
  ];
  const all = [...head, "threads", "CPU idle"];
  return [all, all.map((_, at) => at === 0 ? "---" : "--:"), ...rows].map((row) => `| ${row.join(" | ")} |\n`).join("");
}

type Idle = Pick<FootprintFigure, "rssAnonBytes" | "rssAnonMostBytes" | "rssBytes" | "threads" | "idleCpuPercent">;

interface Start {
  readonly execMs: number;
  readonly cpuMs: number;
  readonly idle: Idle;
}

async function start(executable: string, idleMs: number): Promise<Start> {
  await using directory = tempDir();
  const [listenPort, adminPort] = freePorts(2) as [number, number];
  const bootstrapPath = writeBootstrap(directory.at("envoy.yaml"), { listenPort, adminPort });
  const startedMs = performance.now();
  await using epochd = startEpochd({
    envoyPath: envoyPath(),
    bootstrapPath,
    directory,
    program: [executable],
  });
  await until("Envoy runs", () => runsEnvoy(epochd.pid), { everyMs: 1 });
  const execMs = performance.now() - startedMs;
  await epochd.waitForEvent("epoch_live");
  const cpuMs = cpuTimeMs(epochd.pid);
  const idle = await watchIdle(epochd, idleMs);
  epochd.signal("SIGINT");
  epochd.signal("SIGINT");
  return { execMs, cpuMs, idle };
}

async function watchIdle({ pid }: Epochd, idleMs: number): Promise<Idle> {
  const startMs = performance.now();
  const startCpuMs = cpuTimeMs(pid);
  const seen = [rssAnonBytes(pid)];
  // Nothing to wait for: what it uses while nothing happens is the question.
  while (performance.now() - startMs < idleMs) {
    await pause(500);
    if (!isAlive(pid)) throw new Error(`epochd ${pid} ended while it was watched`);
    seen.push(rssAnonBytes(pid));
  }
  return {
    rssAnonBytes: seen.at(-1)!,
    rssAnonMostBytes: Math.max(...seen),
    rssBytes: 4096 * Number(Deno.readTextFileSync(`/proc/${pid}/statm`).split(" ")[1]),
    threads: threadCount(pid),
    idleCpuPercent: 100 * (cpuTimeMs(pid) - startCpuMs) / Math.max(1, performance.now() - startMs),
  };
}

/** Before its exec, the child still runs the executable of its parent. */
function runsEnvoy(pid: number): boolean {
  const children = Deno.readTextFileSync(`/proc/${pid}/task/${pid}/children`).trim().split(" ");
  return children.some((child) => child !== "" && Deno.readLinkSync(`/proc/${child}/exe`) === envoyPath());
}

function median(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b);
  const middle = sorted.length >> 1;
  return sorted.length % 2 === 1 ? sorted[middle]! : (sorted[middle - 1]! + sorted[middle]!) / 2;
}

if (import.meta.main) {
  const { values, positionals } = parseArgs({
    args: Deno.args,
    allowPositionals: true,
    options: { starts: { type: "string" }, idle: { type: "string" }, json: { type: "boolean" } },
  });
  const figures = await measureFootprint(
    positionals.length === 0 ? undefined : positionals.map((path) => resolve(path)),
    {
      ...(values.starts === undefined ? {} : { starts: Number(values.starts) }),
      ...(values.idle === undefined ? {} : { idleMs: 1000 * Number(values.idle) }),
    },
  );
  const text = values.json ? `${JSON.stringify(figures, null, 2)}\n` : formatFootprint(figures);
  Deno.stdout.writeSync(new TextEncoder().encode(text));
}
