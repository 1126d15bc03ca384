// Owns: what the runtime needs of the world, as interfaces. Must not: import an adapter or Deno.
// Every call reports its outcome by resolving: an expected failure is a value, only a bug rejects.

import type { AdminAddress, Exit, Plan } from "../core/epoch.ts";
import type {
  Connections,
  Content,
  IdentityAnswer,
  Inventory,
  RepairOutcome,
  StandInEnd,
  Vitals,
} from "../core/event.ts";
import type { Refusal } from "../core/refusal.ts";
import type { Owner, Question, Sighting } from "../core/sighting.ts";
import type { ChildSignal } from "../core/effect.ts";

/** Time that never jumps; the wall clock is for people. */
export interface Clock {
  /** Milliseconds of a monotonic clock. */
  nowMs(): number;
  /** Unix milliseconds. */
  wallMs(): number;
  /** Calls back once after `afterMs`; the result cancels it. */
  after(afterMs: number, fire: () => void): () => void;
}

export interface SpawnRequest {
  readonly epoch: number;
  readonly plan: Plan;
  readonly sameBinaryAsPid?: number;
}

export type Spawned =
  | { readonly kind: "spawned"; readonly process: ChildProcess }
  | { readonly kind: "failed"; readonly refusal: Refusal };

export interface ChildProcess {
  readonly pid: number;
  /** Resolves when the process was reaped; never rejects. */
  readonly exit: Promise<Exit>;
  /** False when it has already ended: a reaped pid is never signalled. */
  signal(signal: ChildSignal): boolean;
}

/** Synchronous on purpose: the pid is known before any other event can be looked at. */
export interface Processes {
  spawn(request: SpawnRequest): Spawned;
  /** Keeps the binary that `pid` runs startable, and only those of `keepDigests`; the problem, or undefined. */
  keepBinary(
    binary: { readonly digest: string; readonly path: string; readonly pid: number },
    keepDigests: readonly string[],
  ): string | undefined;
}

/** Every question on a connection of its own (a draining parent answers for ever on old ones), never through a proxy. */
export interface Admin {
  identity(admin: AdminAddress): Promise<IdentityAnswer>;
  inventory(admin: AdminAddress, controlPlaneClusters?: readonly string[]): Promise<Inventory | undefined>;
  connections(admin: AdminAddress): Promise<Connections | undefined>;
  drain(
    admin: AdminAddress,
    form: "fail_health" | "listeners",
  ): Promise<{ readonly ok: boolean; readonly detail: string }>;
}

export interface PreflightRequest {
  readonly depth: "first" | "full";
  readonly hotRestartVersion?: string;
  readonly provenKeys: readonly string[];
  /** To join another pod's Envoy: it lives on this base id on purpose. */
  readonly joining: boolean;
  /** `proof` of the plan that serves there. */
  readonly proven?: string;
}

export type PreflightOutcome =
  | { readonly kind: "passed"; readonly plan: Plan; readonly cached: boolean }
  | {
    readonly kind: "refused";
    readonly refusal: Refusal;
    readonly looked?: { readonly bootstrapDigest: string; readonly binaryDigest: string };
  };

export interface Preflight {
  /** `signal` aborts: children of the preflight are ended. */
  run(request: PreflightRequest, signal: AbortSignal): Promise<PreflightOutcome>;
  prune(keepDigests: readonly string[]): Promise<void>;
}

export interface Segment {
  /** Clears INITIALIZING (bit 0 of the u64 at offset 96). */
  repair(): Promise<RepairOutcome>;
  vitals(pid: number, epoch: number, admin: AdminAddress): Promise<Vitals>;
}

/** Whatever answers an Envoy in place of its parent. */
export interface StandIn {
  /** Its pid once it answers; undefined where it never did. */
  readonly began: Promise<number | undefined>;
  readonly end: Promise<StandInEnd>;
  stop(): void;
}

export interface StandIns {
  /** For the epoch that died; ends by itself after `boundMs`. */
  begin(asked: { readonly epoch: number; readonly boundMs: number; readonly isPrecaution?: true }): StandIn;
}

export interface ReadyMarker {
  /** Resolves to the problem, or undefined. Atomic; the content names epoch and pid. */
  write(epoch: number): Promise<string | undefined>;
  remove(): Promise<string | undefined>;
}

export interface WatchedContent {
  /** Reports the content once at the start of the watch and then whenever its digest or its usability changes. */
  watch(
    path: string,
    report: (content: Content) => void,
    mode: (mode: "events" | "polling", why: string) => void,
  ): { close(): void };
}

/** The state directory as two supervisors of one base id share it. */
export interface PodState {
  look(question: Question): Promise<Sighting>;
  /** Heartbeat and owner.json; resolves to the problem, or undefined. */
  publish(told: Pick<Owner, "epoch" | "ready" | "admin" | "envoyVersion" | "proof">): Promise<string | undefined>;
  /** handoff.lock: held from before a spawn until LIVE, or until reaped and repaired. */
  takeHandoffLock(waitMs: number): Promise<{ readonly taken: boolean; readonly problem?: string }>;
  releaseHandoffLock(): void;
  /** What has become of it by then shows at the next look. */
  signalOrphan(
    orphan: { readonly pid: number; readonly signal: ChildSignal; readonly unlessLive: boolean },
  ): Promise<void>;
}
