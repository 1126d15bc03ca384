// Owns: the services of one supervisor and the record that all of them write into. Must not: know how a service decides.

import type { Happening, TriggerSource } from "../core/event.ts";
import type { ExitCode, Fact } from "../core/fact.ts";
import type { Observer, RecordedFact } from "../observe/record.ts";
import { Ring } from "../observe/ring.ts";
import type { Control, RestartOptions, SupervisorStatus } from "./control.ts";
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
  /** It takes over from another supervisor: a service that fails is left to that one, and the others go on. */
  readonly succeeds?: boolean;
}

interface Member {
  service: Service;
  /** Added while the supervisor was at work, or beside another supervisor's: until it was LIVE its end is its own. */
  readonly isLate: boolean;
  wasLive: boolean;
  leaves: boolean;
  /** Another supervisor has taken it over, and may be about to take the others. */
  gaveWay: boolean;
  code: ExitCode | undefined;
}

export class Supervisor implements Control {
  readonly #members = new Map<string, Member>();
  readonly #observers: Set<Observer>;
  readonly #ring = new Ring(RING);
  readonly #startedAtMs: number;
  #seq = 0;
  #requests = 0;
  #stopping = false;
  #running = false;
  /** Of the first that ended by itself, or of one that failed after it. */
  #code: ExitCode | undefined;
  readonly #finished: Promise<ExitCode>;
  #finish!: (code: ExitCode) => void;

  constructor(readonly options: SupervisorOptions) {
    this.#observers = new Set(options.observers);
    this.#finished = new Promise((resolve) => this.#finish = resolve);
    this.#startedAtMs = options.clock.wallMs();
  }

  /** Before `run`: it is started by it, and its end is the supervisor's. After: see `begin`. */
  add(options: Pick<ServiceOptions, "name" | "ports" | "settings">): Service {
    const { clock, bug } = this.options;
    const member: Member = {
      service: undefined!,
      isLate: this.#running || this.options.succeeds === true,
      wasLive: false,
      leaves: false,
      gaveWay: false,
      code: undefined,
    };
    const record = (fact: Fact) => {
      if (fact.kind === "epoch_live") member.wasLive = true;
      if (fact.kind === "superseded") member.gaveWay = fact.policy === "exit";
      if (fact.kind === "successor_vanished") member.gaveWay = false;
      this.#record(options.name, fact);
    };
    const service = new Service({ ...options, clock, record, bug: (where, e) => bug(`${options.name}: ${where}`, e) });
    member.service = service;
    this.#members.set(options.name, member);
    service.ended.then((code) => this.#ended(options.name, member, code));
    return service;
  }

  /**
   * Resolves to the exit code when every service has ended. One that ends by itself takes the others along, unless another supervisor
   * serves it: the others serve on until theirs come, too.
   */
  run(): Promise<ExitCode> {
    this.#running = true;
    for (const { service } of [...this.#members.values()]) service.submit({ kind: "start" });
    return this.#finished;
  }

  /** Starts a service that was added later. Until it was LIVE once, its end is its own: the others never notice. */
  begin(name: string): void {
    this.#members.get(name)?.service.submit({ kind: "start" });
  }

  /** Drains it and lets it go; the others never notice. */
  remove(name: string): void {
    const member = this.#members.get(name);
    if (member === undefined || member.leaves) return;
    member.leaves = true;
    if (member.code !== undefined) this.#members.delete(name);
    else member.service.submit({ kind: "stop", source: "its removal from the configuration" });
  }

  /** `leaving`: removed, and not gone yet. `ended`: it never was LIVE, or the whole supervisor ends. */
  stateOf(name: string): "absent" | "running" | "leaving" | "ended" {
    const member = this.#members.get(name);
    if (member === undefined) return "absent";
    return member.leaves ? "leaving" : member.code === undefined ? "running" : "ended";
  }

  stop(source: string): void {
    const isFirst = !this.#stopping;
    this.#stopping = true;
    for (const { service, leaves } of this.#members.values()) {
      // Its drain is under way: asked a second time it would be cut short.
      if (!(isFirst && leaves)) service.submit({ kind: "stop", source });
    }
  }

  #ended(name: string, member: Member, code: ExitCode): void {
    member.code = code;
    if (member.leaves) this.#members.delete(name);
    const own = !member.leaves && (!member.isLate || member.wasLive);
    if (own && this.#code === undefined) {
      this.#code = code;
      const isAlone = [...this.#members.values()].every((other) => other.code !== undefined);
      if (!isAlone && !member.gaveWay) this.stop("end of another service");
    } else if (own && this.#code === 0) this.#code = code;
    const codes = [...this.#members.values()].map((other) => other.code);
    if (codes.some((other) => other === undefined)) return;
    this.#finish(this.#code ?? codes.find((other) => other !== 0) ?? 0);
  }

  /** SIGHUP: every service, changed or not. */
  triggerAll(source: TriggerSource): void {
    this.#all({ kind: "trigger", trigger: { source, requests: [], when: "always", force: false, jitter: 0 } });
  }

  reopenLogs(): void {
    this.#all({ kind: "reopen_logs" });
  }

  trigger(name: string, source: TriggerSource, { force, drained = false }: RestartOptions) {
    const service = this.#members.get(name)?.service;
    if (service === undefined) return undefined;
    const request = `r${this.options.pid}-${++this.#requests}`;
    const trigger = { source, requests: [request], when: "always", force, jitter: 0 } as const;
    service.submit({ kind: "trigger", trigger: drained ? { ...trigger, drained } : trigger });
    return { request };
  }

  /** Whether other supervisors have taken over all that served here. */
  get isSucceeded(): boolean {
    const members = [...this.#members.values()];
    return members.some(({ gaveWay }) => gaveWay) && members.every(({ gaveWay, wasLive }) => gaveWay || !wasLive);
  }

  /** Calls back when every mailbox has taken all that was in it. */
  pulse(seen: () => void): void {
    let left = this.#members.size;
    if (left === 0) return seen();
    for (const { service } of this.#members.values()) {
      service.pulse(() => {
        if (--left === 0) seen();
      });
    }
  }

  status(): SupervisorStatus {
    const { version, pid } = this.options;
    const services = Object.fromEntries([...this.#members].map(([name, { service }]) => [name, service.status()]));
    return { version, pid, startedAtMs: this.#startedAtMs, stopping: this.#stopping, services };
  }

  recent(): readonly RecordedFact[] {
    return this.#ring.all();
  }

  subscribe(observer: Observer, afterSeq?: number): () => void {
    if (afterSeq !== undefined) {
      for (const record of this.#ring.after(afterSeq)) observer(record);
    }
    this.#observers.add(observer);
    return () => this.#observers.delete(observer);
  }

  #all(happening: Happening): void {
    for (const { service } of this.#members.values()) service.submit(happening);
  }

  #record(service: string, fact: Fact): void {
    const record = { seq: ++this.#seq, service, wallMs: this.options.clock.wallMs(), fact };
    this.#ring.push(record);
    for (const observer of this.#observers) {
      try {
        observer(record);
      } catch (error) {
        this.options.bug(`observer of ${fact.kind}`, error);
      }
    }
  }
}
