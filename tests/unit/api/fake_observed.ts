// Owns: what was seen, by hand: says what the test says, and remembers what it was told. Must not: decide anything.

import type { LedgerEntry } from "../../../lib/observe/ledger.ts";
import type { ApiRequest, Census, Observed } from "../../../lib/observe/observed.ts";

export class FakeObserved implements Observed {
  readonly requests: ApiRequest[] = [];
  readonly credits = new Map<string, string>();
  ledger: readonly LedgerEntry[] = [];
  census: Readonly<Record<string, Census>> = {};

  metrics() {
    return Promise.resolve({ text: "epochd_ready 1\n", type: "text/plain; version=0.0.4; charset=utf-8" });
  }

  countRequest(request: ApiRequest): void {
    this.requests.push(request);
  }

  handoffs(limit: number): Promise<readonly LedgerEntry[]> {
    return Promise.resolve(this.ledger.slice(0, limit));
  }

  credit(request: string, who: string): void {
    this.credits.set(request, who);
  }

  connections(): Promise<Readonly<Record<string, Census>>> {
    return Promise.resolve(this.census);
  }
}
