// Owns: what the API may ask of those who watch the services, as an interface. Must not: import any of them.

import type { LedgerEntry } from "./ledger.ts";

/** One answered request to epochd's own API; `route` is the pattern, never the path. */
export interface ApiRequest {
  readonly route: string;
  readonly method: string;
  readonly code: number;
}

/** Downstream connections of one service, admin's not among them. */
export interface Census {
  /** Of every epoch. */
  readonly active: number;
  /** Of these, the predecessor's, as Envoy told it at its last flush of statistics; absent where none drains. */
  readonly draining?: number;
}

export interface Observed {
  /** The text of a scrape. */
  metrics(): Promise<{ readonly text: string; readonly type: string }>;
  countRequest(request: ApiRequest): void;
  /** Newest first; what is under way comes first. */
  handoffs(limit: number): Promise<readonly LedgerEntry[]>;
  /** Who is behind a request, for the ledger. */
  credit(request: string, who: string): void;
  /** By service; asked at most once a second, whoever asks. Services that can't be asked are absent. */
  connections(): Promise<Readonly<Record<string, Census>>>;
}
