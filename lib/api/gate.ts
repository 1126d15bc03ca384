// Owns: how many connections one listener serves at a time, and their end. Must not: listen, or know who asks.

import { type Connection, type ConnectionLimits, type Handler, serveConnection } from "./connection.ts";
import { problemResponse } from "./problem_json.ts";

export interface GateLimits extends ConnectionLimits {
  readonly connections: number;
}

/** Those beyond the limit get a short answer, and less patience. */
const shortMs = 500;
const lastAnswersMs = 500;

export class Gate {
  readonly #open = new Map<Connection, Promise<void>>();
  readonly #closing = new AbortController();

  constructor(readonly limits: GateLimits) {}

  get isClosing(): boolean {
    return this.#closing.signal.aborted;
  }

  /** Neither answered nor kept: for what has not even shaken hands. */
  get isFull(): boolean {
    return this.#open.size >= 2 * this.limits.connections;
  }

  serve(connection: Connection, handler: Handler): void {
    if (this.isFull || this.isClosing) return closeQuietly(connection);
    const isOver = this.#open.size >= this.limits.connections;
    const patience = isOver ? { ...this.limits, requestMs: shortMs, writeMs: shortMs } : this.limits;
    const done = serveConnection(connection, isOver ? tooMany : handler, patience, this.#closing.signal);
    this.#open.set(connection, done.finally(() => this.#open.delete(connection)));
  }

  /** Ends streams and waits, and gives their last answers a moment. */
  async close(): Promise<void> {
    this.#closing.abort();
    let timer: ReturnType<typeof setTimeout> | undefined;
    const late = new Promise<void>((resolve) => timer = setTimeout(resolve, lastAnswersMs));
    await Promise.race([Promise.all(this.#open.values()), late]);
    clearTimeout(timer);
    for (const connection of this.#open.keys()) closeQuietly(connection);
  }
}

function tooMany(): Response {
  return problemResponse({ status: 503, name: "too_many_connections", detail: "too many connections, try again" });
}

function closeQuietly(connection: Connection): void {
  try {
    connection.close();
  } catch { /* Closed meanwhile. */ }
}
