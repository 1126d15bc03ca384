// Owns: services by hand: remembers what a configuration did to them, and says what the test says. Must not: decide anything.

import type { ServiceConfig } from "../../../lib/config/service_config.ts";
import type { TriggerSource } from "../../../lib/core/event.ts";
import type { Refusal } from "../../../lib/core/refusal.ts";
import type { Fleet } from "../../../lib/runtime/fleet.ts";

export class FakeFleet implements Fleet {
  /** `use edge`, `trigger edge api`, in order. */
  readonly done: string[] = [];
  readonly configs = new Map<string, ServiceConfig>();
  readonly states = new Map<string, "running" | "leaving" | "ended">();
  preflights = new Map<string, Refusal>();
  open = 7;
  onTrigger: (name: string, source: TriggerSource, force: boolean) => string | undefined = (name) => `r-${name}`;

  constructor(names: readonly string[]) {
    for (const name of names) this.states.set(name, "running");
  }

  stateOf(name: string) {
    return this.states.get(name) ?? "absent";
  }

  preflight(name: string): Promise<Refusal | undefined> {
    this.done.push(`preflight ${name}`);
    return Promise.resolve(this.preflights.get(name));
  }

  connections(): Promise<number | undefined> {
    return Promise.resolve(this.open);
  }

  use(name: string, config: ServiceConfig): void {
    this.configs.set(name, config);
    this.done.push(`use ${name}`);
  }

  add(name: string, config: ServiceConfig): Promise<string | undefined> {
    this.configs.set(name, config);
    this.states.set(name, "running");
    this.done.push(`add ${name}`);
    return Promise.resolve(undefined);
  }

  remove(name: string): void {
    this.states.delete(name);
    this.done.push(`remove ${name}`);
  }

  trigger(name: string, source: TriggerSource, { force }: { readonly force: boolean }) {
    this.done.push(`trigger ${name} ${source}${force ? " force" : ""}`);
    const request = this.onTrigger(name, source, force);
    return request === undefined ? undefined : { request };
  }
}
