// Owns: what a change of the configuration may do to services at work, as an interface. Must not: import an adapter.

import type { ServiceConfig } from "../config/service_config.ts";
import type { TriggerSource } from "../core/event.ts";
import type { Refusal } from "../core/refusal.ts";

export interface Fleet {
  /** `leaving`: removed and still draining. `ended`: added later, and it never was LIVE. */
  stateOf(name: string): "absent" | "running" | "leaving" | "ended";
  /** Whether an epoch by this configuration would pass its checks; nothing is started. */
  preflight(name: string, config: ServiceConfig): Promise<Refusal | undefined>;
  /** Open connections of the epoch that serves; undefined where it can't be asked. */
  connections(name: string): Promise<number | undefined>;
  /** Dynamic settings hold at once, the others from the next epoch on. */
  use(name: string, config: ServiceConfig): void;
  /** Starts it; resolves to the problem where a directory can't be used. */
  add(name: string, config: ServiceConfig): Promise<string | undefined>;
  /** Drains it and lets it go. */
  remove(name: string): void;
  trigger(
    name: string,
    source: TriggerSource,
    options: { readonly force: boolean },
  ): { readonly request: string } | undefined;
}
