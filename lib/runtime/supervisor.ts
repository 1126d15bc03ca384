// Owns: the services of one supervisor and the record that all of them write into. Must not: know how a service decides.

import type { Happening, TriggerSource } from "../core/event.ts";
import type { ExitCode, Fact } from "../core/fact.ts";
import type { Observer, RecordedFact } from "../observe/record.ts";
import type { Control, SupervisorStatus } from "./control.ts";
import type { Clock } from "./ports.ts";
import { Service, type ServiceOptions } from "./service.ts";

/** Records kept for whoever subscribes late (`Last-Event-ID`). */
const RING = 1_000;

export interface SupervisorOptions {
  readonly version: string;
  readonly pid: number;
  readonly clock: Clock;
  readonly observers: readonly Observer[];
  readonly bug: (where: string, error: unknown) => void;
}

export class Supervisor implements Control {
  readonly #services = new Map<string, Service>();
  readonly #observers: Set<Observer>;
  readonly #ring: RecordedFact[] = [];
  readonly #startedAtMs: number;
  #seq = 0;
  #requests = 0;
  #stopping = false;

  constructor(readonly options: SupervisorOptions) {
    this.#observers = new Set(options.observers);
    this.#startedAtMs = options.clock.wallMs();
  }

  add(options: Pick<ServiceOptions, "name" | "ports" | "settings">): Service {
    const { clock, bug } = this.options;
    const record = (fact: Fact) => this.#record(options.name, fact);
    const service = new Service({ ...options, clock, record, bug: (where, e) => bug(`${options.name}: ${where}`, e) });
    this.#services.set(options.name, service);
    return service;
  }

  /** Resolves to the exit code when every service has ended. One that ends by itself takes the others along. */
  async run(): Promise<ExitCode> {
    const services = [...this.#services.values()];
    const first = Promise.race(services.map((service) => service.ended));
    for (const service of services) service.submit({ kind: "start" });
    const code = await first;
    if (services.length > 1) this.stop("end of another service");
    const codes = await Promise.all(services.map((service) => service.ended));
    return code !== 0 ? code : codes.find((other) => other !== 0) ?? 0;
  }

  stop(source: string): void {
    this.#stopping = true;
    this.#all({ kind: "stop", source });
  }

  /** SIGHUP: every service, changed or not. */
  triggerAll(source: TriggerSource): void {
    this.#all({ kind: "trigger", trigger: { source, requests: [], when: "always", force: false, jitter: 0 } });
  }

  reopenLogs(): void {
    this.#all({ kind: "reopen_logs" });
  }

  trigger(name: string, source: TriggerSource, { force }: { readonly force: boolean }) {
    const service = this.#services.get(name);
    if (service === undefined) return undefined;
    const request = `r${this.options.pid}-${++this.#requests}`;
    service.submit({ kind: "trigger", trigger: { source, requests: [request], when: "always", force, jitter: 0 } });
    return { request };
  }

  status(): SupervisorStatus {
    const { version, pid } = this.options;
    const services = Object.fromEntries([...this.#services].map(([name, service]) => [name, service.status()]));
    return { version, pid, startedAtMs: this.#startedAtMs, stopping: this.#stopping, services };
  }

  recent(): readonly RecordedFact[] {
    return this.#ring;
  }

  subscribe(observer: Observer, afterSeq?: number): () => void {
    if (afterSeq !== undefined) {
      for (const record of this.#ring) if (record.seq > afterSeq) observer(record);
    }
    this.#observers.add(observer);
    return () => this.#observers.delete(observer);
  }

  #all(happening: Happening): void {
    for (const service of this.#services.values()) service.submit(happening);
  }

  #record(service: string, fact: Fact): void {
    const record = { seq: ++this.#seq, service, wallMs: this.options.clock.wallMs(), fact };
    this.#ring.push(record);
    if (this.#ring.length > RING) this.#ring.shift();
    for (const observer of this.#observers) {
      try {
        observer(record);
      } catch (error) {
        this.options.bug(`observer of ${fact.kind}`, error);
      }
    }
  }
}
