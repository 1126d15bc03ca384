// Owns: what a handoff was, from its beginning to the end of its predecessor, built from facts. Must not: write, ask, or decide
// what a handoff is.

import type { TriggerSource } from "../core/event.ts";
import type { Fact } from "../core/fact.ts";
import { type Refusal, refusal } from "../core/refusal.ts";
import type { RecordedFact } from "./record.ts";
import { envoyVersion, showExit } from "./words.ts";

/** Times are milliseconds; `beganAt` is ISO 8601. */
export interface LedgerEntry {
  readonly service: string;
  /** Counted from 1 by each supervisor; absent where another pod's epoch was joined. */
  readonly handoff?: number;
  readonly from: number;
  readonly to: number;
  /** `join`: this supervisor began by taking over from another pod's. */
  readonly source: TriggerSource | "join";
  readonly requests: readonly string[];
  /** The client of the API, the signal or the watched file behind it. */
  readonly who?: string;
  readonly beganAt: string;
  readonly outcome: "under_way" | "done" | "failed" | "cut_short";
  readonly refusal?: Refusal;
  readonly bootstrapDigest?: string;
  readonly binaryDigest?: string;
  /** Of the predecessor and the successor. */
  readonly fromVersion?: string;
  readonly envoyVersion?: string;
  readonly preflightMs?: number;
  readonly startMs?: number;
  readonly liveMs?: number;
  readonly drainMs?: number;
  /** Of the predecessor when the drain began; at its end, as Envoy told it last (up to its stats_flush_interval before). */
  readonly connectionsAtDrain?: number;
  readonly connectionsAtEnd?: number;
  /** Which supervisor wrote it. */
  readonly pid?: number;
}

export type OpenEntry = { -readonly [K in keyof LedgerEntry]: LedgerEntry[K] };

/** What a fact did to an entry. */
export interface Taken {
  readonly kind: "began" | "live" | "ended";
  readonly entry: OpenEntry;
}

export class LedgerBook {
  readonly #open = new Map<string, OpenEntry>();
  /** Of the epoch that became LIVE last, by service. */
  readonly #versions = new Map<string, string>();

  /** Every entry that this fact has begun, changed for good or ended. */
  take(record: RecordedFact): readonly Taken[] {
    const { service, fact } = record;
    switch (fact.kind) {
      case "handoff_began": {
        const { handoff, from, to, source, requests } = fact;
        return [this.#begin(record, { handoff, from, to, source, requests })];
      }
      case "handoff_live": {
        const entry = this.#find(service, fact.handoff);
        if (entry === undefined) return [];
        entry.liveMs = tenths(fact.tookMs);
        return [{ kind: "live", entry }];
      }
      case "handoff_done":
        return this.#end(this.#find(service, fact.handoff), { outcome: "done", drainMs: tenths(fact.drainedMs) });
      case "handoff_failed":
        return this.#end(this.#find(service, fact.handoff), { outcome: "failed", refusal: fact.refusal });
      case "ended":
        // What still drains ends without anybody seeing it.
        return this.#of(service).flatMap((entry) => this.#end(entry, { outcome: "cut_short" }));
      case "epoch_live":
        return this.#live(record, fact);
      default:
        return this.#ofPods(record) ?? this.#details(service, fact);
    }
  }

  /** What is under way, newest first. */
  open(): readonly LedgerEntry[] {
    return [...this.#open.values()].reverse();
  }

  /** The end of the supervisor. */
  cutShort(): readonly LedgerEntry[] {
    const all = [...this.#open.values()];
    return all.flatMap((entry) => this.#end(entry, { outcome: "cut_short" })).map(({ entry }) => entry);
  }

  #begin(
    { service, wallMs }: RecordedFact,
    rest: Pick<OpenEntry, "from" | "to" | "source" | "requests"> & { readonly handoff?: number },
  ): Taken {
    const fromVersion = this.#versions.get(service);
    const entry: OpenEntry = {
      service,
      ...rest,
      beganAt: new Date(wallMs).toISOString(),
      outcome: "under_way",
      ...(fromVersion === undefined ? {} : { fromVersion }),
    };
    this.#open.set(keyOf(service, rest.handoff), entry);
    return { kind: "began", entry };
  }

  #live({ service, wallMs }: RecordedFact, fact: Extract<Fact, { kind: "epoch_live" }>): readonly Taken[] {
    const version = envoyVersion(fact.version);
    const entry = this.#starting(service);
    this.#versions.set(service, version);
    if (entry === undefined) return [];
    entry.startMs = tenths(fact.tookMs);
    entry.envoyVersion = version;
    if (entry.source !== "join") return [];
    entry.liveMs = Math.max(entry.startMs, wallMs - Date.parse(entry.beganAt));
    return [{ kind: "live", entry }];
  }

  /** Another pod's epoch is joined: the same story, told by other facts. */
  #ofPods(record: RecordedFact): readonly Taken[] | undefined {
    const { service, fact } = record;
    const entry = this.#find(service, undefined);
    if (fact.kind === "start_began") {
      const before = this.#end(entry, { outcome: "cut_short" });
      if (fact.cause !== "join") return before;
      return [...before, this.#begin(record, { from: fact.epoch - 1, to: fact.epoch, source: "join", requests: [] })];
    }
    if (entry === undefined) return undefined;
    switch (fact.kind) {
      case "foreign_ended":
        return this.#end(entry, { outcome: "done", drainMs: tenths(fact.drainedMs) });
      case "foreign_lost":
        return this.#end(entry, { outcome: "cut_short", drainMs: tenths(fact.drainedMs) });
      case "foreign_overdue":
        return this.#end(entry, { outcome: "cut_short" });
      case "preflight_refused":
        if (entry.liveMs !== undefined) return undefined;
        return this.#end(entry, { outcome: "failed", refusal: fact.refusal, preflightMs: tenths(fact.tookMs) });
      case "epoch_exited":
        if (fact.role !== "child" || entry.liveMs !== undefined) return undefined;
        return this.#end(entry, {
          outcome: "failed",
          refusal: refusal("child_died", `epoch ${fact.epoch} died before it was LIVE: ${showExit(fact.exit)}`),
        });
      default:
        return undefined;
    }
  }

  #details(service: string, fact: Fact): readonly Taken[] {
    const entry = this.#starting(service);
    if (entry === undefined) return [];
    if (fact.kind === "preflight_passed") {
      entry.preflightMs = tenths(fact.tookMs);
      entry.bootstrapDigest = fact.bootstrapDigest;
      entry.binaryDigest = fact.binaryDigest;
    } else if (fact.kind === "preflight_refused") entry.preflightMs = tenths(fact.tookMs);
    return [];
  }

  #end(entry: OpenEntry | undefined, end: Partial<LedgerEntry>): readonly Taken[] {
    if (entry === undefined) return [];
    this.#open.delete(keyOf(entry.service, entry.handoff));
    return [{ kind: "ended", entry: Object.assign(entry, end) }];
  }

  #find(service: string, handoff: number | undefined): OpenEntry | undefined {
    return this.#open.get(keyOf(service, handoff));
  }

  #of(service: string): readonly OpenEntry[] {
    return [...this.#open.values()].filter((entry) => entry.service === service);
  }

  /** The one whose successor is not LIVE yet. */
  #starting(service: string): OpenEntry | undefined {
    const newest = this.#of(service).at(-1);
    return newest?.liveMs === undefined ? newest : undefined;
  }
}

function keyOf(service: string, handoff: number | undefined): string {
  return `${service} ${handoff ?? "join"}`;
}

/** Clocks count in nanoseconds; a tenth of a millisecond is what a reader can use. */
function tenths(ms: number): number {
  return Math.round(ms * 10) / 10;
}
