// deno-lint-ignore-file no-console
/**
 * The drop meter: holds clients of every protocol across hot restarts and counts what is dropped.
 *
 *     deno run -A bench/meter/main.ts [SCENARIO]... [--envoy 1.40.0] [--peer 'COMMAND'] [--handoffs 20] [--json FILE] ...
 */
// Owns: the command `epochd-bench`: its arguments, its files, and its end by Ctrl-C. Must not: fail because something was dropped; the
// report says so.
import { dirname } from "node:path";
import { meterMarkdown, plotName, plotOf } from "./markdown.ts";
import type { MeterReport } from "./meter_report.ts";
import { type CommandLine, parseCommandLine, SCENARIOS, USAGE } from "./options.ts";
import { meterFigures } from "./run.ts";

/** Into a folder that is there; what another run has left in it is replaced. */
export async function writeMeterReport(directory: string, report: MeterReport): Promise<void> {
  for (const { name } of Deno.readDirSync(directory)) {
    if (/^report-.*\.svg$/.test(name)) await Deno.remove(`${directory}/${name}`);
  }
  await Deno.writeTextFile(`${directory}/report.md`, meterMarkdown(report));
  await Deno.writeTextFile(`${directory}/report.json`, jsonOf(report));
  for (const scenario of report.scenarios) {
    await Deno.writeTextFile(`${directory}/${plotName(scenario)}`, plotOf(scenario));
  }
}

function jsonOf(report: MeterReport): string {
  // A window of the timeline a line: there are hundreds.
  const text = JSON.stringify(report, null, 2);
  return text.replaceAll(/\{\s+"fromMs"[^}]*\}/g, (window) => window.replaceAll(/\s+/g, " ")) + "\n";
}

/** Before the minutes of measuring, not after them. */
async function problemOf({ out, json }: CommandLine): Promise<string | undefined> {
  try {
    if (out !== undefined) await Deno.mkdir(out, { recursive: true });
  } catch (error) {
    return `--out ${out}: expected a directory, or a place for one: ${(error as Error).message}`;
  }
  try {
    const isDirectory = json !== undefined && (await Deno.lstat(json).catch(() => undefined))?.isDirectory;
    if (json !== undefined && (isDirectory || !(await Deno.stat(dirname(json))).isDirectory)) {
      throw new Error("it is none");
    }
  } catch (error) {
    return `--json ${json}: expected a file in a directory that is there: ${(error as Error).message}`;
  }
}

async function main(): Promise<number> {
  const asked = parseCommandLine(Deno.args);
  if (asked === "help") {
    console.log(USAGE.trimEnd());
    return 0;
  }
  if ("error" in asked) {
    console.error(`epochd-bench: ${asked.error}`);
    return 2;
  }
  const problem = await problemOf(asked);
  if (problem !== undefined) {
    console.error(`epochd-bench: ${problem}`);
    return 2;
  }
  const { json } = asked;
  // A scenario alone is for looking into something; the report that is kept is of all.
  const out = asked.out ?? (asked.scenarios.length === SCENARIOS.length ? import.meta.dirname : undefined);
  const interrupted = new AbortController();
  for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) {
    Deno.addSignalListener(signal, () => interrupted.abort(signal));
  }
  const isTerminal = Deno.stderr.isTerminal();
  const tell = (text: string) =>
    isTerminal ? void Deno.stderr.writeSync(new TextEncoder().encode(`\r\x1b[K${text}`)) : console.error(text);
  try {
    const report = await meterFigures(asked, tell, interrupted.signal);
    if (isTerminal) tell("");
    console.log(meterMarkdown(report));
    if (out !== undefined) await writeMeterReport(out, report);
    if (json !== undefined) await Deno.writeTextFile(json, jsonOf(report));
    return 0;
  } catch (error) {
    if (isTerminal) tell("");
    if (interrupted.signal.aborted) {
      console.error(
        `epochd-bench: ended by ${interrupted.signal.reason}; all that it had started is ended, nothing is written`,
      );
      return 130;
    }
    console.error(`epochd-bench: ${error instanceof Error ? error.message : String(error)}`);
    return 1;
  }
}

if (import.meta.main) Deno.exit(await main());
