// Owns: everything that can happen to a service, as data. Must not: carry handles, promises or functions.

import type { Exit, Identity, Plan } from "./epoch.ts";
import type { Refusal } from "./refusal.ts";
import type { Sighting } from "./sighting.ts";

/** Who asked for a new epoch. `recovery` and `retry` are epochd itself; `push` and `rollback` switched the executable before. */
export type TriggerSource =
  | "signal"
  | "bootstrap"
  | "binary"
  | "config"
  | "api"
  | "push"
  | "recovery"
  | "rollback"
  | "retry";

/** A wish for a new epoch. */
export interface Trigger {
  readonly source: TriggerSource;
  /** Names of callers that wait for the outcome (API requests). */
  readonly requests: readonly string[];
  /** `always`: a new epoch even when nothing changed (SIGHUP, API). `changed`: only for other content. */
  readonly when: "always" | "changed";
  /** Go on although the serving epoch's control plane is away. */
  readonly force: boolean;
  /** Drain what serves, end it and start afresh: for what can't hand over. */
  readonly drained?: boolean;
  /** 0 to 1, drawn by the shell (the core has no randomness): the part of `jitterMs` to wait. */
  readonly jitter: number;
}

/** What can be watched. */
export type Subject = "bootstrap" | "binary";

/** What a watched path holds now. */
export type Content =
  | { readonly kind: "usable"; readonly digest: string }
  | { readonly kind: "unusable"; readonly problem: string };

/** What came of asking /server_info on a fresh connection. */
export type IdentityAnswer =
  | { readonly kind: "answered"; readonly identity: Identity }
  | { readonly kind: "silent"; readonly why: SilenceWhy; readonly detail: string };

/**
 * `refused`: nobody listens (the admin was given up). `timeout`: somebody listens and says nothing. `unasked`: epochd itself could not
 * ask (too many open files), which says nothing about Envoy.
 */
export type SilenceWhy = "refused" | "timeout" | "garbage" | "unasked";

/** What /stats says of the control plane and of what is loaded; absent where Envoy has no such stat. */
export interface Inventory {
  /** `control_plane.connected_state`: absent without xDS over gRPC. */
  readonly controlPlaneConnected?: boolean;
  readonly listeners: number;
  readonly clusters: number;
}

/** Downstream connections of every listener but admin's. */
export interface Connections {
  readonly active: number;
  /** Accepted since the start: grows while new ones arrive. */
  readonly total: number;
}

/** One timer a name; setting it again replaces the one that runs. */
export type TimerName =
  | "backoff"
  | "connections"
  | "deadline"
  | "debounce"
  | "debounce_max"
  | "drain"
  | "heartbeat"
  | "jitter"
  | "kill"
  | "leaving"
  | "look"
  | "marker"
  | "min_gap"
  | "poll"
  | "pre_drain"
  | "predecessor"
  | "retry"
  | "stand_in"
  | "watchdog";

/** What happened, without its time. */
export type Happening =
  | { readonly kind: "start" }
  | { readonly kind: "trigger"; readonly trigger: Trigger }
  /** `jitter`: see Trigger; drawn by the shell for the trigger that this may become. */
  | { readonly kind: "content"; readonly subject: Subject; readonly content: Content; readonly jitter: number }
  | { readonly kind: "watch"; readonly subject: Subject; readonly mode: "events" | "polling"; readonly why: string }
  /** Nobody watches it any more, or elsewhere. */
  | { readonly kind: "unwatched"; readonly subject: Subject }
  /** The settings of this step are new ones. */
  | { readonly kind: "settings" }
  | { readonly kind: "stop"; readonly source: string }
  | { readonly kind: "reopen_logs" }
  | { readonly kind: "preflight_passed"; readonly attempt: number; readonly plan: Plan; readonly cached: boolean }
  | {
    readonly kind: "preflight_refused";
    readonly attempt: number;
    readonly refusal: Refusal;
    /** What was looked at, where both could be read: remembered, so that it is not tried in a loop. */
    readonly looked?: { readonly bootstrapDigest: string; readonly binaryDigest: string };
  }
  | { readonly kind: "spawned"; readonly attempt: number; readonly pid: number }
  | { readonly kind: "spawn_failed"; readonly attempt: number; readonly refusal: Refusal }
  | { readonly kind: "child_exited"; readonly attempt: number; readonly exit: Exit }
  | { readonly kind: "identity"; readonly attempt: number; readonly askedAtMs: number; readonly answer: IdentityAnswer }
  /** `undefined`: admin did not answer the question. */
  | { readonly kind: "inventory"; readonly attempt: number; readonly inventory: Inventory | undefined }
  | { readonly kind: "connections"; readonly attempt: number; readonly connections: Connections | undefined }
  | ({ readonly kind: "vitals"; readonly attempt: number } & Vitals)
  | { readonly kind: "drain_answered"; readonly attempt: number; readonly ok: boolean; readonly detail: string }
  | { readonly kind: "segment_repaired"; readonly attempt: number; readonly outcome: RepairOutcome }
  | { readonly kind: "stand_in_began"; readonly attempt: number; readonly pid: number }
  | { readonly kind: "stand_in_ended"; readonly attempt: number; readonly end: StandInEnd }
  | { readonly kind: "marker"; readonly problem: string | undefined }
  | { readonly kind: "binary_not_kept"; readonly attempt: number; readonly problem: string }
  | { readonly kind: "handoff_lock"; readonly attempt: number; readonly taken: boolean; readonly problem?: string }
  | { readonly kind: "sighted"; readonly askedAtMs: number; readonly sighting: Sighting }
  | { readonly kind: "published"; readonly problem: string | undefined }
  | { readonly kind: "timer"; readonly name: TimerName };

/** What process and sockets say of an Envoy. */
export interface Vitals {
  /** It runs, and holds its hot restart socket. */
  readonly alive: boolean;
  readonly detail: string;
  /** Which listening sockets it holds; absent where that can't be seen. */
  readonly listens?: { readonly admin: boolean; readonly traffic: boolean };
}

/** `terminated`: by the successor's protocol. `failed`: it was never there, or is there no longer. */
export type StandInEnd =
  | { readonly kind: "terminated" }
  | { readonly kind: "bound_over" }
  | { readonly kind: "name_taken"; readonly problem: string }
  | { readonly kind: "failed"; readonly problem: string };

/** `clean`: the flag was not set. */
export type RepairOutcome =
  | { readonly kind: "clean" }
  | { readonly kind: "cleared" }
  | { readonly kind: "failed"; readonly detail: string };

/** A happening and its time: milliseconds of a clock that never jumps (not the wall clock). */
export type Event = Happening & { readonly atMs: number };
