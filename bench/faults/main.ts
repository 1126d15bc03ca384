// Owns: `deno task faults`: every fault scenario on a real Envoy, and their matrix. Must not: know a fault;
// tests/integration/*/scenarios have those, and the tests assert on the same.
//
//     main.ts [TEXT]...   only the scenarios whose name holds one of the texts

import { globSync } from "node:fs";
import { join } from "node:path";
import { perform, type Row, type Scenario } from "../../tests/integration/faults/scenario.ts";
import { projectDir } from "../../tools/toolchain.ts";

const REPORT = "bench/faults/report.md";
/** A scenario mostly waits for drains. */
const SIDE_BY_SIDE = 3;

Deno.exit(await main(Deno.args));

async function main(texts: readonly string[]): Promise<number> {
  const scenarios = (await load()).filter(({ name }) =>
    texts.length === 0 || texts.some((text) => name.includes(text))
  );
  const startMs = performance.now();
  const rows: Row[] = [];
  const waiting = [...scenarios];
  const work = async () => {
    for (let next = waiting.shift(); next !== undefined; next = waiting.shift()) {
      const row = await perform(next);
      rows.push(row);
      print(textOf(row));
      if (row.error !== undefined) print(row.error);
    }
  };
  await Promise.all(Array.from({ length: SIDE_BY_SIDE }, work));
  rows.sort((a, b) =>
    scenarios.findIndex(({ name }) => name === a.name) - scenarios.findIndex(({ name }) => name === b.name)
  );
  const minutes = ((performance.now() - startMs) / 60_000).toFixed(1);
  const failed = rows.filter(({ error }) => error !== undefined).length;
  const requests = rows.reduce((sum, row) => sum + row.requests, 0);
  const summary = `${rows.length} cases, ${failed} failed, ${requests} requests, ${minutes} minutes`;
  // A part is no report.
  if (texts.length === 0) await Deno.writeTextFile(join(projectDir, REPORT), report(rows, summary));
  print(`\n${summary}`);
  return failed > 0 || rows.length === 0 ? 1 : 0;
}

async function load(): Promise<Scenario[]> {
  const files = globSync("tests/integration/*/scenarios/*.ts", { cwd: projectDir }).sort();
  const modules = await Promise.all(files.map((file) => import(`../../${file}`)));
  return modules.flatMap((module: { readonly scenarios?: readonly Scenario[] }) => module.scenarios ?? [])
    .sort((a, b) => a.line - b.line);
}

function textOf({ line, name, requests, failed, streamsBroken, outcome, durationMs }: Row): string {
  const seconds = (durationMs / 1000).toFixed(1).padStart(5);
  const broken = streamsBroken === 0 ? "" : `, ${streamsBroken} streams broken`;
  return `${seconds} s  ${
    String(line).padStart(2)
  }  ${name}\n             ${requests} requests, ${failed} failed${broken}: ${outcome}`;
}

function report(rows: readonly Row[], summary: string): string {
  const cell = (text: string) => text.replaceAll("|", "\\|");
  const lines = rows.map((row) =>
    `| ${row.line} | ${cell(row.name)} | ${row.requests} | ${row.failed} | ${row.streamsBroken} | ${
      cell(row.outcome)
    } |`
  );
  return [
    "# Faults",
    "",
    `Written by \`deno task faults\`: ${summary}. Where requests failed, the fault left nobody to serve them.`,
    "",
    "| line | case | requests | failed | streams broken | outcome |",
    "|---|---|---|---|---|---|",
    ...lines,
    "",
  ].join("\n");
}

function print(text: string): void {
  Deno.stdout.writeSync(new TextEncoder().encode(`${text}\n`));
}
