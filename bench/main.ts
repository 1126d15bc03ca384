// deno-lint-ignore-file no-console
// Owns: `make bench`: measures every figure of the README in one run and writes bench/report.md and bench/report.json.
// Must not: fail because a figure misses its bound; the report says so, and nothing else depends on it.
// On a machine that others use as well, `chrt --fifo 10 make bench` (root) keeps them out of the figures; the report tells.
import { compile } from "../tools/compile.ts";
import { environment, loadAverage } from "./environment.ts";
import { continuityFigures } from "./continuity.ts";
import { handoffFigures } from "./handoffs.ts";
import { loadFigures } from "./load.ts";
import { meterPart } from "./meter/part.ts";
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
  meter: meterPart,
};
const isTerminal = Deno.stderr.isTerminal();

/** Progress is for people who wait; the figures go to stdout. */
function tell(text: string): void {
  if (isTerminal) Deno.stderr.writeSync(new TextEncoder().encode(`\r\x1b[K${text}`));
  else console.error(text);
}

const wanted = Object.keys(PARTS).filter((part) => Deno.args.length === 0 || Deno.args.includes(part));
const unknown = Deno.args.filter((argument) => !(argument in PARTS));
if (unknown.length > 0) {
  console.error(`unknown part ${unknown.join(", ")}, expected: ${Object.keys(PARTS).join(", ")}`);
  Deno.exit(2);
}

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
