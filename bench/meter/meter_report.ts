// Owns: what a run of the meter has found, and how it is added up. Must not: measure, or write it down.
import { type Bounds, excuseOf, type Limit, type Mark } from "./blame.ts";
import { CONNECTIONS, type LoadReport } from "./load.ts";
import { type Protocol, PROTOCOLS } from "./protocols.ts";
import type { Counts, Loss, LossKind } from "./tally.ts";
import { longestGap, percentile, timeline, type Window } from "./timeline.ts";

export type Scenario = "restart" | "upgrade" | "roll" | "stop";

export interface Row {
  readonly protocol: Protocol | "load";
  readonly title: string;
  readonly unit: string;
  readonly sent: number;
  readonly answered: number;
  /** What counts against the supervisor. */
  readonly drops: Readonly<Partial<Record<LossKind, number>>>;
  /** What Envoy itself can't do. */
  readonly limits: Readonly<Partial<Record<Limit, number>>>;
  readonly toldToGo: number;
  readonly idleClosed: number;
  /** Connections that were open when a successor was LIVE and answered after it; and those that answered through its whole drain. */
  readonly heldAcross: number;
  readonly wholeDrains: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
  readonly slowestMs: number;
  /** Undefined where an answer comes at the end only. */
  readonly longestGapMs?: number;
}

export interface SeenLoss {
  readonly protocol: Protocol | "load";
  readonly kind: LossKind;
  /** Since the begin of the scenario. */
  readonly atMs: number;
  readonly detail: string;
  /** Envoy's own, and the number of the change that it happened in. */
  readonly limit?: Limit;
  readonly mark?: number;
}

/** What Envoy itself lost between two versions, whoever supervises it. */
export interface OwnLimit {
  readonly from: string;
  readonly to: string;
  readonly handoffs: number;
  readonly counts: Readonly<Partial<Record<Limit, number>>>;
}

export interface ScenarioReport {
  readonly scenario: Scenario;
  readonly subject: string;
  readonly key: string;
  readonly envoy: string;
  readonly startMs: number;
  readonly durationMs: number;
  readonly marks: readonly Mark[];
  readonly rows: readonly Row[];
  readonly drops: number;
  /** Of the held clients. */
  readonly dropsAtMs: readonly number[];
  /** The first ones; drops before limits. */
  readonly losses: readonly SeenLoss[];
  readonly ownLimits: readonly OwnLimit[];
  readonly load: { readonly tool: "wrk" | "deno"; readonly perSecond: number; readonly restarts: number };
  readonly windows: readonly Window[];
  /** Why the scenario ended before its time. */
  readonly problem?: string;
}

export interface MeterReport {
  readonly date: string;
  readonly bounds: Bounds;
  /** Its command line, with the placeholders. */
  readonly peer?: string;
  readonly requestsPerSecond: number;
  /** How long streams and sessions are held. */
  readonly sessionMs: number;
  /** Protocols that were left out, and why. */
  readonly missing: readonly { readonly title: string; readonly why: string }[];
  readonly scenarios: readonly ScenarioReport[];
}

export interface Measured {
  readonly scenario: Scenario;
  readonly subject: string;
  readonly key: string;
  readonly envoy: string;
  readonly marks: readonly Mark[];
  readonly bounds: Bounds;
  readonly counts: ReadonlyMap<Protocol, Counts>;
  readonly load: LoadReport;
  readonly problem?: string;
}

export const WINDOW_MS = 250;
const KEPT_LOSSES = 20;

export function scenarioReport(measured: Measured): ScenarioReport {
  const { marks, bounds, counts, load, problem, scenario, subject, key, envoy } = measured;
  const { startMs, endMs } = load;
  const judge = (protocol: Protocol | "load", losses: readonly Loss[]) =>
    losses.map((loss): SeenLoss => {
      const excuse = excuseOf(protocol, loss, marks, bounds);
      const atMs = Math.round(loss.atMs - startMs);
      const seen = { protocol, kind: loss.kind, atMs, detail: loss.detail };
      return excuse === undefined ? seen : { ...seen, limit: excuse.limit, mark: excuse.mark.number };
    });
  const judged = [...counts].map(([protocol, counts]) => ({ protocol, counts, seen: judge(protocol, counts.losses) }));
  const loadSeen = judge("load", lossesOf(load, marks));
  const rows = [
    ...judged.map(({ protocol, counts, seen }) => rowOf(protocol, counts, seen, measured)),
    loadRow(load, loadSeen),
  ];
  const all = [...judged.flatMap(({ seen }) => seen), ...loadSeen].sort((a, b) => a.atMs - b.atMs);
  const drops = all.filter(({ limit }) => limit === undefined);
  // A load tells how many it lost, but of most not when: one of a kind stands for them in a list.
  const listed = [...drops.filter(({ protocol }) => protocol !== "load"), ...oneOfAKind(drops)];
  return {
    scenario,
    subject,
    key,
    envoy,
    startMs: Math.round(startMs),
    durationMs: Math.round(endMs - startMs),
    marks,
    rows,
    drops: drops.length,
    ownLimits: ownLimits(marks, all),
    dropsAtMs: [...new Set(listed.flatMap(({ protocol, atMs }) => protocol === "load" ? [] : [atMs]))],
    losses: [...listed.slice(0, KEPT_LOSSES), ...all.filter(({ limit }) => limit !== undefined).slice(0, KEPT_LOSSES)],
    load: {
      tool: load.tool,
      perSecond: Math.round(load.answers.length * 1000 / (lastAnswerMs(load) - startMs)),
      restarts: load.restartsAtMs.length,
    },
    windows: timeline(load.answers, startMs, endMs, WINDOW_MS),
    ...(problem !== undefined && { problem }),
  };
}

function rowOf(protocol: Protocol, counts: Counts, seen: readonly SeenLoss[], { marks, bounds }: Measured): Row {
  const { title, unit } = PROTOCOLS[protocol];
  const { sent, answered, toldToGo, idleClosed, latency, longestGapMs, sessions } = counts;
  const live = marks.flatMap(({ kind, liveAtMs }) => kind === "handoff" && liveAtMs !== undefined ? [liveAtMs] : []);
  const sessionsOver = (ms: number) =>
    sessions.filter(({ openedAtMs, lastAtMs }) => live.some((at) => openedAtMs < at && lastAtMs >= at + ms)).length;
  return {
    protocol,
    title,
    unit,
    sent,
    answered,
    ...added(seen),
    toldToGo,
    idleClosed,
    heldAcross: sessionsOver(0),
    wholeDrains: sessionsOver(bounds.drainTimeMs),
    p50Ms: latency.p50Ms,
    p99Ms: latency.p99Ms,
    slowestMs: latency.maxMs,
    // Nothing comes back from an upload before its end.
    ...(protocol !== "upload" && { longestGapMs }),
  };
}

function loadRow(load: LoadReport, seen: readonly SeenLoss[]): Row {
  const took = load.answers.map(({ tookMs }) => tookMs).sort((a, b) => a - b);
  const round = (ms: number) => Math.round(ms * 100) / 100;
  return {
    protocol: "load",
    title: `load (${load.tool}), HTTP/1.1 keep-alive`,
    unit: "requests",
    sent: took.length + seen.length,
    answered: took.length,
    ...added(seen),
    toldToGo: load.toldToGo,
    idleClosed: 0,
    heldAcross: 0,
    wholeDrains: 0,
    p50Ms: round(percentile(took, 0.5)),
    p99Ms: round(percentile(took, 0.99)),
    slowestMs: round(percentile(took, 1)),
    longestGapMs: Math.round(longestGap(load.answers, load.answers[0]?.atMs ?? load.startMs, lastAnswerMs(load))),
  };
}

/** A load that is told to leave ends before its measurement does. */
function lastAnswerMs({ answers, endMs }: LoadReport): number {
  const last = answers.reduce((latest, { atMs }) => Math.max(latest, atMs), 0);
  return last === 0 || endMs - last < 1_000 ? endMs : last;
}

/** Errors without a time are put where they can't be excused by a handoff; after a stop, whose load ends by itself, they can. */
function lossesOf(load: LoadReport, marks: readonly Mark[]): Loss[] {
  const stop = marks.find(({ kind }) => kind === "stop");
  const atMs = stop?.triggeredAtMs ?? load.startMs;
  const kinds = ["refused", "reset", "unanswered"] as const;
  // wrk tries a refused connection again without a pause, thousands of times in an outage: each counts once a change.
  const most = load.tool === "wrk" ? CONNECTIONS * Math.max(1, marks.length) : Infinity;
  const refused = Math.min(load.errors.refused, most);
  const errors = { ...load.errors, refused };
  const counted = kinds.flatMap((kind) =>
    Array.from({ length: errors[kind] }, () => ({ kind, sentAtMs: atMs, atMs, detail: `counted by ${load.tool}` }))
  );
  return [
    ...counted,
    ...load.wrong.map(({ sentAtMs, atMs, status }) => ({
      kind: "wrong" as const,
      sentAtMs,
      atMs,
      detail: `status ${status}`,
    })),
  ];
}

function oneOfAKind(drops: readonly SeenLoss[]): SeenLoss[] {
  const of = (kind: LossKind) => drops.filter((loss) => loss.protocol === "load" && loss.kind === kind);
  return (["reset", "refused", "unanswered", "wrong"] as const).flatMap((kind) => {
    const [first, ...rest] = of(kind);
    return first === undefined ? [] : [{ ...first, detail: `${rest.length + 1} ${kind}, ${first.detail}` }];
  });
}

function ownLimits(marks: readonly Mark[], seen: readonly SeenLoss[]): OwnLimit[] {
  const found = new Map<
    string,
    { from: string; to: string; handoffs: number; counts: Partial<Record<Limit, number>> }
  >();
  for (const { kind, number, from, to = "nobody" } of marks) {
    if (kind !== "handoff" && kind !== "stop") continue;
    const path = found.get(`${from} ${to}`) ?? { from, to, handoffs: 0, counts: {} };
    found.set(`${from} ${to}`, path);
    path.handoffs++;
    for (const { limit, mark } of seen) {
      if (limit !== undefined && mark === number) path.counts[limit] = (path.counts[limit] ?? 0) + 1;
    }
  }
  return [...found.values()];
}

function added(seen: readonly SeenLoss[]): Pick<Row, "drops" | "limits"> {
  const drops: Partial<Record<LossKind, number>> = {};
  const limits: Partial<Record<Limit, number>> = {};
  for (const { kind, limit } of seen) {
    if (limit === undefined) drops[kind] = (drops[kind] ?? 0) + 1;
    else limits[limit] = (limits[limit] ?? 0) + 1;
  }
  return { drops, limits };
}
