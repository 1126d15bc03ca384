// Owns: what the facts of all services add up to, as Prometheus metrics. Must not: decide, or count anything that is no fact.

import client from "prom-client";
import type { ServiceStatus } from "../core/status.ts";
import type { Fact } from "../core/fact.ts";
import { addProcessMetrics } from "./process_metrics.ts";
import type { RecordedFact } from "./record.ts";
import { runtime, version } from "./version.ts";

/** Seconds: a start takes 0.05 s to a minute, a drain up to its parent shutdown time. */
const START_BUCKETS = [0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60];
const DRAIN_BUCKETS = [0.5, 1, 5, 10, 20, 30, 45, 60, 120, 300, 600];

export class Metrics {
  readonly registry = new client.Registry();
  readonly #handoffs = this.#counter("epochd_handoffs_total", "Handoffs by outcome", ["service", "source", "result"]);
  readonly #triggers = this.#counter("epochd_triggers_total", "Wishes for a new epoch", [
    "service",
    "source",
    "answer",
  ]);
  readonly #refusals = this.#counter("epochd_refusals_total", "What was refused, by name", ["service", "reason"]);
  readonly #exits = this.#counter("epochd_child_exits_total", "Ended Envoys", ["service", "role", "how"]);
  readonly #spawns = this.#counter("epochd_epochs_spawned_total", "Envoys started", ["service"]);
  readonly #repairs = this.#counter("epochd_segment_repairs_total", "Looks at the shared flag after a failed child", [
    "service",
    "result",
  ]);
  readonly #watches = this.#counter("epochd_watch_changes_total", "Watches begun, lost and won back", [
    "service",
    "subject",
    "mode",
  ]);
  readonly #markers = this.#counter("epochd_marker_failures_total", "Ready marker could not be written", ["service"]);
  readonly #late = this.#counter("epochd_late_answers_total", "Answers that nobody waited for any more", ["service"]);
  readonly #hung = this.#counter("epochd_epoch_hangs_total", "Times the serving epoch fell silent", ["service"]);
  readonly #live = this.#histogram("epochd_epoch_start_seconds", "From spawn to LIVE", START_BUCKETS);
  readonly #preflight = this.#histogram("epochd_preflight_seconds", "Checks before a fork", START_BUCKETS);
  readonly #handoff = this.#histogram("epochd_handoff_seconds", "From a handoff's turn to LIVE", START_BUCKETS);
  readonly #drain = this.#histogram("epochd_drain_seconds", "From LIVE to the end of the predecessor", DRAIN_BUCKETS);
  readonly #gap = this.#histogram("epochd_service_gap_seconds", "Time in which nobody accepted", START_BUCKETS);
  readonly #sources = new Map<string, string>();

  /** `status`: what is so now, asked at each scrape. */
  constructor(status: () => Readonly<Record<string, ServiceStatus>>) {
    const gauge = (name: string, help: string, labels: readonly string[], collect: (metric: client.Gauge) => void) =>
      new client.Gauge({
        name,
        help,
        labelNames: [...labels],
        registers: [this.registry],
        collect() {
          this.reset();
          collect(this);
        },
      });
    new client.Gauge({
      name: "epochd_build_info",
      help: "Always 1; what runs",
      labelNames: ["version", "runtime"],
      registers: [this.registry],
    }).set({ version, runtime }, 1);
    gauge("epochd_ready", "1 while traffic is served", ["service"], (metric) => {
      for (const [service, { ready }] of Object.entries(status())) metric.set({ service }, ready ? 1 : 0);
    });
    gauge("epochd_epoch", "Number of the newest serving epoch", ["service", "envoy_version"], (metric) => {
      for (const [service, { epochs }] of Object.entries(status())) {
        const newest = epochs.find(({ role }) => role === "newest");
        if (newest !== undefined) metric.set({ service, envoy_version: newest.version ?? "" }, newest.epoch);
      }
    });
    gauge("epochd_epochs", "Living Envoys by role", ["service", "role"], (metric) => {
      for (const [service, { epochs }] of Object.entries(status())) {
        for (const role of ["child", "newest", "predecessor"]) {
          metric.set({ service, role }, epochs.filter((epoch) => epoch.role === role).length);
        }
      }
    });
    addProcessMetrics(this.registry);
  }

  /** The text of a scrape; see `contentType` of the registry. */
  text(): Promise<string> {
    return this.registry.metrics();
  }

  readonly observe = ({ service, fact }: RecordedFact): void => {
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
      case "epoch_hung":
        return this.#hung.inc({ service });
      case "segment_repaired":
        return this.#repairs.inc({ service, result: fact.cleared ? "cleared" : "clean" });
      case "segment_repair_failed":
        return this.#repairs.inc({ service, result: "failed" });
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
  return exit.code === 0 ? "clean" : "failed";
}
