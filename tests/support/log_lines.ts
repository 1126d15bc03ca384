// Owns: telling epochd's own log lines (JSON objects with an event name) from Envoy's text on the same stderr.
// Must not interpret events.
import { until } from "./until.ts";

export interface LogEvent {
  readonly event: string;
  /** When this process read the line, Unix ms. */
  readonly receivedAtMs: number;
  readonly [field: string]: unknown;
}

export interface WaitOptions {
  readonly where?: (event: LogEvent) => boolean;
  /** Only events from this index of `events` on; see `mark`. */
  readonly since?: number;
  readonly timeoutMs?: number;
}

/** How long after the end of the process its last lines may take through the pipe. */
const LAST_LINES_MS = 200;

export class LogLines {
  readonly events: LogEvent[] = [];
  /** Everything that is not epochd's. */
  readonly envoyLines: string[] = [];
  /** All lines as they came, for error messages. */
  readonly lines: string[] = [];
  readonly #listeners: ((event: LogEvent) => void)[] = [];
  #ended: { readonly why: string; readonly atMs: number } | undefined;

  /** Reads until the stream ends. */
  async collect(stream: ReadableStream<Uint8Array>): Promise<void> {
    let rest = "";
    for await (const text of stream.pipeThrough(new TextDecoderStream())) {
      const lines = (rest + text).split("\n");
      rest = lines.pop() ?? "";
      for (const line of lines) this.#add(line);
    }
    if (rest !== "") this.#add(rest);
  }

  /** Soon waiting is in vain: `why` is told then, instead of after the timeout. Lines under way still count. */
  end(why: string): void {
    this.#ended = { why, atMs: performance.now() };
  }

  /** Calls back for every event from now on, as it is read. */
  onEvent(callback: (event: LogEvent) => void): void {
    this.#listeners.push(callback);
  }

  mark(): number {
    return this.events.length;
  }

  async waitFor(name: string, options: WaitOptions = {}): Promise<LogEvent> {
    const { where = () => true, since = 0, timeoutMs = 20_000 } = options;
    const find = () => this.events.slice(since).find((event) => event.event === name && where(event));
    const found = await until(
      `epochd logs ${name}`,
      () => find() ?? (this.#isOver() ? "ended" as const : undefined),
      { timeoutMs, everyMs: 10 },
    ).catch((error: Error) => {
      throw new Error(`${error.message}\n${this.tail()}`);
    });
    if (found === "ended") throw new Error(`no ${name}: ${this.#ended?.why}\n${this.tail()}`);
    return found;
  }

  /** For runs of hours: all but the last `kept` lines and events go, and what `mark` gave before is worth nothing. */
  forget(kept: number): void {
    for (const list of [this.events, this.envoyLines, this.lines]) list.splice(0, Math.max(0, list.length - kept));
  }

  tail(count = 60): string {
    return this.lines.slice(-count).join("\n");
  }

  #isOver(): boolean {
    return this.#ended !== undefined && performance.now() - this.#ended.atMs > LAST_LINES_MS;
  }

  #add(line: string): void {
    this.lines.push(line);
    const event = parseEvent(line);
    if (event === undefined) this.envoyLines.push(line);
    else {
      const received = { ...event, receivedAtMs: Date.now() };
      this.events.push(received);
      for (const listener of this.#listeners) listener(received);
    }
  }
}

function parseEvent(line: string): { event: string } | undefined {
  if (!line.startsWith("{")) return undefined;
  try {
    const value = JSON.parse(line);
    return typeof value?.event === "string" ? value : undefined;
  } catch {
    return undefined;
  }
}
