// Owns: everything that is seen of services beside their state: metrics, ledger, connections, traces; each made when it is first needed.
// Must not: hold up a start, or lose a fact that came before.

import type { Control } from "../runtime/control.ts";
import type { LedgerEntry } from "./ledger.ts";
import { LedgerKeeper } from "./ledger_keeper.ts";
import type { OtelSettings } from "./otel_settings.ts";
import type { OtlpExporter } from "./otlp.ts";
import type { Metrics } from "./metrics.ts";
import type { ApiRequest, Census, Observed } from "./observed.ts";

export interface ObservatoryOptions {
  readonly control: Pick<Control, "status" | "subscribe">;
  readonly pid: number;
  readonly droppedLogLines: () => number;
  readonly stateDirOf: (service: string) => string | undefined;
  /** Asks Envoy, bounded. */
  readonly census: (service: string) => Promise<Census | undefined>;
  /** Of the ledger; of the traces. */
  readonly problem: (problem: string) => void;
  readonly traceProblem?: (problem: string) => void;
  /** Absent: no traces. */
  readonly otel?: OtelSettings | string | undefined;
}

/** The supervisor holds a thousand facts for whoever comes late: metrics come before the first is lost. */
const lateSeq = 500;
/** Nobody asks Envoy more often, however many watch. */
const censusAgeMs = 1_000;

export class Observatory implements Observed {
  readonly #ledger: LedgerKeeper;
  /** Services whose predecessor is another supervisor's. */
  readonly #foreign = new Set<string>();
  readonly #earlyRequests: ApiRequest[] = [];
  #exporter: Promise<OtlpExporter> | undefined;
  #metrics: Metrics | undefined;
  #loading: Promise<Metrics> | undefined;
  #census: { readonly atMs: number; readonly answer: Promise<Readonly<Record<string, Census>>> } | undefined;

  constructor(private readonly options: ObservatoryOptions) {
    const { pid, stateDirOf, census, problem, control, otel, traceProblem } = options;
    const written = typeof otel === "object" ? (entry: LedgerEntry) => void this.#trace(otel, entry) : undefined;
    this.#ledger = new LedgerKeeper({
      pid,
      directoryOf: stateDirOf,
      census,
      problem,
      ...(written === undefined ? {} : { written }),
    });
    if (typeof otel === "string") traceProblem?.(otel);
    control.subscribe((record) => {
      this.#ledger.observe(record);
      const { kind } = record.fact;
      if (kind === "predecessor_found") this.#foreign.add(record.service);
      else if (kind.startsWith("foreign_")) this.#foreign.delete(record.service);
      if (record.seq === lateSeq) void this.#loadMetrics();
    });
  }

  async metrics(): Promise<{ readonly text: string; readonly type: string }> {
    return await (await this.#loadMetrics()).text();
  }

  countRequest(request: ApiRequest): void {
    if (this.#metrics !== undefined) return this.#metrics.countRequest(request);
    this.#earlyRequests.push(request);
    if (this.#earlyRequests.length >= lateSeq) void this.#loadMetrics();
  }

  handoffs(limit: number): Promise<readonly LedgerEntry[]> {
    return this.#ledger.recent(Object.keys(this.options.control.status().services), limit);
  }

  credit(request: string, who: string): void {
    this.#ledger.credit(request, who);
  }

  connections(): Promise<Readonly<Record<string, Census>>> {
    const nowMs = performance.now();
    if (this.#census === undefined || nowMs - this.#census.atMs >= censusAgeMs) {
      this.#census = { atMs: nowMs, answer: this.#takeCensus() };
    }
    return this.#census.answer;
  }

  /** Resolves when the ledger is written and the traces are sent. */
  async close(): Promise<void> {
    await this.#ledger.close();
    await (await this.#exporter)?.close();
  }

  async #trace(otel: OtelSettings, entry: LedgerEntry): Promise<void> {
    this.#exporter ??= import("./otlp.ts").then(({ OtlpExporter }) =>
      new OtlpExporter({ ...otel, problem: (problem) => this.options.traceProblem?.(problem) })
    );
    (await this.#exporter).send(entry);
  }

  async #takeCensus(): Promise<Readonly<Record<string, Census>>> {
    const services = Object.entries(this.options.control.status().services);
    const found = await Promise.all(services.map(async ([name, { epochs }]) => {
      const census = await this.options.census(name).catch(() => undefined);
      if (census === undefined) return [];
      const { active, draining = 0 } = census;
      // A number that Envoy still tells of a parent that has ended says nothing.
      const drains = this.#foreign.has(name) || epochs.some(({ role }) => role === "predecessor");
      return [[name, { active, ...(drains ? { draining } : {}) }] as const];
    }));
    return Object.fromEntries(found.flat());
  }

  #loadMetrics(): Promise<Metrics> {
    return this.#loading ??= import("./metrics.ts").then(({ Metrics }) => {
      const { control, droppedLogLines } = this.options;
      const metrics = new Metrics({ status: () => control.status().services, droppedLogLines });
      control.subscribe(metrics.observe, 0);
      for (const request of this.#earlyRequests.splice(0)) metrics.countRequest(request);
      return this.#metrics = metrics;
    });
  }
}
