// Owns: a supervisor by hand: what it answers and when is up to the test. Must not: decide anything itself.

import type { Fact } from "../../../lib/core/fact.ts";
import type { ServiceStatus } from "../../../lib/core/status.ts";
import type { TriggerSource } from "../../../lib/core/event.ts";
import type { Observer, RecordedFact } from "../../../lib/observe/record.ts";
import { Ring } from "../../../lib/observe/ring.ts";
import type { Control, RestartOptions, SupervisorStatus } from "../../../lib/runtime/control.ts";

export const servingStatus: ServiceStatus = {
  phase: "serving",
  ready: true,
  epochs: [],
  handoffs: 0,
  refused: [],
  watch: [],
};

export interface Asked {
  readonly service: string;
  readonly source: TriggerSource;
  readonly force: boolean;
  readonly drained?: boolean;
  readonly request: string;
}

export class FakeControl implements Control {
  readonly asked: Asked[] = [];
  readonly #observers = new Set<Observer>();
  readonly #ring: Ring;
  #seq = 0;

  services: Record<string, ServiceStatus> = { edge: servingStatus };
  /** Called within `trigger`, as a mailbox may that is empty. */
  onTrigger: (asked: Asked) => void = () => {};

  constructor(capacity = 100) {
    this.#ring = new Ring(capacity);
  }

  get observers(): number {
    return this.#observers.size;
  }

  status(): SupervisorStatus {
    return { version: "0.1.0", pid: 4711, startedAtMs: 1_000, stopping: false, services: this.services };
  }

  trigger(service: string, source: TriggerSource, options: RestartOptions) {
    if (!(service in this.services)) return undefined;
    const asked = { service, source, ...options, request: `r${this.asked.length + 1}` };
    this.asked.push(asked);
    this.onTrigger(asked);
    return { request: asked.request };
  }

  subscribe(observer: Observer, afterSeq?: number): () => void {
    if (afterSeq !== undefined) this.#ring.after(afterSeq).forEach(observer);
    this.#observers.add(observer);
    return () => this.#observers.delete(observer);
  }

  recent(): readonly RecordedFact[] {
    return this.#ring.all();
  }

  happen(fact: Fact, service = "edge"): void {
    const record = { seq: ++this.#seq, service, wallMs: 0, fact };
    this.#ring.push(record);
    for (const observer of [...this.#observers]) observer(record);
  }
}

/** The facts of one handoff, as the core tells them. */
export function handoffFacts(request: string): {
  readonly accepted: Fact;
  readonly began: Fact;
  readonly passed: Fact;
  readonly spawned: Fact;
  readonly live: Fact;
  readonly done: Fact;
  readonly failed: Fact;
  readonly dropped: Fact;
} {
  const [requests, source] = [[request], "api"] as const;
  const handoff = { handoff: 1, from: 0, to: 1, requests };
  return {
    accepted: { kind: "trigger_accepted", source, requests },
    began: { kind: "handoff_began", ...handoff, source },
    passed: {
      kind: "preflight_passed",
      cached: false,
      tookMs: 80,
      bootstrapDigest: "b".repeat(64),
      binaryDigest: "c".repeat(64),
    },
    spawned: { kind: "epoch_spawned", epoch: 1, attempt: 2, pid: 42 },
    live: { kind: "handoff_live", ...handoff, tookMs: 300 },
    done: { kind: "handoff_done", ...handoff, drainedMs: 900 },
    failed: {
      kind: "handoff_failed",
      ...handoff,
      refusal: { name: "bootstrap_invalid", detail: "envoy.yaml: no such field" },
      tookMs: 90,
    },
    dropped: { kind: "trigger_dropped", source, requests, refusal: { name: "stopping", detail: "epochd stops" } },
  };
}
