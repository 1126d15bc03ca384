// Owns: the last configurations that were accepted, on disk: who, when, why, and what they said. Must not: decide what is accepted.

import { join } from "node:path";
import { reason } from "../adapters/content.ts";
import type { Sections } from "./load.ts";

/** Where a configuration came from. */
export type ConfigSource = "start" | "signal" | "file" | "reload" | "put" | "patch" | "rollback";

export interface HistoryEntry {
  /** Counts up, also over supervisors that share the state directory. */
  readonly id: number;
  readonly digest: string;
  /** Unix milliseconds. */
  readonly wallMs: number;
  /** For example `unix socket`, `key ci`, `SIGHUP`. */
  readonly who: string;
  readonly source: ConfigSource;
  /** What differed from the one before: `services.edge.drain_time 30s to 20s`. */
  readonly why: string;
  /** As it was asked for, without flags and defaults. */
  readonly document: Sections;
}

export const keptEntries = 20;
const fileName = "config-history.json";

export class ConfigHistory {
  readonly #path: string;
  #entries: readonly HistoryEntry[] | undefined;
  #turn: Promise<unknown> = Promise.resolve();

  constructor(stateDir: string) {
    this.#path = join(stateDir, fileName);
  }

  /** Newest first. */
  entries(): Promise<readonly HistoryEntry[]> {
    return this.#inTurn(() => this.#read());
  }

  /** Resolves to the problem, or undefined; the entry counts in memory all the same. */
  add(entry: Omit<HistoryEntry, "id">): Promise<string | undefined> {
    return this.#inTurn(async () => {
      const before = await this.#read();
      // What runs now is at the top already: a supervisor that starts again adds nothing.
      if (entry.source === "start" && before[0]?.digest === entry.digest) return undefined;
      this.#entries = [{ id: (before[0]?.id ?? 0) + 1, ...entry }, ...before].slice(0, keptEntries);
      return await this.#write(this.#entries);
    });
  }

  #inTurn<T>(act: () => Promise<T>): Promise<T> {
    const result = this.#turn.then(act);
    this.#turn = result.catch(() => {});
    return result;
  }

  async #read(): Promise<readonly HistoryEntry[]> {
    if (this.#entries !== undefined) return this.#entries;
    try {
      const value: unknown = JSON.parse(await Deno.readTextFile(this.#path));
      this.#entries = Array.isArray(value) ? value.filter(isEntry).slice(0, keptEntries) : [];
    } catch {
      // None yet, or one that a power failure left: history is worth no refusal to run.
      this.#entries = [];
    }
    return this.#entries;
  }

  async #write(entries: readonly HistoryEntry[]): Promise<string | undefined> {
    const temporary = `${this.#path}.${Deno.pid}.tmp`;
    try {
      await Deno.remove(temporary).catch(() => {});
      {
        using file = await Deno.open(temporary, { write: true, createNew: true, mode: 0o600 });
        const bytes = new TextEncoder().encode(`${JSON.stringify(entries, undefined, 1)}\n`);
        for (let done = 0; done < bytes.length;) done += await file.write(bytes.subarray(done));
        await file.sync();
      }
      await Deno.rename(temporary, this.#path);
      return undefined;
    } catch (error) {
      await Deno.remove(temporary).catch(() => {});
      return `write ${this.#path}: ${reason(error)}`;
    }
  }
}

function isEntry(value: unknown): value is HistoryEntry {
  if (typeof value !== "object" || value === null) return false;
  const { id, digest, wallMs, document } = value as Partial<HistoryEntry>;
  return typeof id === "number" && typeof digest === "string" && typeof wallMs === "number" &&
    typeof document === "object" && document !== null;
}
