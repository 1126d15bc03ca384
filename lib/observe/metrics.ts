// Owns: what the facts of all services add up to, as Prometheus metrics. Must not: decide, or count anything that is no fact.
// Loads prom-client: import it lazily.

import client from "prom-client";
import type { TriggerSource } from "../core/event.ts";
import type { Fact, Role } from "../core/fact.ts";
import type { ServiceStatus } from "../core/status.ts";
import { addProcessMetrics } from "./process_metrics.ts";
import type { RecordedFact } from "./record.ts";
import type { ApiRequest } from "./observed.ts";
import { runtime, version } from "./version.ts";

/** Seconds: a start takes 0.05 s to a minute, a drain up to its parent shutdown time. */
const START_BUCKETS = [0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60];
const DRAIN_BUCKETS = [0.5, 1, 5, 10, 20, 30, 45, 60, 120, 300, 600];

const SOURCES: readonly TriggerSource[] = [
  "signal",
  "bootstrap",
  "binary",
  "config",
  "api",
  "push",
  "recovery",
  "rollback",
  "retry",
];
const ROLES: readonly Role[] = ["child", "newest", "predecessor"];
const PHASES: readonly ServiceStatus["phase"][] = [
  "idle",
  "starting",
  "serving",
  "replacing",
  "pausing",
  "stopping",
  "detecting",
  "yielding",
  "superseded",
  "ended",
];

export interface MetricsSources {
  /** What is so now, asked at each scrape. */
  readonly status: () => Readonly<Record<string, ServiceStatus>>;
  readonly droppedLogLines: () => number;
}

export class Metrics {
  readonly registry = new client.Registry();
  readonly #handoffs = this.#counter("epochd_handoffs_total", "Handoffs by source and result: live or failed", [
    "service",
    "source",
    "result",
  ]);
  readonly #triggers = this.#counter(
    "epochd_triggers_total",
    "Wishes for a new epoch by source, and whether they were accepted, joined to one that waits (coalesced) or dropped",
    ["service", "source", "answer"],
  );
  readonly #refusals = this.#counter("epochd_refusals_total", "What was refused, by the name of the refusal", [
    "service",
    "reason",
  ]);
  readonly #exits = this.#counter(
    "epochd_child_exits_total",
    "Ended Envoys by the role they had and how they ended: clean (exit code 0), failed, or the name of a signal",
    ["service", "role", "how"],
  );
  readonly #deaths = this.#counter("epochd_newest_deaths_total", "Serving epochs that died, by what epochd did then", [
    "service",
    "answer",
  ]);
  readonly #spawns = this.#counter("epochd_epochs_spawned_total", "Envoys started", ["service"]);
  readonly #repairs = this.#counter(
    "epochd_segment_repairs_total",
    "Looks at the shared segment after a failed child: clean, cleared (the flag was left set) or failed",
    ["service", "result"],
  );
  readonly #standIns = this.#counter(
    "epochd_stand_ins_total",
    "Stand-ins for epochs that died while they drained: began, or failed",
    ["service", "result"],
  );
  readonly #watches = this.#counter(
    "epochd_watch_changes_total",
    "Watches begun, lost and won back, by the mode they got",
    [
      "service",
      "subject",
      "mode",
    ],
  );
  readonly #markers = this.#counter("epochd_marker_failures_total", "Times the ready marker could not be written", [
    "service",
  ]);
  readonly #late = this.#counter("epochd_late_answers_total", "Answers that nobody waited for any more", ["service"]);
  readonly #hung = this.#counter("epochd_epoch_hangs_total", "Times the serving epoch fell silent", ["service"]);
  readonly #requests = this.#counter("epochd_api_requests_total", "Requests to epochd's own API", [
    "route",
    "method",
    "code",
  ]);
  readonly #live = this.#histogram("epochd_epoch_start_seconds", "From the spawn of an Envoy to LIVE", START_BUCKETS);
  readonly #preflight = this.#histogram("epochd_preflight_seconds", "Checks before a fork", START_BUCKETS);
  readonly #handoff = this.#histogram("epochd_handoff_seconds", "From a handoff's turn to LIVE", START_BUCKETS);
  readonly #drain = this.#histogram("epochd_drain_seconds", "From LIVE to the end of the predecessor", DRAIN_BUCKETS);
  readonly #gap = this.#histogram(
    "epochd_service_gap_seconds",
    "Time in which nobody accepted connections",
    START_BUCKETS,
  );
  readonly #sources = new Map<string, TriggerSource>();
  readonly #known = new Set<string>();

  constructor(private readonly asked: MetricsSources) {
    this.#info();
    this.#gauges();
    const { droppedLogLines } = asked;
    new client.Counter({
      name: "epochd_log_lines_dropped_total",
      help: "Lines of epochd's own log that stderr took too slowly, or not at all",
      registers: [this.registry],
      collect() {
        this.reset();
        this.inc(droppedLogLines());
      },
    });
    addProcessMetrics(this.registry);
  }

  /** The text of a scrape. */
  async text(): Promise<{ readonly text: string; readonly type: string }> {
    for (const service of Object.keys(this.asked.status())) this.#begin(service);
    return { text: await this.registry.metrics(), type: this.registry.contentType };
  }

  countRequest({ route, method, code }: ApiRequest): void {
    this.#requests.inc({ route, method, code: String(code) });
  }

  readonly observe = ({ service, fact }: RecordedFact): void => {
    this.#begin(service);
    switch (fact.kind) {
      case "trigger_accepted":
        return this.#triggers.inc({ service, source: fact.source, answer: "accepted" });
      case "trigger_coalesced":
        return this.#triggers.inc({ service, source: fact.source, answer: "coalesced" });
      case "trigger_dropped":
        this.#refusals.inc({ service, reason: fact.refusal.name });
        return this.#triggers.inc({ service, source: fact.source, answer: "dropped" });
      case "watch_changed":
        return this.#watches.inc({ service, subject: fact.subject, mode: fact.mode });
      case "preflight_passed":
      case "preflight_refused":
        return this.#preflight.observe({ service }, fact.tookMs / 1000);
      case "epoch_spawned":
        return this.#spawns.inc({ service });
      case "epoch_live":
        return this.#live.observe({ service }, fact.tookMs / 1000);
      case "epoch_exited":
        return this.#exits.inc({ service, role: fact.role, how: howOf(fact) });
      case "newest_died":
        return this.#deaths.inc({ service, answer: fact.answer });
      case "epoch_hung":
        return this.#hung.inc({ service });
      case "segment_repaired":
        return this.#repairs.inc({ service, result: fact.cleared ? "cleared" : "clean" });
      case "segment_repair_failed":
        return this.#repairs.inc({ service, result: "failed" });
      case "stand_in_began":
        return this.#standIns.inc({ service, result: "began" });
      case "stand_in_failed":
        return this.#standIns.inc({ service, result: "failed" });
      case "service_gap":
        return this.#gap.observe({ service }, fact.refusedMs / 1000);
      case "marker_failed":
        return this.#markers.inc({ service });
      case "late_answer":
        return this.#late.inc({ service });
      case "handoff_began":
      case "handoff_live":
      case "handoff_done":
      case "handoff_failed":
        return this.#countHandoff(service, fact);
      default:
        return;
    }
  };

  #countHandoff(service: string, fact: Extract<Fact, { kind: `handoff_${"began" | "live" | "done" | "failed"}` }>) {
    const key = `${service} ${fact.handoff}`;
    const source = this.#sources.get(key) ?? "unknown";
    switch (fact.kind) {
      case "handoff_began":
        this.#sources.set(key, fact.source);
        return;
      case "handoff_live":
        this.#handoffs.inc({ service, source, result: "live" });
        return this.#handoff.observe({ service }, fact.tookMs / 1000);
      case "handoff_done":
        this.#sources.delete(key);
        return this.#drain.observe({ service }, fact.drainedMs / 1000);
      case "handoff_failed":
        this.#sources.delete(key);
        this.#refusals.inc({ service, reason: fact.refusal.name });
        return this.#handoffs.inc({ service, source, result: "failed" });
    }
  }

  /** Zero before the first: `increase()` sees the step from 0 to 1 only where the 0 was scraped. */
  #begin(service: string): void {
    if (this.#known.has(service)) return;
    this.#known.add(service);
    for (const source of SOURCES) {
      for (const result of ["live", "failed"]) this.#handoffs.inc({ service, source, result }, 0);
      for (const answer of ["accepted", "coalesced", "dropped"]) this.#triggers.inc({ service, source, answer }, 0);
    }
    for (const result of ["began", "failed"]) this.#standIns.inc({ service, result }, 0);
    for (const result of ["clean", "cleared", "failed"]) this.#repairs.inc({ service, result }, 0);
    for (const answer of ["exit", "restart", "revival", "budget_used_up", "rollback"]) {
      this.#deaths.inc({ service, answer }, 0);
    }
    for (const counter of [this.#spawns, this.#markers, this.#late, this.#hung]) counter.inc({ service }, 0);
    for (const each of [this.#live, this.#preflight, this.#handoff, this.#drain, this.#gap]) each.zero({ service });
  }

  #info(): void {
    new client.Gauge({
      name: "epochd_build_info",
      help: "Always 1; the labels say what runs",
      labelNames: ["version", "runtime"],
      registers: [this.registry],
    }).set({ version, runtime }, 1);
  }

  #gauges(): void {
    const { status } = this.asked;
    const each = (set: (service: string, of: ServiceStatus) => void) => {
      for (const [service, of] of Object.entries(status())) set(service, of);
    };
    this.#gauge("epochd_ready", "1 while the service is ready, else 0", [], (metric) => {
      each((service, { ready }) => metric.set({ service }, ready ? 1 : 0));
    });
    this.#gauge("epochd_phase", "1 for the phase that the service is in, 0 for the others", ["phase"], (metric) => {
      each((service, { phase }) => PHASES.forEach((one) => metric.set({ service, phase: one }, one === phase ? 1 : 0)));
    });
    this.#gauge("epochd_epoch", "Number of the newest serving epoch", ["envoy_version"], (metric) => {
      each((service, { epochs }) => {
        const newest = epochs.find(({ role }) => role === "newest");
        if (newest !== undefined) metric.set({ service, envoy_version: newest.version ?? "" }, newest.epoch);
      });
    });
    this.#gauge("epochd_epochs", "Living Envoys by role: child (not LIVE yet), newest, predecessor (drains)", [
      "role",
    ], (metric) => {
      each((service, { epochs }) =>
        ROLES.forEach((role) => metric.set({ service, role }, epochs.filter((epoch) => epoch.role === role).length))
      );
    });
    this.#gauge(
      "epochd_refused_contents",
      "Contents that were refused and are not tried again by themselves",
      [],
      (metric) => {
        each((service, { refused }) => metric.set({ service }, refused.length));
      },
    );
  }

  #gauge(name: string, help: string, labels: readonly string[], collect: (metric: client.Gauge) => void): void {
    new client.Gauge({
      name,
      help,
      labelNames: ["service", ...labels],
      registers: [this.registry],
      collect() {
        this.reset();
        collect(this);
      },
    });
  }

  #counter(name: string, help: string, labelNames: string[]) {
    return new client.Counter({ name, help, labelNames, registers: [this.registry] });
  }

  #histogram(name: string, help: string, buckets: number[]) {
    return new client.Histogram({ name, help, labelNames: ["service"], buckets, registers: [this.registry] });
  }
}

/** `clean` is exit code 0: by protocol or by SIGTERM. */
function howOf({ exit }: Extract<Fact, { kind: "epoch_exited" }>): string {
  if (exit.signal !== undefined) return exit.signal;
  if (exit.code === "unknown") return "unknown";
  return exit.code === 0 ? "clean" : "failed";
}
