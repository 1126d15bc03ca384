// Owns: `handoffs.jsonl` in a state directory: one line a handoff, in order, rotated by size. Must not: let a full disk cost more than
// lines.

import { join } from "node:path";
import type { LedgerEntry } from "./ledger.ts";

export interface LedgerFileOptions {
  readonly directory: string;
  /** A full file becomes `handoffs.1.jsonl`; the one before it goes. */
  readonly maxBytes?: number;
  /** Told once, and again after a line could be written. */
  readonly problem: (problem: string) => void;
}

/** About 350 handoffs: all of it is read for each look at the history. */
const DEFAULT_MAX_BYTES = 262_144;

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
    return texts.flatMap((text) => text.split("\n")).flatMap(parseLine).slice(-limit).reverse();
  }

  async #write(entry: LedgerEntry): Promise<void> {
    try {
      const size = await Deno.stat(this.#path).then((info) => info.size, () => 0);
      if (size >= (this.options.maxBytes ?? DEFAULT_MAX_BYTES)) await Deno.rename(this.#path, this.#older);
      // What a crash cut off must not take this line along.
      const gap = size > 0 && !await endsWithLine(this.#path) ? "\n" : "";
      await Deno.writeTextFile(this.#path, `${gap}${JSON.stringify(entry)}\n`, { append: true, mode: 0o600 });
      this.#told = false;
    } catch (error) {
      if (this.#told) return;
      this.#told = true;
      this.options.problem(`append to ${this.#path}: ${error instanceof Error ? error.message : error}`);
    }
  }
}

async function endsWithLine(path: string): Promise<boolean> {
  try {
    using file = await Deno.open(path);
    await file.seek(-1, Deno.SeekMode.End);
    const last = new Uint8Array(1);
    return await file.read(last) !== 1 || last[0] === 10;
  } catch {
    return true;
  }
}

function parseLine(line: string): LedgerEntry[] {
  try {
    const value: unknown = line === "" ? undefined : JSON.parse(line);
    return typeof value === "object" && value !== null && "service" in value ? [value as LedgerEntry] : [];
  } catch {
    return [];
  }
}
