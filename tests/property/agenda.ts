// Owns: virtual time: what happens when, in order. Must not: know what happens.

interface Entry {
  readonly atMs: number;
  readonly act: () => void;
}

export class Agenda {
  nowMs = 1_000;
  /** Sorted by time, then by when it was planned. */
  readonly #entries: Entry[] = [];

  get isEmpty(): boolean {
    return this.#entries.length === 0;
  }

  at(afterMs: number, act: () => void): void {
    const entry = { atMs: this.nowMs + afterMs, act };
    let low = 0;
    let high = this.#entries.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if (this.#entries[middle]!.atMs <= entry.atMs) low = middle + 1;
      else high = middle;
    }
    this.#entries.splice(low, 0, entry);
  }

  /** False when nothing is left before `untilMs`. */
  next(untilMs: number): boolean {
    const first = this.#entries[0];
    if (first === undefined || first.atMs > untilMs) {
      this.nowMs = Math.max(this.nowMs, untilMs);
      return false;
    }
    this.#entries.shift();
    this.nowMs = first.atMs;
    first.act();
    return true;
  }
}
