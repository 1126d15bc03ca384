// Owns: how long this process was kept from running at a time. Must not: judge it.

const EVERY_MS = 50;
/** What failed because of a standstill is told within this time of its end. */
const RECENT_MS = 500;

export interface Standstills extends Disposable {
  /** The longest that ended just now, or lasts. */
  recentMs(): number;
  longestMs(): number;
}

export function watchStandstills(now: () => number = () => performance.now()): Standstills {
  let lastMs = now();
  let [longestMs, recentMs, recentAtMs] = [0, 0, -Infinity];
  const look = () => {
    const nowMs = now();
    const stoodMs = nowMs - lastMs;
    lastMs = nowMs;
    if (stoodMs > longestMs) longestMs = stoodMs;
    if (stoodMs >= recentMs || nowMs - recentAtMs > RECENT_MS) [recentMs, recentAtMs] = [stoodMs, nowMs];
  };
  const timer = setInterval(look, EVERY_MS);
  return {
    recentMs() {
      look();
      return recentMs;
    },
    longestMs: () => longestMs,
    [Symbol.dispose]: () => clearInterval(timer),
  };
}
