// Owns: the ledger: one JSON line a handoff, from its beginning to the end of its predecessor. Must not: decide what a handoff is.

import { join } from "node:path";
import type { TriggerSource } from "../core/event.ts";
import type { Refusal } from "../core/refusal.ts";
import type { RecordedFact } from "./record.ts";

/** A finished handoff. Times are milliseconds; `beganAt` is ISO 8601. */
export interface LedgerEntry {
  readonly service: string;
  readonly handoff: number;
  readonly from: number;
  readonly to: number;
  readonly source: TriggerSource;
  readonly requests: readonly string[];
  readonly beganAt: string;
  readonly outcome: "done" | "failed" | "cut_short";
  readonly refusal?: Refusal;
  readonly bootstrapDigest?: string;
  readonly binaryDigest?: string;
  readonly envoyVersion?: string;
  readonly preflightMs?: number;
  readonly startMs?: number;
  readonly liveMs?: number;
  readonly drainMs?: number;
}

type Open = { -readonly [K in keyof LedgerEntry]?: LedgerEntry[K] } & Pick<LedgerEntry, "service" | "handoff">;

/** Builds entries from facts; what is still open when the supervisor ends was cut short. */
export class LedgerBook {
  readonly #open = new Map<string, Open>();

  /** The entry that this fact has finished. */
  take({ service, wallMs, fact }: RecordedFact): LedgerEntry | undefined {
    if (fact.kind === "handoff_began") {
      const { handoff, from, to, source, requests } = fact;
      const beganAt = new Date(wallMs).toISOString();
      this.#open.set(`${service} ${handoff}`, { service, handoff, from, to, source, requests, beganAt });
      return undefined;
    }
    if (fact.kind === "handoff_live" || fact.kind === "handoff_done" || fact.kind === "handoff_failed") {
      const key = `${service} ${fact.handoff}`;
      const open = this.#open.get(key);
      if (open === undefined) return undefined;
      if (fact.kind === "handoff_live") {
        open.liveMs = fact.tookMs;
        return undefined;
      }
      this.#open.delete(key);
      return fact.kind === "handoff_done"
        ? finish(open, { outcome: "done", drainMs: fact.drainedMs })
        : finish(open, { outcome: "failed", refusal: fact.refusal });
    }
    const newest = this.#newest(service);
    if (newest === undefined || newest.liveMs !== undefined) return undefined;
    if (fact.kind === "preflight_passed") {
      newest.preflightMs = fact.tookMs;
      newest.bootstrapDigest = fact.bootstrapDigest;
      newest.binaryDigest = fact.binaryDigest;
    } else if (fact.kind === "preflight_refused") newest.preflightMs = fact.tookMs;
    else if (fact.kind === "epoch_live") {
      newest.startMs = fact.tookMs;
      newest.envoyVersion = fact.version;
    }
    return undefined;
  }

  cutShort(): readonly LedgerEntry[] {
    const entries = [...this.#open.values()].map((open) => finish(open, { outcome: "cut_short" }));
    this.#open.clear();
    return entries;
  }

  #newest(service: string): Open | undefined {
    return [...this.#open.values()].filter((open) => open.service === service).at(-1);
  }
}

function finish(open: Open, end: Partial<LedgerEntry> & Pick<LedgerEntry, "outcome">): LedgerEntry {
  return { ...open, ...end } as LedgerEntry;
}

export interface LedgerFileOptions {
  readonly directory: string;
  /** A full file becomes `handoffs.1.jsonl`; the one before it goes. */
  readonly maxBytes?: number;
  readonly problem: (problem: string) => void;
}

const DEFAULT_MAX_BYTES = 1_048_576;

/** `handoffs.jsonl`: appended one line at a time, in order, rotated by size; a full disk costs lines, never a handoff. */
export class LedgerFile {
  readonly #path: string;
  readonly #older: string;
  #turn: Promise<void> = Promise.resolve();
  #told = false;

  constructor(private readonly options: LedgerFileOptions) {
    this.#path = join(options.directory, "handoffs.jsonl");
    this.#older = join(options.directory, "handoffs.1.jsonl");
  }

  append(entry: LedgerEntry): Promise<void> {
    return this.#turn = this.#turn.then(() => this.#write(entry));
  }

  /** Newest first, at most `limit`; lines that a crash cut off are passed over. */
  async read(limit: number): Promise<readonly LedgerEntry[]> {
    const texts = await Promise.all([this.#older, this.#path].map((path) => Deno.readTextFile(path).catch(() => "")));
    return texts.join("").split("\n").flatMap(parseLine).slice(-limit).reverse();
  }

  async #write(entry: LedgerEntry): Promise<void> {
    try {
      const size = await Deno.stat(this.#path).then((info) => info.size, () => 0);
      if (size >= (this.options.maxBytes ?? DEFAULT_MAX_BYTES)) await Deno.rename(this.#path, this.#older);
      await Deno.writeTextFile(this.#path, `${JSON.stringify(entry)}\n`, { append: true, mode: 0o600 });
      this.#told = false;
    } catch (error) {
      if (this.#told) return;
      this.#told = true;
      this.options.problem(`append to ${this.#path}: ${error instanceof Error ? error.message : error}`);
    }
  }
}

function parseLine(line: string): LedgerEntry[] {
  try {
    return line === "" ? [] : [JSON.parse(line)];
  } catch {
    return [];
  }
}
