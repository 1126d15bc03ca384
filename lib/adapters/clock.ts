// Owns: the time of this machine. Must not: be used where an event carries its own time.

import type { Clock } from "../runtime/ports.ts";

/** setTimeout takes a signed 32-bit number of milliseconds and fires at once for more. */
const MAX_TIMEOUT_MS = 2_147_483_647;

export class SystemClock implements Clock {
  /** CLOCK_MONOTONIC since the start of this process: a jump of the wall clock doesn't touch it. */
  nowMs(): number {
    return performance.now();
  }

  wallMs(): number {
    return Date.now();
  }

  after(afterMs: number, fire: () => void): () => void {
    const dueMs = this.nowMs() + afterMs;
    let timer: ReturnType<typeof setTimeout>;
    const wait = () => {
      const leftMs = dueMs - this.nowMs();
      timer = leftMs > MAX_TIMEOUT_MS ? setTimeout(wait, MAX_TIMEOUT_MS) : setTimeout(fire, Math.max(0, leftMs));
    };
    wait();
    return () => clearTimeout(timer);
  }
}
