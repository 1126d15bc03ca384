/**
 * What one run of the probe costs, beside /bin/true in the same minute: both forms, ready and not ready.
 *
 *     deno run --allow-all bench/probe.ts [--rounds N] [--json]
 */
// Owns: the figures of the probe. Must not: judge them (tests do), or measure anything that supervises.
import { join } from "node:path";
import { compile, distDir } from "../tools/compile.ts";
import { compileC, zig } from "../tools/native_probe.ts";

export interface ProbeFigure {
  readonly name: string;
  readonly runs: number;
  readonly bytes: number;
  /** Medians over all runs. */
  readonly wallUs: number;
  readonly cpuUs: number;
  readonly rssBytes: number;
  /** Medians over the rounds of this figure by that of /bin/true in the same round. */
  readonly wallByTrue: number;
  readonly cpuByTrue: number;
}

interface Run {
  readonly wallUs: number;
  readonly cpuUs: number;
  readonly rssBytes: number;
}

const runsARound = 25;

/** Round by round, all in turn: what else the machine does falls on all alike. */
export async function measureProbe(rounds = 40): Promise<ProbeFigure[]> {
  await compile();
  const dir = await Deno.makeTempDir({ prefix: "epochd-bench-" });
  try {
    const spawner = join(dir, "spawn");
    await compileC(zig, ["cc", "-target", "x86_64-linux-musl", "-O2", "-static", "-s"], sourceOfSpawner, spawner);
    const marker = join(dir, "ready");
    await Deno.writeTextFile(marker, "");
    const ready = ["--ready-marker", marker, "--max-age", "1h"];
    const notReady = ["--ready-marker", join(dir, "none")];
    const native = join(distDir, "epochd-probe");
    const portable = join(distDir, "epochd-probe-portable");
    const subjects: readonly Subject[] = [
      { name: "/bin/true", command: ["/bin/true"], exitCode: 0 },
      { name: "epochd-probe, ready", command: [native, ...ready], exitCode: 0 },
      { name: "epochd-probe, not ready", command: [native, ...notReady], exitCode: 1 },
      { name: "epochd-probe-portable, ready", command: [portable, ...ready], exitCode: 0 },
      { name: "epochd-probe-portable, not ready", command: [portable, ...notReady], exitCode: 1 },
    ];
    for (const subject of subjects) await spawnRuns(spawner, subject, 3);
    const taken = subjects.map((): Run[][] => []);
    for (let round = 0; round < rounds; round++) {
      for (const [at, subject] of subjects.entries()) {
        // A tenth of the runs is enough for what takes twenty times as long.
        const runs = subject.command[0] === portable ? Math.ceil(runsARound / 10) : runsARound;
        taken[at]!.push(await spawnRuns(spawner, subject, runs));
      }
    }
    return await Promise.all(subjects.map((subject, at) => figureOf(subject, taken[at]!, taken[0]!)));
  } finally {
    await Deno.remove(dir, { recursive: true });
  }
}

export function formatProbe(figures: readonly ProbeFigure[]): string {
  const rows = figures.map((figure) => [
    figure.name,
    figure.bytes < 1_000_000 ? `${(figure.bytes / 1000).toFixed(1)} kB` : `${(figure.bytes / 1e6).toFixed(1)} MB`,
    `${figure.wallUs.toFixed(0)} us`,
    `${figure.wallByTrue.toFixed(2)}x`,
    `${figure.cpuUs.toFixed(0)} us`,
    `${figure.cpuByTrue.toFixed(2)}x`,
    // Of a process this small the kernel's counter shows nothing; its smaps say 52 kB.
    figure.rssBytes === 0 ? "< 0.1 MB" : `${(figure.rssBytes / 1e6).toFixed(1)} MB`,
    String(figure.runs),
  ]);
  const head = ["command", "size", "wall", "by true", "CPU", "by true", "RSS", "runs"];
  return [head, head.map((_, at) => at === 0 ? "---" : "--:"), ...rows].map((row) => `| ${row.join(" | ")} |\n`).join(
    "",
  );
}

const sourceOfSpawner = join(import.meta.dirname!, "spawn.c");

interface Subject {
  readonly name: string;
  readonly command: readonly [string, ...string[]];
  readonly exitCode: number;
}

async function spawnRuns(spawner: string, { name, command, exitCode }: Subject, runs: number): Promise<Run[]> {
  const { success, stdout } = await new Deno.Command(spawner, { args: [String(runs), ...command], stdin: "null" })
    .output();
  const lines = new TextDecoder().decode(stdout).trimEnd().split("\n").map((line) => line.split(" ").map(Number));
  const odd = lines.find((line) => line[3] !== exitCode);
  if (!success || lines.length !== runs || odd) throw new Error(`${name} ended with ${odd?.[3]}, expected ${exitCode}`);
  return lines.map(([wallNs, cpuUs, rssKib]) => ({ wallUs: wallNs! / 1000, cpuUs: cpuUs!, rssBytes: rssKib! * 1024 }));
}

async function figureOf(subject: Subject, rounds: readonly Run[][], base: readonly Run[][]): Promise<ProbeFigure> {
  const all = rounds.flat();
  const by = (key: "wallUs" | "cpuUs") =>
    median(rounds.map((runs, at) => median(runs.map((run) => run[key])) / median(base[at]!.map((run) => run[key]))));
  return {
    name: subject.name,
    runs: all.length,
    bytes: (await Deno.stat(subject.command[0])).size,
    wallUs: median(all.map((run) => run.wallUs)),
    cpuUs: median(all.map((run) => run.cpuUs)),
    rssBytes: median(all.map((run) => run.rssBytes)),
    wallByTrue: by("wallUs"),
    cpuByTrue: by("cpuUs"),
  };
}

function median(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b);
  const middle = sorted.length >> 1;
  return sorted.length % 2 === 1 ? sorted[middle]! : (sorted[middle - 1]! + sorted[middle]!) / 2;
}

if (import.meta.main) {
  const roundsAt = Deno.args.indexOf("--rounds");
  const figures = await measureProbe(roundsAt < 0 ? undefined : Number(Deno.args[roundsAt + 1]));
  const text = Deno.args.includes("--json") ? `${JSON.stringify(figures, null, 2)}\n` : formatProbe(figures);
  Deno.stdout.writeSync(new TextEncoder().encode(text));
}
