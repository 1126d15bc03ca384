// Owns: epochd's log: which lines are written, and a bounded queue of asynchronous writes.
// Must not: block anything, ever: a stderr that nobody reads costs lines, not time.

import { describe } from "./describe.ts";
import { formatLine, type LineOptions } from "./line.ts";
import type { RecordedFact } from "./record.ts";
import type { Level } from "./row.ts";
import type { ShellFact } from "./shell_fact.ts";

export interface Log {
  /** What happened to a service. */
  fact(record: RecordedFact): void;
  /** What happened to the supervisor. */
  shell(fact: ShellFact): void;
  /** From the next line on. */
  use(options: LineOptions & { readonly level: Level }): void;
  /** Since the start: lines that stderr took too slowly, or not at all. */
  droppedLines(): number;
  /** Resolves when all is written, or after `boundMs`. */
  flush(boundMs: number): Promise<void>;
}

export interface LogOptions extends LineOptions {
  readonly level: Level;
  readonly wallMs?: () => number;
  /** Resolves to how many bytes were taken, as `Deno.stderr.write`. */
  readonly write?: (bytes: Uint8Array) => Promise<number>;
  readonly queueBytes?: number;
}

const ranks = { debug: 0, info: 1, warn: 2, error: 3 } as const;
const defaultQueueBytes = 1_048_576;

/** What `auto` means on this stderr. */
export function lineOptions(format: "auto" | "text" | "json", terminal: boolean, noColour: boolean): LineOptions {
  const form = format === "auto" ? (terminal ? "text" : "json") : format;
  return { form, colour: form === "text" && terminal && !noColour };
}

export function openLog(options: LogOptions): Log {
  let { level, form, colour } = options;
  const wallMs = options.wallMs ?? Date.now;
  const queue = new WriteQueue(
    options.write ?? ((bytes) => Deno.stderr.write(bytes)),
    options.queueBytes ?? defaultQueueBytes,
    (lines) => {
      const kind = "log_lines_dropped";
      return formatLine({ wallMs: wallMs(), event: kind, described: describe({ kind, lines }) }, { form, colour });
    },
  );

  function put(fact: RecordedFact["fact"] | ShellFact, atMs: number, service?: string): void {
    const described = describe(fact);
    if (ranks[described.level] < ranks[level]) return;
    const line = { wallMs: atMs, event: fact.kind, described, ...(service === undefined ? {} : { service }) };
    queue.put(formatLine(line, { form, colour }));
  }

  return {
    fact: (record) => put(record.fact, record.wallMs, record.service),
    shell: (fact) => put(fact, wallMs()),
    use: (next) => void ({ level, form, colour } = next),
    droppedLines: () => queue.droppedLines,
    flush: (boundMs) => queue.flush(boundMs),
  };
}

const encoder = new TextEncoder();

/** One write at a time; what does not fit is counted, and told as soon as there is room again. */
class WriteQueue {
  readonly #write: (bytes: Uint8Array) => Promise<number>;
  readonly #limitBytes: number;
  readonly #tellDropped: (lines: number) => string;
  #waiting: Uint8Array[] = [];
  #waitingBytes = 0;
  #dropped = 0;
  droppedLines = 0;
  #idle: Promise<void> | undefined;

  constructor(
    write: (bytes: Uint8Array) => Promise<number>,
    limitBytes: number,
    tellDropped: (lines: number) => string,
  ) {
    this.#write = write;
    this.#limitBytes = limitBytes;
    this.#tellDropped = tellDropped;
  }

  put(line: string): void {
    const bytes = encoder.encode(line);
    if (this.#waitingBytes + bytes.length > this.#limitBytes) {
      this.#dropped++;
      this.droppedLines++;
      return;
    }
    this.#waiting.push(bytes);
    this.#waitingBytes += bytes.length;
    this.#idle ??= this.#drain();
  }

  async flush(boundMs: number): Promise<void> {
    if (this.#idle === undefined) return;
    let timer: ReturnType<typeof setTimeout> | undefined;
    const bound = new Promise<void>((resolve) => timer = setTimeout(resolve, boundMs));
    await Promise.race([this.#idle, bound]);
    clearTimeout(timer);
  }

  async #drain(): Promise<void> {
    let ok = true;
    while (this.#waiting.length > 0 || (ok && this.#dropped > 0)) {
      const lines = this.#waiting;
      const dropped = this.#dropped;
      if (dropped > 0) lines.push(encoder.encode(this.#tellDropped(dropped)));
      this.#waiting = [];
      this.#dropped = 0;
      ok = await this.#writeAll(joined(lines));
      // A stderr that is gone may come back (a log shipper that restarts): what it missed is told then.
      if (!ok) {
        const own = lines.length - (dropped > 0 ? 1 : 0);
        this.#dropped += own + dropped;
        this.droppedLines += own;
      }
      // Only now: what is being written takes up room too, so that a blocked stderr holds one queue, not two.
      this.#waitingBytes = this.#waiting.reduce((sum, bytes) => sum + bytes.length, 0);
    }
    this.#idle = undefined;
  }

  async #writeAll(bytes: Uint8Array): Promise<boolean> {
    try {
      for (let done = 0; done < bytes.length;) {
        const taken = await this.#write(bytes.subarray(done));
        if (taken <= 0) return false;
        done += taken;
      }
      return true;
    } catch {
      return false;
    }
  }
}

function joined(parts: readonly Uint8Array[]): Uint8Array {
  const whole = new Uint8Array(parts.reduce((sum, part) => sum + part.length, 0));
  let at = 0;
  for (const part of parts) {
    whole.set(part, at);
    at += part.length;
  }
  return whole;
}
