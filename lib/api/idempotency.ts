// Owns: Idempotency-Key: the same key asks for nothing new and gets the outcome of what it asked for first.
// Must not: keep answers (facts tell them again), or grow.

export interface Remembered {
  /** What was asked; another one with the same key is a mistake. */
  readonly asked: string;
  readonly request: string;
  /** The newest record before it was asked. */
  readonly afterSeq: number;
}

const mostKeys = 1_000;
const longestKey = 255;

export class IdempotencyKeys {
  readonly #keys = new Map<string, Remembered>();

  /** Undefined: a new key, or none. */
  find(key: string | null): Remembered | undefined {
    return key === null ? undefined : this.#keys.get(key);
  }

  remember(key: string | null, remembered: Remembered): void {
    if (key === null) return;
    this.#keys.set(key, remembered);
    if (this.#keys.size > mostKeys) this.#keys.delete(this.#keys.keys().next().value!);
  }

  /** What is wrong with it. */
  static check(key: string | null): string | undefined {
    if (key === null || (key.length > 0 && key.length <= longestKey)) return undefined;
    return `Idempotency-Key: expected 1 to ${longestKey} characters`;
  }
}
