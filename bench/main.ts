// deno-lint-ignore-file no-console
// Owns: `make bench`: measures every figure of the README in one run and writes bench/report.md and bench/report.json.
// Must not: fail because a figure misses its bound; the report says so, and nothing else depends on it.
// On a machine that others use as well, `chrt --fifo 10 make bench` (root) keeps them out of the figures; the report tells.
import { parseArgs } from "node:util";
import { compile } from "../tools/compile.ts";
import { environment, loadAverage } from "./environment.ts";
import { continuityFigures } from "./continuity.ts";
import { handoffFigures } from "./handoffs.ts";
import { loadFigures } from "./load.ts";
import { meterPart } from "./meter/part.ts";
import { peerProblem } from "./meter/peer_command.ts";
import { podFigures } from "./pods.ts";
import { type Figure, toMarkdown, writeReport } from "./report.ts";
import { scaleFigures } from "./scale.ts";
import { supervisorFigures } from "./supervisor.ts";

const PARTS = {
  handoffs: handoffFigures,
  supervisor: supervisorFigures,
  pods: podFigures,
  load: loadFigures,
  continuity: continuityFigures,
  scale: scaleFigures,
  meter: (tell: (text: string) => void) => meterPart(tell, peer),
};
const isTerminal = Deno.stderr.isTerminal();

/** Progress is for people who wait; the figures go to stdout. */
function tell(text: string): void {
  if (isTerminal) Deno.stderr.writeSync(new TextEncoder().encode(`\r\x1b[K${text}`));
  else console.error(text);
}

const { positionals, values: { peer }, problem } = commandLine();
if (problem !== undefined) {
  console.error(problem);
  Deno.exit(2);
}
const wanted = Object.keys(PARTS).filter((part) => positionals.length === 0 || positionals.includes(part));

await compile();
const loadBefore = loadAverage();
const figures: Figure[] = [];
const sections: string[] = [];
for (const part of wanted) {
  const found = await PARTS[part as keyof typeof PARTS](tell);
  figures.push(..."figures" in found ? found.figures : found);
  if ("section" in found) sections.push(found.section);
}
if (isTerminal) tell("");
const report = { environment: await environment(loadBefore), figures, sections };
console.log(toMarkdown(report));
// A part alone is for looking into something; the report is of one run.
if (wanted.length === Object.keys(PARTS).length) await writeReport(import.meta.dirname!, report);

/** Names of parts, and the other supervisor that the drop meter is to measure beside this one. */
function commandLine() {
  try {
    const asked = parseArgs({ args: Deno.args, options: { peer: { type: "string" } }, allowPositionals: true });
    const unknown = asked.positionals.filter((part) => !(part in PARTS));
    const strange = asked.values.peer === undefined ? undefined : peerProblem(asked.values.peer);
    const problem = unknown.length > 0
      ? `unknown part ${unknown.join(", ")}, expected: ${Object.keys(PARTS).join(", ")}`
      : strange && `--peer '${asked.values.peer}': ${strange}`;
    return { ...asked, problem };
  } catch (error) {
    return { positionals: [] as string[], values: { peer: undefined }, problem: (error as Error).message };
  }
}
