// Owns: what is known of Envoys that may outlive the supervisor that started them, as data. Must not: decide by it.

/** The Envoy that was started last on this base id, while it is not LIVE: nobody else may start one beside it, or clear its flag. */
export interface Unfinished {
  readonly epoch: number;
  readonly pid: number;
  readonly ageMs: number;
  /** Its supervisor is gone: nobody else ends it when it takes too long. */
  readonly isOrphan: boolean;
}

/** A living Envoy whose supervisor is gone. */
export interface Orphan {
  readonly epoch: number;
  readonly pid: number;
}

/** What a look finds where Envoys outlive their supervisors. */
export interface Launches {
  readonly unfinished?: Unfinished;
  /** Newest first; empty as long as a living supervisor has any Envoy of this base id, which is then in charge of the others. */
  readonly orphans: readonly Orphan[];
}
