// Owns: the soak as it is written down: soak.json for programs, soak.md for people, soak.svg to look at. Must not: measure.
import { join } from "node:path";
import type { Machine } from "../environment.ts";
import { round } from "../sample.ts";
import type { LoadReport } from "./load.ts";
import type { SoakOptions } from "./options.ts";
import { plot } from "./plot.ts";
import { type HandoffRecord, type Sample, tallyByTrigger, thin, type Trend, trend } from "./tally.ts";

export interface Soak {
  readonly options: Omit<SoakOptions, "output">;
  readonly environment: Machine & { readonly load: readonly [number, number]; readonly compiled: string };
  readonly envoyVersions: readonly string[];
  /** Why it is not the whole; undefined: it is. */
  readonly partial?: string;
  readonly durationMs: number;
  readonly load: LoadReport;
  readonly handoffs: readonly HandoffRecord[];
  readonly samples: readonly Sample[];
  /** epochd's own lines at warn and error, by event. */
  readonly warnings: Readonly<Record<string, number>>;
  /** Of epochd after SIGTERM; undefined: not stopped yet. */
  readonly exit?: { readonly code: number; readonly signal: string | null; readonly envoysLeft: number };
}

/** So much of a run of an hour as a plot can show. */
const KEPT_SAMPLES = 400;

/** What makes the soak fail; empty: nothing. */
export function faults({ load, handoffs, exit, partial }: Soak): string[] {
  const bad = handoffs.filter(({ outcome }) => outcome !== "done").length;
  return [
    ...(load.requestsFailed > 0 ? [`${load.requestsFailed} requests failed`] : []),
    ...(load.streamsBroken > 0 ? [`${load.streamsBroken} streams broke`] : []),
    ...(bad > 0 ? [`${bad} handoffs failed or were lost`] : []),
    ...(partial === undefined && exit?.code !== 0 ? [`epochd ended with ${exit?.signal ?? exit?.code}`] : []),
    ...((exit?.envoysLeft ?? 0) > 0 ? [`${exit?.envoysLeft} Envoys were left behind`] : []),
  ];
}

export async function writeSoak(directory: string, soak: Soak): Promise<void> {
  await Deno.mkdir(directory, { recursive: true });
  const { samples, handoffs, load, ...rest } = soak;
  const { durationMs, requests, reconnects, idleCloses, latency, longestGapMs, epochs, failuresByKind } = load.traffic;
  const kept = thin(samples, KEPT_SAMPLES, ({ maxMs }) => maxMs);
  const columns = Object.keys(kept[0] ?? {}) as (keyof Sample)[];
  const json = {
    ...rest,
    load: {
      ...load,
      traffic: {
        ...{ durationMs, requests, reconnects, idleCloses, latency, longestGapMs, failuresByKind },
        epochsAnswered: epochs.length,
      },
    },
    faults: faults(soak),
    byTrigger: tallyByTrigger(handoffs),
    notDone: handoffs.filter(({ outcome }) => outcome !== "done"),
    held: Object.fromEntries(HELD.map(({ key, value }) => [key, trend(samples, value)])),
    series: { columns, rows: kept.map((sample) => columns.map((column) => sample[column])) },
  };
  await replace(join(directory, "soak.json"), JSON.stringify(json, null, 1).replaceAll(/\n {3,}/g, " ") + "\n");
  await replace(join(directory, "soak.svg"), picture(kept));
  await replace(join(directory, "soak.md"), toMarkdown(soak));
}

/** Whole or not at all: it is written again and again while the soak runs. */
async function replace(path: string, text: string): Promise<void> {
  await Deno.writeTextFile(`${path}.new`, text);
  await Deno.rename(`${path}.new`, path);
}

const HELD: readonly { key: string; name: string; unit: string; value: (sample: Sample) => number }[] = [
  { key: "rssAnonMb", name: "RssAnon of epochd", unit: "MB", value: ({ rssAnonKb }) => rssAnonKb * 1024 / 1e6 },
  { key: "openFiles", name: "open files of epochd", unit: "", value: ({ openFiles }) => openFiles },
  { key: "threads", name: "threads of epochd", unit: "", value: ({ threads }) => threads },
  { key: "envoys", name: "living Envoys", unit: "", value: ({ envoys }) => envoys },
  { key: "zombies", name: "zombies under epochd", unit: "", value: ({ zombies }) => zombies },
  { key: "segmentBytes", name: "/dev/shm, of this base id", unit: "B", value: ({ segmentBytes }) => segmentBytes },
  { key: "stateFiles", name: "files in the state directory", unit: "", value: ({ stateFiles }) => stateFiles },
  { key: "stateKb", name: "state directory", unit: "kB", value: ({ stateBytes }) => stateBytes / 1000 },
  { key: "ledgerKb", name: "ledger, with its older part", unit: "kB", value: ({ ledgerBytes }) => ledgerBytes / 1000 },
];

export function toMarkdown(soak: Soak): string {
  const { options, environment: at, load, handoffs, samples, partial } = soak;
  const { traffic } = load;
  const { latency } = traffic;
  const found = faults(soak);
  const done = handoffs.filter(({ outcome }) => outcome === "done").length;
  const cpuMs = (samples.at(-1)?.cpuMs ?? 0) - (samples[0]?.cpuMs ?? 0);
  const sampledMs = 1000 * ((samples.at(-1)?.atS ?? 0) - (samples[0]?.atS ?? 0));
  const minutes = round(soak.durationMs / 60_000);
  return [
    "# Soak",
    "",
    ...(partial === undefined ? [] : [`**Partial**: ${partial}. What follows is of the time until then.`, ""]),
    found.length === 0 ? "Nothing failed." : `**Failed**: ${found.join("; ")}.`,
    "",
    `${done} handoffs of ${options.handoffs}, ${traffic.requests} requests of ${options.requests}, in ${minutes} minutes. ` +
    `${at.date}; ${at.cores} cores (${at.cpu}), ${at.memoryMb} MB, Linux ${at.kernel}, load ${at.load.join(" to ")}, ` +
    `${at.scheduling} scheduling; compiled: ${at.compiled}; Envoy ${
      soak.envoyVersions.join(", ")
    }; drain 1 s, parent shutdown 2 s. ` +
    "Written by `make soak`.",
    "",
    "| load | |",
    "|---|--:|",
    `| requests, half on new connections, half on keep-alive | ${traffic.requests} |`,
    `| requests a second | ${round(1000 * traffic.requests / Math.max(1, traffic.durationMs))} |`,
    `| failed requests | ${load.requestsFailed} |`,
    `| held streams of 1.2 s, complete | ${load.streamsComplete} |`,
    `| broken streams | ${load.streamsBroken} |`,
    `| failed, and not by Envoy or epochd (below) | ${load.excused} |`,
    `| epochs that answered | ${traffic.epochs.length} |`,
    `| keep-alive clients asked to reconnect, and did | ${traffic.reconnects} |`,
    `| latency p50, p90, p99, p99.9 | ${latency.p50Ms}, ${latency.p90Ms}, ${latency.p99Ms}, ${latency.p999Ms} ms |`,
    `| longest answer | ${latency.maxMs} ms |`,
    `| longest time without any answer | ${traffic.longestGapMs} ms |`,
    `| longest time in which the bench itself did not run | ${load.longestStandstillMs} ms |`,
    "",
    "| trigger | asked | done | failed | lost | preflight | fork to LIVE | trigger's turn to LIVE | LIVE to the end |",
    "|---|--:|--:|--:|--:|--:|--:|--:|--:|",
    ...tallyByTrigger(handoffs).map((row) => {
      const cells = [row.preflight, row.start, row.live, row.drained].map(({ p50, p99 }) => `${p50} (${p99}) ms`);
      return `| ${[row.trigger, row.asked, row.done, row.failed, row.lost, ...cells].join(" | ")} |`;
    }),
    "",
    "Median (99th percentile), by epochd's log. `binary` switches between the versions in turn, `restart` is `epochd restart`.",
    "",
    "| held | first | last | least | most | median early | median late | per 1,000 handoffs |",
    "|---|--:|--:|--:|--:|--:|--:|--:|",
    ...HELD.map(({ name, unit, value }) => heldRow(unit === "" ? name : `${name}, ${unit}`, trend(samples, value))),
    "",
    "Looked at every second. Early: the second fifth of the samples, late: the last one; the last column is the line of least squares " +
    "after the first fifth.",
    "",
    `CPU of epochd: ${round(100 * cpuMs / Math.max(1, sampledMs), 2)} % of a core, ${
      round(cpuMs / Math.max(1, done))
    } ms for each handoff.`,
    soak.exit === undefined
      ? "epochd was not stopped yet."
      : `After SIGTERM epochd ended with ${soak.exit.signal ?? soak.exit.code}; Envoys left: ${soak.exit.envoysLeft}.`,
    "",
    `epochd's lines at warn and error: ${
      Object.entries(soak.warnings).map(([event, count]) => `${event} ${count}`).join(", ") || "none"
    }.`,
    "",
    "![anonymous memory, open files and latency over time](soak.svg)",
    ...list("Failures", load.failures),
    ...list("Handoffs that were not done", handoffs.filter(({ outcome }) => outcome !== "done").map(textOf)),
    ...list("Failed, and not by Envoy or epochd", load.excuses),
    "",
  ].join("\n");
}

function heldRow(name: string, { first, last, least, most, early, late, perThousandHandoffs }: Trend): string {
  const slope = perThousandHandoffs === undefined ? "too few" : round(perThousandHandoffs);
  const cells = [...[first, last, least, most, early, late].map((value) => round(value)), slope];
  return `| ${name} | ${cells.join(" | ")} |`;
}

function textOf({ number, trigger, atMs, outcome, detail }: HandoffRecord): string {
  return `${number} (${trigger}) at ${atMs} ms, ${outcome}: ${detail}`;
}

function list(title: string, texts: readonly string[]): string[] {
  if (texts.length === 0) return [];
  return ["", `## ${title}`, "", ...texts.flatMap((text) => ["```", text.trimEnd(), "```"])];
}

function picture(samples: readonly Sample[]): string {
  const line = (name: string, value: (sample: Sample) => number) => ({
    name,
    points: samples.map((sample) => [sample.atS / 60, value(sample)] as const),
  });
  return plot([
    { title: "RssAnon of epochd", unit: "MB", lines: [line("", ({ rssAnonKb }) => rssAnonKb * 1024 / 1e6)] },
    {
      title: "epochd",
      unit: "count",
      lines: [line("open files", ({ openFiles }) => openFiles), line("threads", ({ threads }) => threads)],
    },
    {
      title: "latency of each second",
      unit: "ms",
      lines: [
        line("p50", ({ p50Ms }) => p50Ms),
        line("p99", ({ p99Ms }) => p99Ms),
        line("longest", ({ maxMs }) => maxMs),
      ],
    },
    { title: "handoffs", unit: "count", lines: [line("", ({ handoffs }) => handoffs)] },
  ], "min");
}
