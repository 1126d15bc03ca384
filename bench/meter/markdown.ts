// Owns: the report of the drop meter as people read it: tables, and links to the plots. Must not: measure, judge, or be kind.
import { type Limit, LIMITS } from "./blame.ts";
import type { MeterReport, Row, Scenario, ScenarioReport } from "./meter_report.ts";
import { type Plot, plotSvg } from "./plot.ts";
import type { LossKind } from "./tally.ts";

const TITLES: Readonly<Record<Scenario, string>> = {
  restart: "in-place restarts (SIGHUP)",
  upgrade: "binary upgrades 1.38.3 -> 1.39.3 -> 1.40.0 and back (SIGHUP)",
  roll: "rolls from supervisor to supervisor (--cross-pod)",
  stop: "stop with drain (SIGTERM)",
};

export interface MarkdownOptions {
  /** Of the first heading. Default 1. */
  readonly level?: number;
  /** In front of the names of the plots, with its slash. Default: none. */
  readonly plots?: string;
}

export function meterMarkdown(report: MeterReport, options: MarkdownOptions = {}): string {
  const heading = "#".repeat(options.level ?? 1);
  const { bounds, requestsPerSecond, missing, scenarios, date, sessionMs, peer } = report;
  const seconds = (ms: number) => `${ms / 1000} s`;
  return [
    `${heading} Drop meter`,
    "",
    `${date}; Envoy's drain time ${seconds(bounds.drainTimeMs)}, parent shutdown time ${
      seconds(bounds.parentShutdownTimeMs)
    }; streams, uploads and sessions held for ${seconds(sessionMs)} each, one after the other; ` +
    `beside them a load of ${requestsPerSecond} requests/s and more. Written by \`epochd-bench\` (bench/meter).`,
    "",
    ...(peer === undefined ? [] : [`The peer is \`${peer}\`.`, ""]),
    ...missing.map(({ title, why }) => `**${title} was not measured**: ${why}.\n`),
    ...summary(scenarios),
    ...sideBySide(scenarios),
    ...scenarios.flatMap((scenario) => [
      `${heading}# ${titleOf(scenario)}`,
      "",
      ...ofScenario(scenario, requestsPerSecond, options.plots ?? ""),
    ]),
    `${heading}# What Envoy itself can't do`,
    "",
    ...ownLimits(scenarios),
    `${heading}# How it is counted`,
    "",
    ...HOW,
    "",
  ].join("\n");
}

const HOW = [
  "- A **drop** is a request, message or stream that was reset, refused, not answered, or answered wrongly (unanswered: within 5 s, a datagram within 2 s).",
  "- A client that was **told to go** (GOAWAY, `connection: close`) and opened a new connection lost nothing. Neither did one whose idle connection was closed before it had asked (**idle closed**).",
  "- What no supervisor of Envoy could help stands under **Envoy's own**, and below by version. It is one of these, told by protocol and moment, or else a drop:",
  ...Object.values(LIMITS).map((text) => `  - ${text}`),
  "- **Held across**: connections that were open when a successor was LIVE and were answered after that; in brackets those that were answered through the whole drain time.",
  "- **p50**, **p99** and **slowest**: from the question to its answer; of streams from piece to piece, which are 100 ms apart; of an upload what it took longer than it was to take. **Longest gap**: the longest time in which no client of that protocol got anything; its clients ask every 100 ms.",
  "- wrk tries a refused connection again without a pause: of these tries one a connection and change is counted.",
];

function titleOf({ scenario, subject }: ScenarioReport): string {
  return `${TITLES[scenario]}: ${subject}`;
}

function summary(scenarios: readonly ScenarioReport[]): string[] {
  return table(
    [
      "scenario",
      "supervisor",
      "changes",
      "sent",
      "answered",
      "drops",
      "Envoy's own",
      "slowest of the load",
      "its longest gap",
    ],
    scenarios.map((one) => {
      const sum = (pick: (row: Row) => number) => one.rows.reduce((total, row) => total + pick(row), 0);
      const load = one.rows.find(({ protocol }) => protocol === "load");
      return [
        TITLES[one.scenario] + (one.problem === undefined ? "" : " (ended early)"),
        one.subject,
        one.marks.filter(({ kind }) => kind !== "failed").length,
        sum(({ sent }) => sent),
        sum(({ answered }) => answered),
        one.drops === 0 ? "0" : `**${one.drops}**`,
        sum(({ limits }) => total(limits)),
        `${load?.slowestMs ?? "-"} ms`,
        `${load?.longestGapMs ?? "-"} ms`,
      ];
    }),
    2,
  );
}

/** Only where there are two to compare. */
function sideBySide(scenarios: readonly ScenarioReport[]): string[] {
  const names = [...new Set(scenarios.map(({ scenario }) => scenario))];
  return names.flatMap((name) => {
    const both = scenarios.filter(({ scenario }) => scenario === name);
    if (both.length < 2) return [];
    const protocols = both[0]!.rows.map(({ protocol, title }) => ({ protocol, title }));
    return [
      `Drops / slowest / longest gap, side by side, ${TITLES[name]}:`,
      "",
      ...table(
        ["protocol", ...both.map(({ subject }) => subject)],
        protocols.map(({ protocol, title }) => [
          title,
          ...both.map(({ rows }) => {
            const row = rows.find((row) => row.protocol === protocol);
            return row === undefined
              ? "-"
              : `${total(row.drops)} / ${row.slowestMs} ms / ${row.longestGapMs ?? "-"} ms`;
          }),
        ]),
      ),
    ];
  });
}

const KINDS = ["reset", "refused", "unanswered", "wrong", "local"] as const satisfies readonly LossKind[];

function ofScenario(report: ScenarioReport, wanted: number, plots: string): string[] {
  const { rows, marks, load, durationMs, problem, losses } = report;
  const live = marks.flatMap(({ liveAtMs, triggeredAtMs }) => liveAtMs === undefined ? [] : [liveAtMs - triggeredAtMs]);
  const replaced = marks.filter(({ kind }) => kind === "replaced").length;
  const kinds = KINDS.filter((kind) => kind !== "local" || rows.some(({ drops }) => drops.local));
  const drops = losses.filter(({ limit }) => limit === undefined);
  const h3 = rows.find(({ protocol }) => protocol === "h3");
  return [
    `${(durationMs / 1000).toFixed(0)} s, load ${load.perSecond} requests/s by ${
      load.tool === "wrk" ? "wrk" : "a Deno of its own (wrk is missing)"
    }` +
    (load.perSecond >= wanted ? "" : ` (**less than the ${wanted} that were wanted: the machine was busy**)`) +
    (live.length === 0 ? "" : `; from the trigger to LIVE ${range(live)} ms`) +
    (replaced === 0 ? "" : `; **${replaced} times the old Envoy was gone before the new one was LIVE**`) +
    (load.restarts === 0 ? "" : `; the load had to be started again ${load.restarts} times`) + ".",
    "",
    ...(problem === undefined ? [] : [`**Ended early**: ${problem.split("\n")[0]}`, ""]),
    ...table(
      [
        "protocol",
        "sent",
        "answered",
        ...kinds,
        "Envoy's own",
        "told to go",
        "held across",
        "idle closed",
        "p50",
        "p99",
        "slowest",
        "longest gap",
      ],
      rows.map((row) => [
        `${row.title} (${row.unit})`,
        row.sent,
        row.answered,
        ...kinds.map((kind) => row.drops[kind] === undefined ? "0" : `**${row.drops[kind]}**`),
        total(row.limits),
        row.toldToGo,
        row.heldAcross === 0 ? "-" : `${row.heldAcross} (${row.wholeDrains})`,
        row.idleClosed,
        ...[row.p50Ms, row.p99Ms, row.slowestMs].map((ms) => `${ms} ms`),
        row.longestGapMs === undefined ? "-" : `${row.longestGapMs} ms`,
      ]),
    ),
    ...(h3 === undefined || h3.heldAcross === 0
      ? []
      : [`${h3.wholeDrains} HTTP/3 connections made before a handoff were answered through its whole drain.`, ""]),
    `![throughput and latency over time](${plots}${plotName(report)})`,
    "",
    ...(drops.length === 0
      ? []
      : ["The first drops:", "", ...drops.map((loss) => `- ${loss.atMs} ms, ${loss.protocol}: ${loss.detail}`), ""]),
  ];
}

function ownLimits(scenarios: readonly ScenarioReport[]): string[] {
  const limits = Object.keys(LIMITS) as Limit[];
  const names: Readonly<Record<Limit, string>> = {
    udp_dark: "UDP unanswered while the parent lived",
    udp_end: "UDP lost at its end",
    parent_shutdown: "cut at parent-shutdown",
    stopped: "after a stop",
  };
  const rows = scenarios.flatMap(({ scenario, key, ownLimits }) =>
    ownLimits.map(({ from, to, handoffs, counts }) => [
      from === to ? from : `${from} -> ${to}`,
      `${scenario}, ${key}`,
      handoffs,
      ...limits.map((limit) => counts[limit] ?? 0),
    ])
  );
  return table(["Envoy", "scenario", "changes", ...limits.map((limit) => names[limit])], rows, 2);
}

export function plotName({ scenario, key }: ScenarioReport): string {
  return `report-${scenario}-${key}.svg`;
}

export function plotOf(report: ScenarioReport): string {
  const { startMs, durationMs, windows, marks, dropsAtMs } = report;
  const at = (kind: "live" | "gone", ms: number | undefined) => ms === undefined ? [] : [{ kind, atMs: ms - startMs }];
  const drops = dropsAtMs.map((atMs) => ({ kind: "drop" as const, atMs }));
  const plot: Plot = {
    title: titleOf(report),
    durationMs,
    windows,
    marks: [...marks.flatMap(({ liveAtMs, goneAtMs }) => [...at("live", liveAtMs), ...at("gone", goneAtMs)]), ...drops],
  };
  return plotSvg(plot);
}

function total(counts: Readonly<Record<string, number>>): number {
  return Object.values(counts).reduce((sum, count) => sum + count, 0);
}

function range(values: readonly number[]): string {
  const sorted = values.toSorted((a, b) => a - b);
  return `${sorted[0]!.toFixed(0)} to ${sorted.at(-1)!.toFixed(0)} (median ${sorted[sorted.length >> 1]!.toFixed(0)})`;
}

/** `texts`: how many columns hold words. */
function table(head: readonly string[], rows: readonly (readonly (string | number)[])[], texts = 1): string[] {
  const row = (cells: readonly (string | number)[]) =>
    `| ${cells.map((cell) => String(cell).replaceAll("|", "\\|")).join(" | ")} |`;
  return [row(head), row(head.map((_, at) => at < texts ? "---" : "---:")), ...rows.map(row), ""];
}
