// Owns: one service's settings in code's names: `drain_time` becomes `drainTimeMs`. Must not: list them again.

import type { Settings } from "../core/settings.ts";
import type { Milliseconds } from "./scalars.ts";
import { defaultStateDir, onlyService, serviceFieldDescriptions, type ServiceFields } from "./service_schema.ts";

type Camel<S extends string> = S extends `${infer Head}_${infer Tail}` ? `${Head}${Capitalize<Camel<Tail>>}` : S;
type Name<K extends string, V> = [Extract<V, Milliseconds>] extends [never] ? Camel<K> : `${Camel<K>}Ms`;
type Plain<V> = V extends Milliseconds ? number : V extends (infer E)[] ? readonly E[] : V;

/** Fields without a value are absent, not undefined. */
export type ServiceConfig =
  & {
    readonly [K in keyof ServiceFields as Name<K, ServiceFields[K]>]: Plain<ServiceFields[K]>;
  }
  & { readonly stateDir: string };

const names: ReadonlyMap<string, string> = new Map(
  serviceFieldDescriptions.map(({ key, unit }) => [
    key,
    key.replaceAll(/_([a-z])/g, (_, letter: string) => letter.toUpperCase()) + (unit === "ms" ? "Ms" : ""),
  ]),
);

export function toServiceConfig(name: string, given: ServiceFields): ServiceConfig {
  // Whoever comes after a supervisor that was killed takes over from its Envoy as one pod's takes over from another's.
  const cross_pod = given.cross_pod || given.on_supervisor_death === "serve";
  const fields: ServiceFields = { ...given, cross_pod, state_dir: stateDirOf(name, given) };
  const entries = Object.entries(fields).filter(([, value]) => value !== undefined);
  return Object.fromEntries(entries.map(([key, value]) => [names.get(key)!, value])) as unknown as ServiceConfig;
}

/** Two services never share one: each prunes what the other would start. */
export function stateDirOf(name: string, fields: ServiceFields): string {
  return fields.state_dir ?? (name === onlyService ? defaultStateDir : `${defaultStateDir}-${name}`);
}

/** A changing file is taken after this long all the same. */
const debounceMaxMs = 5_000;
/** A third of what counts as too old, so that two writes may fail. */
const markerRefreshMs = 2_000;
const retryBackoffMs = 1_000;

/** kubelet gives this variable to every container. */
export function isInPod(): boolean {
  return Deno.env.get("KUBERNETES_SERVICE_HOST") !== undefined;
}

/** What the core decides by. */
export function toSettings(config: ServiceConfig, inPod = isInPod()): Settings {
  return {
    debounceMs: config.debounceMs,
    debounceMaxMs,
    drainTimeMs: config.drainTimeMs,
    parentShutdownTimeMs: config.parentShutdownTimeMs,
    liveTimeoutMs: config.liveTimeoutMs,
    watchdogMs: config.watchdogMs,
    markerRefreshMs,
    minGapMs: config.minGapMs,
    onCrash: config.onCrash,
    crashBudget: config.crashBudget.restarts,
    crashWindowMs: config.crashBudget.windowMs,
    onLostAdmin: config.onLostAdmin,
    onHang: config.onHang,
    preDrainDelayMs: config.preDrainDelayMs,
    controlPlaneWaitMs: config.controlPlaneWaitMs,
    rollbackWithinMs: config.rollback.kind === "off" ? 0 : config.rollback.withinMs,
    binaryTrialMs: config.slotsDir === undefined ? 0 : config.binaryTrialMs,
    retryLimit: config.retryLimit,
    retryBackoffMs,
    jitterMs: config.jitterMs,
    crossPod: config.crossPod,
    whenSuperseded: config.whenSuperseded ?? (inPod ? "wait" : "exit"),
    gracePeriodMs: config.gracePeriodMs,
    onSupervisorDeath: config.onSupervisorDeath,
  };
}
