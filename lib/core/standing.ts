// Owns: what is known of a stand-in between two events. Must not: decide about it; stand_in.ts does.

/** What answers an epoch in place of its predecessor, which died while it drained. */
export interface StandIn {
  readonly attempt: number;
  /** Whose place it takes. */
  readonly epoch: number;
  readonly sinceMs: number;
  /** When nobody needs it any more, whatever was heard of it. */
  readonly untilMs: number;
  readonly tries: number;
  /** Of an orphan's predecessor, which it may need no more: told of only where it did. */
  readonly isPrecaution?: true;
  readonly step:
    | { readonly kind: "starting" }
    | { readonly kind: "standing"; readonly pid: number; readonly sinceMs: number }
    /** Until it is tried again. */
    | { readonly kind: "pausing" }
    | { readonly kind: "ending" }
    /** Its successor will abort. */
    | { readonly kind: "given_up" };
}
