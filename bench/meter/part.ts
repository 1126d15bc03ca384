// Owns: the drop meter as a part of `make bench`: its figures, and its tables and plots as a section. Must not: measure by itself.
import { atMost, type Figure, type Part } from "../report.ts";
import { meterMarkdown } from "./markdown.ts";
import type { MeterReport, Scenario } from "./meter_report.ts";
import { writeMeterReport } from "./main.ts";
import { meterFigures } from "./run.ts";

const NAMES: Readonly<Record<Scenario, string>> = {
  restart: "in-place restarts",
  upgrade: "binary upgrades, there and back",
  roll: "rolls across pods",
  stop: "a stop with drain",
};

export async function meterPart(tell: (text: string) => void, peer?: string): Promise<Part> {
  const interrupted = new AbortController();
  const end = () => interrupted.abort(new Error("interrupted"));
  // Else Ctrl-C would end the bench and leave a peer behind.
  for (const signal of ["SIGINT", "SIGTERM"] as const) Deno.addSignalListener(signal, end);
  const report = await meterFigures(peer === undefined ? {} : { peer }, tell, interrupted.signal)
    .finally(() => (["SIGINT", "SIGTERM"] as const).forEach((signal) => Deno.removeSignalListener(signal, end)));
  // Beside its own report, which has the numbers of the plots too.
  await writeMeterReport(import.meta.dirname!, report);
  return { figures: figuresOf(report), section: meterMarkdown(report, { level: 2, plots: "meter/" }) };
}

export function figuresOf({ scenarios }: MeterReport): Figure[] {
  // A peer has tables beside these, but no bound to keep.
  return scenarios.filter(({ key }) => key === "epochd").map(({ scenario, rows, drops, marks, load, problem }) => {
    const changes = marks.filter(({ kind }) => kind !== "failed").length;
    const sent = rows.reduce((sum, row) => sum + row.sent, 0);
    return atMost({
      name: `dropped in ${scenario === "stop" ? "" : `${changes} `}${NAMES[scenario]}, compiled`,
      how: `of ${sent} requests, messages and streams of ${rows.length - 1} kinds of held clients and a load of ` +
        `${load.perSecond} requests/s; tables below`,
      unit: "drops",
      // A scenario that ended early has not shown what it was to show.
      value: problem === undefined ? drops : Infinity,
      bound: "0",
      ...(problem !== undefined && { notes: [`ended early: ${problem.split("\n")[0]}`] }),
    }, 0);
  });
}
