// Owns: what the held clients of one protocol have met, counted. Must not: send anything, read a clock, or decide whose fault a loss is.
import { LatencyHistogram, type LatencySummary } from "../../tests/support/latency.ts";

/** How a request, a message or a stream can be lost. */
export type LossKind =
  /** The other side reset the connection, or ended it before the answer was complete. */
  | "reset"
  /** Nobody listens. */
  | "refused"
  /** No answer in time. */
  | "unanswered"
  /** An answer, but not the one that was to come: a 503, a body of something else. */
  | "wrong"
  /** The meter's own machine failed (no ports, no descriptors): says nothing about the server. */
  | "local";

export interface Loss {
  readonly kind: LossKind;
  /** When what was lost had begun, and when that was seen; Unix ms. */
  readonly sentAtMs: number;
  readonly atMs: number;
  readonly detail: string;
}

/** One connection: from its opening to its last good answer. Unix ms. */
export interface Session {
  readonly openedAtMs: number;
  readonly lastAtMs: number;
}

export interface Counts {
  readonly sent: number;
  readonly answered: number;
  /** New connections because the server said so (GOAWAY, `connection: close`): no loss. */
  readonly toldToGo: number;
  /** New connections because the server ended an idle one without a word: no loss, but a request may cross it. */
  readonly idleClosed: number;
  readonly losses: readonly Loss[];
  readonly sessions: readonly Session[];
  readonly latency: LatencySummary;
  readonly longestGapMs: number;
}

export class Tally {
  readonly #latency = new LatencyHistogram();
  readonly #losses: Loss[] = [];
  readonly #sessions: Session[] = [];
  #sent = 0;
  #answered = 0;
  #toldToGo = 0;
  #idleClosed = 0;
  #longestGapMs = 0;
  /** Gaps are counted from the first answer on: how long clients take to begin says nothing about the server. */
  #lastGoodMs: number | undefined;
  #ended = false;

  sent(): void {
    this.#sent++;
  }

  /** Taken back: the client gave it up itself, or was told to send it elsewhere before anybody had looked at it. */
  unsent(): void {
    this.#sent--;
  }

  answered(tookMs: number, atMs: number): void {
    this.#answered++;
    this.piece(tookMs, atMs);
  }

  /** A part of a stream that is not yet complete: it ends a gap and may be slow, but answers nothing. */
  piece(tookMs: number, atMs: number): void {
    this.#latency.add(tookMs);
    this.#closeGap(atMs);
  }

  toldToGo(): void {
    this.#toldToGo++;
  }

  idleClosed(): void {
    this.#idleClosed++;
  }

  session(session: Session): void {
    this.#sessions.push(session);
  }

  lost(loss: Loss): void {
    this.#losses.push(loss);
  }

  /** Ends the time that gaps are counted over. */
  finish(atMs: number): void {
    if (!this.#ended && this.#lastGoodMs !== undefined) this.#closeGap(atMs);
    this.#ended = true;
  }

  counts(): Counts {
    return {
      sent: this.#sent,
      answered: this.#answered,
      toldToGo: this.#toldToGo,
      idleClosed: this.#idleClosed,
      losses: [...this.#losses],
      sessions: [...this.#sessions],
      latency: this.#latency.summary(),
      longestGapMs: Math.round(this.#longestGapMs),
    };
  }

  #closeGap(atMs: number): void {
    const lastMs = this.#lastGoodMs ?? atMs;
    this.#longestGapMs = Math.max(this.#longestGapMs, atMs - lastMs);
    this.#lastGoodMs = Math.max(lastMs, atMs);
  }
}
