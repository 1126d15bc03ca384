// Owns: which failures are the bench's own, or promised, and so none of the supervisor. Must not: count.
import type { SeenFailure } from "../../tests/support/meter.ts";

export interface Times {
  readonly drainMs: number;
  readonly parentShutdownMs: number;
}

/** What ran out on this machine, on the client's side. */
const EXHAUSTED = /cannot assign requested address|too many open files|no buffer space|cannot allocate memory/i;

/**
 * Why a failed request does not count; undefined: it does. `standstillMs`: how long this process has just stood still.
 * From the end of the drain on every answer says `connection: close`. A keep-alive client that has asked nothing from then until
 * the parent shutdown time meets the close on the wire: only one that stood still has.
 */
export function requestExcuse(failure: SeenFailure, standstillMs: number, times: Times): string | undefined {
  const { kind, detail, client } = failure;
  if (kind === "local" && EXHAUSTED.test(detail)) return "this machine ran out of something";
  const mayBeIdleClose = client.startsWith("keep-") && (kind === "reset" || kind === "closed_early");
  if (mayBeIdleClose && standstillMs >= times.parentShutdownMs - times.drainMs) {
    return `the bench stood still for ${Math.round(standstillMs)} ms`;
  }
  return undefined;
}

/** Envoy ends what is still open at the parent shutdown time: a stream that a slow machine made that long was not promised more. */
export function streamExcuse(detail: string, lastedMs: number, times: Times): string | undefined {
  if (/^timeout/.test(detail) || lastedMs < times.parentShutdownMs) return undefined;
  return `lasted ${Math.round(lastedMs)} ms, longer than the parent shutdown time`;
}
