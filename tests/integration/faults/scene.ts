// Owns: one epochd, its bootstrap and the traffic on it, and the looks that many scenarios take. Must not: start anything.

import assert from "node:assert/strict";
import { segmentFlags } from "../../support/base_ids.ts";
import { type BootstrapOptions, bootstrapText, writeBootstrap } from "../../support/bootstrap.ts";
import type { Epochd } from "../../support/epochd.ts";
import { fetchOnce } from "../../support/http_client.ts";
import type { LogEvent, WaitOptions } from "../../support/log_lines.ts";
import type { TempDir } from "../../support/tempdir.ts";
import type { Traffic } from "../../support/traffic.ts";
import { until } from "../../support/until.ts";

export interface EpochShown {
  readonly epoch: number;
  readonly role: "child" | "newest" | "predecessor";
  readonly pid?: number;
  readonly version?: string;
}

/** Status of the one service, as far as scenarios look at it. */
export interface ServiceShown {
  readonly phase: string;
  readonly step?: string;
  readonly ready: boolean;
  readonly note?: string;
  readonly epochs: readonly EpochShown[];
  readonly refused: readonly { readonly refusal: { readonly name: string; readonly detail: string } }[];
}

export class Scene {
  epochd!: Epochd;
  /** Absent until something is LIVE. */
  traffic!: Traffic;
  readonly bootstrapPath: string;
  #generations = 0;

  constructor(readonly directory: TempDir, readonly base: BootstrapOptions) {
    this.bootstrapPath = directory.at("envoy.yaml");
  }

  get listenPort(): number {
    return this.base.listenPort;
  }

  get adminPort(): number {
    return this.base.adminPort ?? 0;
  }

  /** The scene's bootstrap with some things otherwise, put in place as a careful operator does. */
  write(change: Partial<BootstrapOptions> = {}): void {
    writeBootstrap(this.bootstrapPath, { ...this.base, ...change });
  }

  /** Any text in place of the bootstrap. */
  writeText(text: string): void {
    Deno.writeTextFileSync(`${this.bootstrapPath}.new`, text);
    Deno.renameSync(`${this.bootstrapPath}.new`, this.bootstrapPath);
  }

  text(change: Partial<BootstrapOptions> = {}): string {
    return bootstrapText({ ...this.base, ...change }, this.bootstrapPath);
  }

  /** The next event of this name from now on, or from `since` (see `mark`) on. */
  event(name: string, where?: WaitOptions["where"], since = this.mark(), timeoutMs = 20_000): Promise<LogEvent> {
    return this.epochd.waitForEvent(name, where, { since, timeoutMs });
  }

  mark(): number {
    return this.epochd.log.mark();
  }

  count(name: string, since = 0): number {
    return this.epochd.log.events.slice(since).filter(({ event }) => event === name).length;
  }

  /** A trigger that is sure to be the reason of what follows; resolves to its event. */
  async hup(then = "handoff_live"): Promise<LogEvent> {
    const since = this.mark();
    this.epochd.signal("SIGHUP");
    return await this.event(then, undefined, since);
  }

  async shown(): Promise<ServiceShown> {
    const { body } = await fetchOnce({ path: this.epochd.apiSocket }, { path: "/v1/status" });
    const { services } = JSON.parse(body) as { services: Record<string, ServiceShown> };
    return Object.values(services)[0]!;
  }

  pidOf(epoch: number): number {
    const spawned = this.epochd.log.events.findLast((event) =>
      event.event === "epoch_spawned" && event.epoch === epoch
    );
    assert.ok(spawned !== undefined, `epoch ${epoch} was never spawned`);
    return Number(spawned.pid);
  }

  /** More answered requests than until now: whoever serves, serves on. */
  async goesOn(requests = 50): Promise<void> {
    const seen = this.traffic.snapshot();
    const wanted = seen.requests - seen.failed + requests;
    await until(`${requests} more requests are answered`, () => {
      const now = this.traffic.snapshot();
      return now.requests - now.failed >= wanted;
    });
  }

  /** The epoch serves alone, is Ready by its marker, and nothing is left in the shared segment that blocks the next one. */
  async unharmed(epoch: number): Promise<ServiceShown> {
    const status = await until(`epoch ${epoch} serves alone`, async () => {
      const shown = await this.shown();
      return shown.phase === "serving" && shown.epochs.length === 1 && shown;
    });
    assert.equal(status.ready, true);
    assert.equal(status.epochs[0]?.epoch, epoch);
    // Written a moment after the epoch serves.
    await until("the ready marker", () => this.hasMarker());
    this.assertMarker(epoch);
    assert.equal(segmentFlags(this.epochd.baseId) & 1n, 0n, "INITIALIZING is set");
    await this.goesOn();
    return status;
  }

  /** Fresh, and of this epoch. */
  assertMarker(epoch: number): void {
    const [unixMs, of] = Deno.readTextFileSync(this.epochd.readyMarker).trim().split(" ").map(Number);
    assert.equal(of, epoch, "the epoch in the ready marker");
    assert.ok(Date.now() - (unixMs ?? 0) < 10_000, "the ready marker is stale");
  }

  hasMarker(): boolean {
    try {
      return Deno.statSync(this.epochd.readyMarker).isFile;
    } catch {
      return false;
    }
  }

  /** A good change of the bootstrap goes through; resolves to the epoch that then serves, alone. */
  async goodChange(change: Partial<BootstrapOptions> = {}): Promise<number> {
    const generation = `good-${++this.#generations}`;
    const since = this.mark();
    this.write({ ...change, generation });
    const live = await this.event("handoff_live", undefined, since);
    await until(`traffic meets ${generation}`, () => this.traffic.snapshot().generations.includes(generation));
    await this.event("handoff_done", (event) => event.handoff === live.handoff, since);
    return Number(live.to);
  }
}
