// Owns: `epochd history`: handoffs and configurations of the past, of a supervisor or, where there is none, of its state directory.
// Must not: change anything.

import { connectTo, type History, type PastConfig, type PastHandoff } from "../api/client.ts";
import { LedgerFile } from "../observe/ledger_file.ts";
import { oneLine, showMs } from "../observe/words.ts";
import { exitCode } from "./exit_code.ts";
import { reportFailure } from "./failure.ts";
import { alignedRows } from "./table.ts";
import type { Terminal } from "./terminal.ts";

export const historyKinds = ["all", "handoff", "configuration"] as const;

export interface HistoryOptions {
  readonly socket: string;
  readonly json: boolean;
  readonly kind: typeof historyKinds[number];
  readonly service?: string;
  readonly last: number;
  /** Read the ledger there instead of asking a supervisor. */
  readonly stateDir?: string;
}

type Past = PastHandoff | PastConfig;

export async function historyCommand(options: HistoryOptions, terminal: Terminal): Promise<number> {
  const found = await read(options, terminal);
  if (typeof found === "number") return found;
  const past = merged(found, options);
  if (options.json) terminal.out(`${JSON.stringify(past)}\n`);
  else if (past.length === 0) terminal.out("nothing yet\n");
  else for (const row of alignedRows([head, ...past.map(rowOf)])) terminal.out(`${row}\n`);
  return exitCode.ok;
}

async function read(options: HistoryOptions, terminal: Terminal): Promise<History | number> {
  const { stateDir } = options;
  if (stateDir === undefined) {
    const answer = await connectTo(options.socket).history();
    return answer.kind === "ok" ? answer.value : reportFailure(answer, terminal, options.json);
  }
  try {
    if (!Deno.statSync(stateDir).isDirectory) throw new Error("is not a directory");
  } catch (error) {
    const why = error instanceof Deno.errors.NotFound
      ? "does not exist"
      : error instanceof Error
      ? error.message
      : error;
    terminal.err(`error: read state directory ${stateDir}: ${why}\n`);
    return exitCode.refused;
  }
  const file = new LedgerFile({ directory: stateDir, problem: () => {} });
  const entries = await file.read(options.last);
  return { handoffs: entries.map((entry) => ({ kind: "handoff", ...entry })), configurations: [] };
}

/** Newest first; what is under way began last. */
function merged({ handoffs, configurations }: History, { kind, service, last }: HistoryOptions): readonly Past[] {
  const all: readonly Past[] = [
    ...(kind === "configuration" ? [] : handoffs.filter((entry) => service === undefined || entry.service === service)),
    ...(kind === "handoff" ? [] : configurations),
  ];
  return all.toSorted((a, b) => atOf(b).localeCompare(atOf(a))).slice(0, last);
}

function atOf(past: Past): string {
  return past.kind === "handoff" ? past.beganAt : past.at;
}

const head = ["TIME (UTC)", "WHAT", "OUTCOME", "BY", "WHO", "DETAILS"];

function rowOf(past: Past): readonly string[] {
  const time = atOf(past).slice(0, 19).replace("T", " ");
  if (past.kind === "configuration") {
    const { id, source, who, why, running } = past;
    return [time, `configuration ${id}`, running ? "runs" : "replaced", source, oneLine(who), oneLine(why)];
  }
  const { service, from, to, outcome, source, who = "" } = past;
  return [time, `${service} ${from} -> ${to}`, outcome.replace("_", " "), source, oneLine(who), detailsOf(past)];
}

function detailsOf(entry: PastHandoff): string {
  const { refusal, liveMs, drainMs, fromVersion, envoyVersion, connectionsAtDrain, connectionsAtEnd } = entry;
  const parts = [
    ...(refusal === undefined ? [] : [`${refusal.name}: ${oneLine(refusal.detail)}`]),
    ...(liveMs === undefined ? [] : [`LIVE after ${showMs(liveMs)}`]),
    ...(drainMs === undefined ? [] : [`drained ${showMs(drainMs)}`]),
    ...connectionsOf(connectionsAtDrain, connectionsAtEnd),
    ...versionsOf(fromVersion, envoyVersion),
  ];
  return parts.join(", ");
}

function connectionsOf(atDrain: number | undefined, atEnd: number | undefined): readonly string[] {
  if (atDrain === undefined && atEnd === undefined) return [];
  return [`connections ${atDrain ?? "?"} to ${atEnd ?? "?"}`];
}

function versionsOf(from: string | undefined, to: string | undefined): readonly string[] {
  if (to === undefined) return [];
  return [from === undefined || from === to ? `Envoy ${to}` : `Envoy ${from} to ${to}`];
}
