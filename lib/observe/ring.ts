// Owns: the last records, bounded, for readers that come late or come back. Must not: grow.

import type { RecordedFact } from "./record.ts";

export class Ring {
  readonly #slots: RecordedFact[] = [];
  #next = 0;

  constructor(readonly capacity: number) {
    if (!Number.isInteger(capacity) || capacity < 1) throw new Error(`a ring needs a capacity, not ${capacity}`);
  }

  push(record: RecordedFact): void {
    this.#slots[this.#next] = record;
    this.#next = (this.#next + 1) % this.capacity;
  }

  /** Oldest first. */
  all(): readonly RecordedFact[] {
    const full = this.#slots.length === this.capacity;
    return full ? [...this.#slots.slice(this.#next), ...this.#slots.slice(0, this.#next)] : [...this.#slots];
  }

  after(seq: number): readonly RecordedFact[] {
    return this.all().filter((record) => record.seq > seq);
  }
}
