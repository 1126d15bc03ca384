// deno-lint-ignore-file no-console
/**
 * The drop meter: holds clients of every protocol across hot restarts and counts what is dropped.
 *
 *     deno run -A bench/meter/main.ts [SCENARIO]... [--envoy 1.40.0] [--peer 'COMMAND'] [--handoffs 20] [--json FILE] ...
 */
// Owns: the command `epochd-bench`: its arguments, its files, and its end by Ctrl-C. Must not: fail because something was dropped; the
// report says so.
import { meterMarkdown, plotName, plotOf } from "./markdown.ts";
import type { MeterReport } from "./meter_report.ts";
import { parseCommandLine, USAGE } from "./options.ts";
import { meterFigures } from "./run.ts";

/** Returns report.md's text. */
export async function writeMeterReport(directory: string, report: MeterReport, json?: string): Promise<string> {
  const markdown = meterMarkdown(report);
  await Deno.mkdir(directory, { recursive: true });
  await Deno.writeTextFile(`${directory}/report.md`, markdown);
  await Deno.writeTextFile(json ?? `${directory}/report.json`, JSON.stringify(report, null, 2) + "\n");
  await writePlots(directory, report);
  return markdown;
}

export async function writePlots(directory: string, report: MeterReport): Promise<void> {
  for (const scenario of report.scenarios) {
    await Deno.writeTextFile(`${directory}/${plotName(scenario)}`, plotOf(scenario));
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
  const { out = import.meta.dirname!, json } = asked;
  const interrupted = new AbortController();
  for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) {
    Deno.addSignalListener(signal, () => interrupted.abort(signal));
  }
  const isTerminal = Deno.stderr.isTerminal();
  const tell = (text: string) =>
    isTerminal ? void Deno.stderr.writeSync(new TextEncoder().encode(`\r\x1b[K${text}`)) : console.error(text);
  try {
    // Before the minutes of measuring, not after them.
    await Deno.mkdir(out, { recursive: true });
    const report = await meterFigures(asked, tell, interrupted.signal);
    if (isTerminal) tell("");
    console.log(await writeMeterReport(out, report, json));
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
