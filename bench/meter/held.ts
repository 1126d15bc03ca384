// Owns: the life of a held client: when it asks, when it opens a new connection, and what becomes of a failure.
// Must not: know a protocol, retry what was lost, or decide whose fault a loss is.
import { type FailureKind, HttpFailure } from "../../tests/support/http_client.ts";
import type { Loss, LossKind, Tally } from "./tally.ts";

/** Where everything is. */
export interface Site {
  readonly hostname: string;
  readonly http: number;
  readonly tls: number;
  readonly quic: number;
  readonly tcp: number;
  readonly udp: number;
  /** PEM of the authority behind `tls` and `quic`. */
  readonly authority: string;
  readonly authorityPath: string;
}

/** What is being done to the clients; the scenario changes it, each client reads it. */
export interface Phase {
  /** The server is to stop for good: finish what is held, open nothing new. */
  leaving: boolean;
  /** The measurement is over: give up. */
  readonly over: AbortSignal;
}

export interface Desk {
  readonly site: Site;
  readonly tally: Tally;
  readonly phase: Phase;
  readonly everyMs: number;
  /** How long streams and sessions are: less than a drained Envoy lives. */
  readonly sessionMs: number;
}

/** One connection, asked one thing after the other. */
export interface Line {
  /** Resolves when the whole and right answer is there. */
  ask(): Promise<void>;
  /** Why the next question needs a new connection. */
  readonly gone: "told" | "idle" | undefined;
  close(): void;
}

/** The question was sent to one who had said that he takes no more: to be asked elsewhere, and no loss. */
export class ToldToGo extends Error {}

export const TIMEOUT_MS = 5_000;
/** A server that is down must not be asked in a tight loop. */
const AFTER_LOSS_MS = 20;

export interface Asking {
  /** The client's own end of a connection. Default: never. */
  readonly sessionMs?: number;
  /** Goes on with new connections while the server leaves, until the first one is refused. */
  readonly staysOn?: boolean;
}

export async function keepAsking(desk: Desk, open: () => Promise<Line>, asking: Asking = {}): Promise<void> {
  const { tally, phase } = desk;
  const { sessionMs = Infinity, staysOn = false } = asking;
  let line: Line | undefined;
  let openedAtMs = 0;
  let lastAtMs: number | undefined;
  const drop = () => {
    line?.close();
    line = undefined;
    if (lastAtMs !== undefined) tally.session({ openedAtMs, lastAtMs });
    lastAtMs = undefined;
  };
  let dueAtMs = now() + Math.random() * desk.everyMs;
  while (true) {
    await sleep(dueAtMs - now(), phase.over);
    if (phase.over.aborted) break;
    // What was missed is not made up for: an outage must not end in a flood.
    dueAtMs = Math.max(dueAtMs + desk.everyMs, now());
    if (line?.gone === "told") tally.toldToGo();
    if (line?.gone === "idle") tally.idleClosed();
    if (line?.gone !== undefined || now() - openedAtMs > sessionMs) drop();
    if (line === undefined && phase.leaving && !staysOn) break;
    const sentAtMs = now();
    tally.sent();
    try {
      if (line === undefined) {
        openedAtMs = sentAtMs;
        line = await open();
      }
      await line.ask();
      lastAtMs = now();
      tally.answered(lastAtMs - sentAtMs, lastAtMs);
      if (sessionMs === 0) drop();
    } catch (error) {
      drop();
      if (error instanceof ToldToGo) {
        tally.unsent();
        tally.toldToGo();
        dueAtMs = now();
        continue;
      }
      const loss = lossOf(error, sentAtMs);
      tally.lost(loss);
      if (phase.leaving && loss.kind === "refused") break;
      dueAtMs = Math.max(dueAtMs, now() + AFTER_LOSS_MS);
    }
  }
  drop();
}

const KINDS: Readonly<Record<FailureKind, LossKind>> = {
  refused: "refused",
  reset: "reset",
  closed_early: "reset",
  timeout: "unanswered",
  bad_status: "wrong",
  malformed: "wrong",
  local: "local",
};

export function lossOf(error: unknown, sentAtMs: number): Loss {
  const failure = HttpFailure.of(error, "exchange");
  return { kind: KINDS[failure.kind], sentAtMs, atMs: now(), detail: failure.message };
}

/** Unix ms, monotonic within the process and finer than a millisecond: comparable with what other processes write. */
export function now(): number {
  return performance.timeOrigin + performance.now();
}

export function sleep(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) return resolve();
    const wake = () => {
      clearTimeout(timer);
      signal.removeEventListener("abort", wake);
      resolve();
    };
    const timer = setTimeout(wake, Math.max(0, ms));
    signal.addEventListener("abort", wake);
  });
}

/** Ends a wait that nothing else would end. */
export async function inTime<T>(what: string, promise: Promise<T>, ms: number, giveUp: () => void): Promise<T> {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new HttpFailure("timeout", `${what}: nothing in ${ms} ms`)), ms);
  });
  promise.catch(() => {});
  try {
    return await Promise.race([promise, late]);
  } catch (error) {
    giveUp();
    throw error;
  } finally {
    clearTimeout(timer);
  }
}
