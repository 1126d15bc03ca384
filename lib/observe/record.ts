// Owns: the record of one fact of one step, from which log, metrics, ledger and event stream are views.
// Must not: format, filter or write.

import type { Fact } from "../core/fact.ts";

export interface RecordedFact {
  /** Counts up by one a fact, over all services of this supervisor. */
  readonly seq: number;
  readonly service: string;
  /** Unix milliseconds. */
  readonly wallMs: number;
  readonly fact: Fact;
}

export type Observer = (record: RecordedFact) => void;
