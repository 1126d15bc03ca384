// Owns: keeping the ledger while services work: who is behind a handoff, the connections of its predecessor, and the line at its end.
// Must not: hold anything up: what can't be asked in time is left out.

import type { TriggerSource } from "../core/event.ts";
import { LedgerBook, type LedgerEntry, type OpenEntry } from "./ledger.ts";
import { LedgerFile } from "./ledger_file.ts";
import type { Census } from "./observed.ts";
import type { RecordedFact } from "./record.ts";

export interface LedgerKeeperOptions {
  readonly pid: number;
  /** Where the ledger of a service lies. */
  readonly directoryOf: (service: string) => string | undefined;
  /** Asks Envoy, bounded. */
  readonly census: (service: string) => Promise<Census | undefined>;
  readonly problem: (problem: string) => void;
  /** Of each entry that is written. */
  readonly written?: (entry: LedgerEntry) => void;
  readonly pollMs?: number;
}

/** Each looks at a predecessor's connections, so that the last number before its end is known. */
const defaultPollMs = 2_000;
const mostCredits = 500;

const origins: Readonly<Record<TriggerSource | "join", string>> = {
  signal: "SIGHUP",
  bootstrap: "watched bootstrap",
  binary: "watched executable",
  config: "watched epochd.yaml",
  api: "API",
  push: "pushed executable",
  recovery: "epochd",
  rollback: "executable before",
  retry: "epochd",
  join: "start beside another supervisor",
};

export class LedgerKeeper {
  readonly #book = new LedgerBook();
  readonly #files = new Map<string, LedgerFile>();
  readonly #credits = new Map<string, string>();
  readonly #polls = new Map<OpenEntry, ReturnType<typeof setInterval>>();
  readonly #writing = new Set<Promise<void>>();

  constructor(private readonly options: LedgerKeeperOptions) {}

  readonly observe = (record: RecordedFact): void => {
    for (const { kind, entry } of this.#book.take(record)) {
      if (kind === "live") this.#watch(entry);
      else if (kind === "ended") this.#track(this.#write(entry));
    }
  };

  credit(request: string, who: string): void {
    this.#credits.set(request, who);
    if (this.#credits.size > mostCredits) this.#credits.delete(this.#credits.keys().next().value!);
  }

  /** Newest first; what is under way comes first. */
  async recent(services: readonly string[], limit: number): Promise<readonly LedgerEntry[]> {
    const kept = await Promise.all(services.map((service) => this.#fileOf(service)?.read(limit) ?? []));
    const past = kept.flat().sort((a, b) => a.beganAt < b.beganAt ? 1 : a.beganAt > b.beganAt ? -1 : 0);
    return [...this.#book.open().map((entry) => this.#credited(entry)), ...past].slice(0, limit);
  }

  /** What still drains is cut short; resolves when all lines are written. */
  async close(): Promise<void> {
    for (const entry of this.#book.cutShort()) this.#track(this.#write(entry));
    await Promise.all(this.#writing);
  }

  #watch(entry: OpenEntry): void {
    void this.#look(entry).then((draining) => {
      if (draining !== undefined) entry.connectionsAtDrain = draining;
    });
    this.#polls.set(entry, setInterval(() => void this.#look(entry), this.options.pollMs ?? defaultPollMs));
  }

  async #look(entry: OpenEntry): Promise<number | undefined> {
    const draining = (await this.options.census(entry.service).catch(() => undefined))?.draining;
    if (draining !== undefined && entry.outcome === "under_way") entry.connectionsAtEnd = draining;
    return draining;
  }

  async #write(entry: LedgerEntry): Promise<void> {
    const { connectionsAtEnd } = entry;
    const polls = this.#polls.get(entry);
    clearInterval(polls);
    this.#polls.delete(entry);
    // Envoy keeps the number of the parent it has ended until its next flush: the last there is.
    const last = entry.outcome === "done" ? await this.options.census(entry.service).catch(() => undefined) : undefined;
    const atEnd = last?.draining !== undefined && last.draining > 0 ? last.draining : connectionsAtEnd;
    const { pid, written } = this.options;
    const whole = { ...this.#credited(entry), ...(atEnd === undefined ? {} : { connectionsAtEnd: atEnd }), pid };
    written?.(whole);
    await this.#fileOf(entry.service)?.append(whole);
  }

  #credited(entry: LedgerEntry): LedgerEntry {
    const named = entry.requests.map((request) => this.#credits.get(request)).filter((who) => who !== undefined);
    return { ...entry, who: named.length > 0 ? [...new Set(named)].join(", ") : origins[entry.source] };
  }

  #fileOf(service: string): LedgerFile | undefined {
    const directory = this.options.directoryOf(service);
    if (directory === undefined) return undefined;
    const known = this.#files.get(directory);
    if (known !== undefined) return known;
    const file = new LedgerFile({ directory, problem: this.options.problem });
    this.#files.set(directory, file);
    return file;
  }

  #track(work: Promise<void>): void {
    this.#writing.add(work);
    void work.finally(() => this.#writing.delete(work));
  }
}
