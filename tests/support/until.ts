// Owns: waiting for a fact by polling it. Must not know any fact itself, and must not be used to pass time.

export interface UntilOptions {
  /** Generous on purpose: the deadline is there to end a broken test, not to measure. */
  readonly timeoutMs?: number;
  readonly everyMs?: number;
}

const PENDING = Symbol("pending");

/**
 * Polls `fn` until it gives something truthy and returns that. An exception counts as "not yet" (a port that nobody
 * listens on throws until somebody does), and so is a call that never comes back: the deadline holds for it too.
 */
export async function until<T>(
  what: string,
  fn: () => T | Promise<T>,
  { timeoutMs = 20_000, everyMs = 20 }: UntilOptions = {},
): Promise<Exclude<T, false | null | undefined | 0 | "">> {
  const startMs = performance.now();
  let deadlineTimer: ReturnType<typeof setTimeout> | undefined;
  const deadline = new Promise<typeof PENDING>((resolve) => {
    deadlineTimer = setTimeout(() => resolve(PENDING), timeoutMs);
  });
  let last = "nothing yet, the first look has not come back";
  try {
    while (true) {
      let seen: T | typeof PENDING;
      try {
        seen = await Promise.race([Promise.resolve(fn()), deadline]);
        if (seen !== PENDING) last = describe(seen);
      } catch (error) {
        seen = undefined as T;
        last = String(error);
      }
      if (seen !== PENDING && seen) return seen as Exclude<T, false | null | undefined | 0 | "">;
      if (seen === PENDING || performance.now() - startMs >= timeoutMs) {
        throw new Error(`waited ${timeoutMs} ms in vain until ${what}; last seen: ${last}`);
      }
      await pause(everyMs);
    }
  } finally {
    clearTimeout(deadlineTimer);
  }
}

/** Waits for a promise, but not for ever; the error says what was waited for. */
export async function within<T>(what: string, promise: Promise<T>, timeoutMs = 20_000): Promise<T> {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error(`waited ${timeoutMs} ms in vain for ${what}`)), timeoutMs);
  });
  try {
    return await Promise.race([promise, late]);
  } finally {
    clearTimeout(timer);
  }
}

export function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}

function describe(value: unknown): string {
  let text: string | undefined;
  try {
    text = typeof value === "string" ? value : JSON.stringify(value);
  } catch {
    text = undefined;
  }
  text ??= String(value);
  return text.length > 2000 ? `${text.slice(0, 2000)}... (${text.length} characters)` : text;
}
