// Owns: what traffic has met so far, and the report of it. Must not send anything.
import { type FailureKind, HttpFailure } from "./http_client.ts";
import { LatencyHistogram, type LatencySummary } from "./latency.ts";

export interface SeenFailure {
  /** Since the traffic started. */
  readonly atMs: number;
  readonly kind: FailureKind | "broken_stream";
  readonly detail: string;
  readonly client: string;
}

export interface TrafficReport {
  readonly durationMs: number;
  /** Begun and ended, well or not; streams are not among them. */
  readonly requests: number;
  readonly failed: number;
  readonly failuresByKind: Readonly<Record<string, number>>;
  /** The first twenty, of requests and streams. */
  readonly failures: readonly SeenFailure[];
  readonly streamsComplete: number;
  readonly streamsBroken: number;
  /** Still flowing as they should when the traffic was stopped. */
  readonly streamsAbandoned: number;
  /** New connections of keep-alive clients because the server said `connection: close`. */
  readonly reconnects: number;
  /** New connections of keep-alive clients because the server closed an idle connection without a word. */
  readonly idleCloses: number;
  /** The longest time without any good answer, the start and the end of the traffic included. */
  readonly longestGapMs: number;
  readonly longestGapAtMs: number;
  readonly latency: LatencySummary;
  /** In the order they were first seen: header `x-generation`. */
  readonly generations: readonly string[];
  /** Header `x-epoch` (RESTART_EPOCH of the Envoy that answered). */
  readonly epochs: readonly number[];
  /** From the admin, when the traffic was given one. */
  readonly envoyVersions: readonly string[];
}

const KEPT_FAILURES = 20;

export class Meter {
  readonly #startMs = performance.now();
  readonly #latency = new LatencyHistogram();
  readonly #failures: SeenFailure[] = [];
  readonly #failuresByKind: Record<string, number> = {};
  readonly #generations = new Set<string>();
  readonly #epochs = new Set<number>();
  readonly #versions = new Set<string>();
  #requests = 0;
  #failed = 0;
  #lastGoodMs = this.#startMs;
  #longestGapMs = 0;
  #longestGapAtMs = 0;
  #endMs: number | undefined;
  readonly counts = { streamsComplete: 0, streamsBroken: 0, streamsAbandoned: 0, reconnects: 0, idleCloses: 0 };

  constructor(readonly onFailure: (failure: SeenFailure) => void = () => {}) {}

  good(latencyMs: number, headers: ReadonlyMap<string, string>): void {
    this.#requests++;
    this.#latency.add(latencyMs);
    this.#closeGap(performance.now());
    const generation = headers.get("x-generation");
    if (generation !== undefined) this.#generations.add(generation);
    const epoch = headers.get("x-epoch");
    if (epoch !== undefined && /^\d+$/.test(epoch)) this.#epochs.add(Number(epoch));
  }

  failed(client: string, error: unknown): void {
    this.#requests++;
    this.#failed++;
    const failure = error instanceof HttpFailure ? error : new HttpFailure("local", String(error));
    this.#keep(failure.kind, failure.message, client);
  }

  streamBroken(client: string, detail: string): void {
    this.counts.streamsBroken++;
    this.#keep("broken_stream", detail, client);
  }

  sawVersion(version: string): void {
    this.#versions.add(version);
  }

  /** Ends the time that gaps and duration are counted over. */
  finish(): void {
    if (this.#endMs !== undefined) return;
    this.#endMs = performance.now();
    this.#closeGap(this.#endMs);
  }

  report(): TrafficReport {
    const nowMs = this.#endMs ?? performance.now();
    const openGapMs = nowMs - this.#lastGoodMs;
    const openIsLongest = openGapMs > this.#longestGapMs;
    return {
      durationMs: Math.round(nowMs - this.#startMs),
      requests: this.#requests,
      failed: this.#failed,
      failuresByKind: { ...this.#failuresByKind },
      failures: [...this.#failures],
      ...this.counts,
      longestGapMs: Math.round(openIsLongest ? openGapMs : this.#longestGapMs),
      longestGapAtMs: Math.round(openIsLongest ? this.#lastGoodMs - this.#startMs : this.#longestGapAtMs),
      latency: this.#latency.summary(),
      generations: [...this.#generations],
      epochs: [...this.#epochs],
      envoyVersions: [...this.#versions],
    };
  }

  #closeGap(nowMs: number): void {
    const gapMs = nowMs - this.#lastGoodMs;
    if (gapMs > this.#longestGapMs) {
      this.#longestGapMs = gapMs;
      this.#longestGapAtMs = this.#lastGoodMs - this.#startMs;
    }
    this.#lastGoodMs = nowMs;
  }

  #keep(kind: SeenFailure["kind"], detail: string, client: string): void {
    this.#failuresByKind[kind] = (this.#failuresByKind[kind] ?? 0) + 1;
    const failure = { atMs: Math.round(performance.now() - this.#startMs), kind, detail, client };
    if (this.#failures.length < KEPT_FAILURES) this.#failures.push(failure);
    this.onFailure(failure);
  }
}
