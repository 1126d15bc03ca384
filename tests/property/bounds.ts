// Owns: how long things may take at most, computed from the settings. Must not: be looser than it has to.

import { ADMIN_CHECK_MS, BACKOFF_MAX_MS, KILL_AFTER_MS, PREDECESSOR_MARGIN_MS } from "../../lib/core/bounds.ts";
import type { Settings } from "../../lib/core/settings.ts";

/** An answer, an exit or a repair, with all its latencies. */
const ANSWER_MS = 2_000;

/** Question timeout of the admin client. */
export const QUESTION_MS = 1_000;

/** SIGTERM, SIGKILL, reaped. */
const ENDED_MS = KILL_AFTER_MS + ANSWER_MS;

/** From the stop to the end: the child, the drain, the predecessor by protocol, the newest. */
export function stopBoundMs(settings: Settings): number {
  const { preDrainDelayMs, drainTimeMs, parentShutdownTimeMs } = settings;
  const predecessorMs = parentShutdownTimeMs + 2 * PREDECESSOR_MARGIN_MS;
  return ENDED_MS + preDrainDelayMs + drainTimeMs + predecessorMs + 2 * ENDED_MS + ANSWER_MS;
}

/** One handoff, from the turn of its trigger to the reaped predecessor or to serving on. */
export function handoffBoundMs(settings: Settings): number {
  const { liveTimeoutMs, controlPlaneWaitMs, parentShutdownTimeMs } = settings;
  const madeMs = controlPlaneWaitMs + liveTimeoutMs + ENDED_MS + ADMIN_CHECK_MS + 3 * ANSWER_MS;
  return madeMs + parentShutdownTimeMs + 2 * PREDECESSOR_MARGIN_MS;
}

/** After this long without disturbance nothing is left to be done: waits, retries, recoveries, restarts are through. */
export function restBoundMs(settings: Settings): number {
  const waitsMs = settings.debounceMaxMs + settings.jitterMs + settings.watchdogMs;
  const retriesMs = settings.retryBackoffMs * 2 ** settings.retryLimit;
  return waitsMs + retriesMs + BACKOFF_MAX_MS + (settings.retryLimit + 6) * handoffBoundMs(settings);
}

/** A frozen newest epoch is noticed within the watchdog's time, or as soon as a question that it does not answer is over. */
export function hangBoundMs(settings: Settings): number {
  return Math.max(settings.watchdogMs, settings.watchdogMs / 3 + QUESTION_MS) + 100;
}
