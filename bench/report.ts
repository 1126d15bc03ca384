// Owns: the figures as they are written down: report.md for people, report.json for programs. Must not: measure, or be kind.
import { round, type Spread } from "./sample.ts";

export interface Figure {
  readonly name: string;
  /** What was measured, and how. */
  readonly how: string;
  readonly unit: string;
  readonly value: number;
  /** In the words of the issue. */
  readonly bound: string;
  readonly limit: number;
  readonly passed: boolean;
  readonly samples?: Spread;
  /** Where the time goes, or what else one should know. */
  readonly notes?: readonly string[];
  /** What one figure can't say; the first row is the head. */
  readonly table?: readonly (readonly (string | number)[])[];
}

export interface Environment {
  readonly date: string;
  readonly cores: number;
  readonly cpu: string;
  readonly kernel: string;
  readonly memoryMb: number;
  /** Of the bench and of all that it starts: `normal`, or `real-time` under `chrt --fifo 10`, where neighbours don't count. */
  readonly scheduling: string;
  /** Of one minute, at the begin and at the end. */
  readonly load: readonly [number, number];
  readonly epochd: string;
  readonly compiled: string;
  readonly envoy: string;
}

export interface Report {
  readonly environment: Environment;
  readonly figures: readonly Figure[];
  /** Tables and plots that are no figures with a bound; Markdown, from the second level of headings on. */
  readonly sections: readonly string[];
}

/** What a part of the bench may give beside its figures. */
export interface Part {
  readonly figures: readonly Figure[];
  readonly section: string;
}

export function atMost(figure: Omit<Figure, "passed" | "limit">, limit: number): Figure {
  return { ...figure, limit, passed: figure.value <= limit };
}

export function toMarkdown({ environment, figures, sections }: Report): string {
  const { date, cores, cpu, kernel, memoryMb, load, scheduling, epochd, compiled, envoy } = environment;
  const failed = figures.filter(({ passed }) => !passed).length;
  const rows = figures.map(({ name, value, unit, bound, passed, samples }) => {
    const range = samples === undefined ? "" : `${round(samples.min)} - ${round(samples.max)} (${samples.count})`;
    return `| ${name} | ${round(value, 2)} ${unit} | ${range} | ${bound} | ${passed ? "yes" : "**no**"} |`;
  });
  const details = figures.map((
    { name, how, notes = [] },
  ) => [`- **${name}**: ${how}`, ...notes.map((note) => `  - ${note}`)]);
  const tables = figures.map(({ name, table }) => table === undefined ? [] : ["", `### ${name}`, "", ...rowsOf(table)]);
  return [
    "# Figures",
    "",
    failed === 0 ? "Every figure is within its bound." : `${failed} of ${figures.length} figures miss their bound.`,
    "",
    `${date}; ${cores} cores (${cpu}), ${memoryMb} MB, Linux ${kernel}, load ${
      load.join(" to ")
    }, ${scheduling} scheduling; ` +
    `${epochd}; compiled: ${compiled}; Envoy ${envoy}. Medians; written by \`make bench\`.`,
    "",
    "| figure | median | range (samples) | bound | within |",
    "|---|---|---|---|---|",
    ...rows,
    "",
    "## How",
    "",
    ...details.flat(),
    ...tables.flat(),
    "",
    ...sections,
  ].join("\n");
}

function rowsOf([head = [], ...rows]: NonNullable<Figure["table"]>): string[] {
  const line = (cells: readonly (string | number)[]) => `| ${cells.join(" | ")} |`;
  return [line(head), line(head.map((_, at) => at === 0 ? "---" : "--:")), ...rows.map(line)];
}

export async function writeReport(directory: string, report: Report): Promise<void> {
  await Deno.writeTextFile(`${directory}/report.md`, toMarkdown(report));
  await Deno.writeTextFile(
    `${directory}/report.json`,
    JSON.stringify({ ...report, sections: undefined }, null, 2) + "\n",
  );
}
