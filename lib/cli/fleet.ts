// Owns: the services of one supervisor with their adapters and watches, and how they take new settings while they run.
// Must not: decide which settings are taken.

import { takeCensus } from "../adapters/census.ts";
import { countUsableCpus } from "../adapters/cpus.ts";
import { prepareStateDir } from "../adapters/state_dir.ts";
import { type ServiceConfig, toSettings } from "../config/service_config.ts";
import type { Subject, TriggerSource } from "../core/event.ts";
import type { Refusal } from "../core/refusal.ts";
import { servingProblem, thisPlace } from "../launch/launcher.ts";
import type { Log } from "../observe/log.ts";
import type { Census } from "../observe/observed.ts";
import type { Fleet } from "../runtime/fleet.ts";
import { Rehearsal } from "../runtime/rehearsal.ts";
import type { Service } from "../runtime/service.ts";
import type { Supervisor } from "../runtime/supervisor.ts";
import { assemble, type Assembled, type Self } from "./assemble.ts";
import { ServiceBinaries } from "./binaries.ts";

interface Wired {
  config: ServiceConfig;
  readonly service: Service;
  readonly assembled: Assembled;
  readonly watches: Map<Subject, () => void>;
}

const subjects: readonly Subject[] = ["bootstrap", "binary"];

export class WiredFleet implements Fleet {
  readonly #wired = new Map<string, Wired>();
  readonly binaries: ServiceBinaries;

  constructor(readonly supervisor: Supervisor, readonly log: Log, readonly self: Self, readonly succeeds = false) {
    this.binaries = new ServiceBinaries(supervisor, (fact) => log.shell(fact));
  }

  /** Before the supervisor runs: resolves to the problem where a directory or a marker can't be used. */
  async prepare(name: string, config: ServiceConfig): Promise<string | undefined> {
    if (config.onSupervisorDeath === "serve") {
      const problem = servingProblem(thisPlace());
      if (problem !== undefined) return problem;
    }
    const assembled = this.#assemble(config);
    const { marker } = assembled;
    // The marker of the one that it takes over from speaks for what serves.
    const stale = this.succeeds ? undefined : marker;
    const problem = await prepareStateDir(config.stateDir) ?? await stale?.removeStale(() => {
      this.log.shell({ kind: "stale_marker_removed", path: stale.path });
    });
    if (problem !== undefined) return problem;
    const slots = await assembled.slots?.prepare();
    if (slots !== undefined && "problem" in slots) return slots.problem;
    for (const what of slots?.mended ?? []) this.log.shell({ kind: "slots_mended", service: name, what });
    const service = this.supervisor.add({ name, ports: assembled.ports, settings: toSettings(config) });
    const wired: Wired = { config, service, assembled, watches: new Map() };
    this.#wired.set(name, wired);
    this.binaries.add(name, { service, assembled, trialMs: () => toSettings(wired.config).binaryTrialMs });
    return undefined;
  }

  /** Begins what is to be watched, of every service. */
  watch(): void {
    for (const wired of this.#wired.values()) for (const subject of subjects) watchSubject(wired, subject);
  }

  /** Ends the watches; resolves when the markers are gone. */
  async close(): Promise<void> {
    const all = [...this.#wired.values()];
    for (const wired of all) unwatch(wired);
    // A marker's removal may still be on its way; what is asked now comes after it.
    await Promise.all([...all.map(({ assembled }) => assembled.marker?.remove()), this.binaries.close()]);
  }

  stateOf(name: string) {
    return this.supervisor.stateOf(name);
  }

  async preflight(name: string, config: ServiceConfig): Promise<Refusal | undefined> {
    const wired = this.stateOf(name) === "running" ? this.#wired.get(name) : undefined;
    const assembled = wired?.assembled ?? this.#assemble(config);
    const preflight = assembled.preflightBy(config);
    const { signal } = new AbortController();
    const newest = wired?.service.newest;
    const full = await preflight.run({
      depth: "full",
      provenKeys: [],
      joining: false,
      ...(newest === undefined ? {} : { hotRestartVersion: newest.hotRestartVersion }),
    }, signal);
    if (full.kind === "refused") return full.refusal;
    // Its base id must be free as well, unless another pod's epoch is what it joins.
    if (wired !== undefined || config.crossPod) return undefined;
    const first = await preflight.run({ depth: "first", provenKeys: [], joining: false }, signal);
    return first.kind === "refused" ? first.refusal : undefined;
  }

  async connections(name: string): Promise<number | undefined> {
    const wired = this.#wired.get(name);
    const newest = wired?.service.newest;
    if (wired === undefined || newest === undefined) return undefined;
    return (await wired.assembled.ports.admin.connections(newest.plan.admin))?.active;
  }

  /** Of the epoch that serves, and of the one that drains. */
  async census(name: string): Promise<Census | undefined> {
    const newest = this.#wired.get(name)?.service.newest;
    return newest === undefined ? undefined : await takeCensus(newest.plan.admin);
  }

  stateDirOf(name: string): string | undefined {
    return this.#wired.get(name)?.config.stateDir;
  }

  use(name: string, config: ServiceConfig): void {
    const wired = this.#wired.get(name);
    if (wired === undefined) return;
    const before = wired.config;
    wired.config = config;
    wired.assembled.use(config);
    wired.service.apply(toSettings(config));
    for (const subject of subjects) {
      const isSame = before.pollMs === config.pollMs &&
        (subject === "bootstrap" || before.envoyPath === config.envoyPath) &&
        watched(before, wired.assembled, subject) === watched(config, wired.assembled, subject);
      if (isSame) continue;
      const close = wired.watches.get(subject);
      if (close !== undefined) {
        close();
        wired.watches.delete(subject);
        wired.service.submit({ kind: "unwatched", subject });
      }
      watchSubject(wired, subject);
    }
  }

  async add(name: string, config: ServiceConfig): Promise<string | undefined> {
    const problem = await this.prepare(name, config);
    if (problem !== undefined) return problem;
    this.supervisor.begin(name);
    const wired = this.#wired.get(name)!;
    for (const subject of subjects) watchSubject(wired, subject);
    // Its watches end with it; another of the same name has its own.
    void wired.service.ended.then(() => unwatch(wired));
    return undefined;
  }

  remove(name: string): void {
    const wired = this.#wired.get(name);
    if (wired === undefined) return;
    this.#wired.delete(name);
    unwatch(wired);
    void wired.service.ended.then(() => Promise.all([wired.assembled.marker?.remove(), this.binaries.remove(name)]));
    this.supervisor.remove(name);
  }

  trigger(name: string, source: TriggerSource, options: { readonly force: boolean }) {
    return this.supervisor.trigger(name, source, options);
  }

  #assemble(config: ServiceConfig): Assembled {
    return assemble(config, this.#concurrencyOf(config), this.self, (fact) => this.log.shell(fact));
  }

  #concurrencyOf(config: ServiceConfig): number {
    if (config.concurrency !== undefined) return config.concurrency;
    const concurrency = countUsableCpus();
    this.log.shell({ kind: "concurrency_chosen", concurrency, why: "the CPUs this process may use" });
    return concurrency;
  }
}

/** The path that is watched; undefined where none is. */
function watched(config: ServiceConfig, { slots }: Assembled, subject: Subject): string | undefined {
  if (subject === "bootstrap") return config.watchConfig ? config.envoyConfig : undefined;
  return config.watchBinary ? slots?.currentPath ?? config.envoyPath : undefined;
}

function watchSubject({ config, service, assembled, watches }: Wired, subject: Subject): void {
  const path = watched(config, assembled, subject);
  if (path === undefined) return;
  const rehearsal = new Rehearsal(assembled.ports.preflight, () => service.newest?.plan.key);
  const { close } = assembled.watchOf(subject).watch(
    path,
    (content) => {
      service.submit({ kind: "content", subject, content, jitter: Math.random() });
      rehearsal.seen(content);
    },
    (mode, why) => service.submit({ kind: "watch", subject, mode, why }),
  );
  watches.set(subject, () => {
    close();
    rehearsal.end();
  });
}

function unwatch({ watches }: Wired): void {
  for (const close of watches.values()) close();
  watches.clear();
}
