// Owns: everything a service may ask of the world, as data. Must not: perform anything.

import type { AdminAddress, Plan } from "./epoch.ts";
import type { TimerName } from "./event.ts";
import type { Question } from "./sighting.ts";

/** `SIGUSR1` reopens Envoy's access logs; `SIGTERM` ends it in under a second (not a drain); `SIGKILL` is the last word. */
export type ChildSignal = "SIGTERM" | "SIGKILL" | "SIGUSR1" | "SIGCONT";

/** One thing to be done outside; its outcome, where it has one, comes back as an event. */
export type Effect =
  /**
   * Read, digest, snapshot, check. `first`: nothing serves yet, so only what is cheap is checked and Envoy itself is the judge;
   * `full`: an epoch serves, so binary, hot restart version and `--mode validate` come before the fork.
   */
  | {
    readonly kind: "preflight";
    readonly attempt: number;
    readonly depth: "first" | "full";
    /** The serving epoch's `hot_restart_version`; the next binary must print the same. */
    readonly hotRestartVersion?: string;
    /** Plans that have been LIVE: validated by the best judge, never validated again. */
    readonly provenKeys: readonly string[];
    /** To join another pod's Envoy: the segment is shared on purpose, and only its owner is checked. */
    readonly joining?: boolean;
    /** What serves there: the same plan needs no more checks. */
    readonly proven?: string;
  }
  /** The answer is not wanted any more; processes of that preflight are ended. */
  | { readonly kind: "cancel_preflight"; readonly attempt: number }
  | {
    readonly kind: "spawn";
    readonly attempt: number;
    readonly epoch: number;
    readonly plan: Plan;
    /** A living process of the same plan: its /proc/PID/exe is the binary even when the file was replaced. */
    readonly sameBinaryAsPid?: number;
  }
  /** Epoch and attempt stay paired with the process: a reused pid is never signalled. */
  | { readonly kind: "signal"; readonly attempt: number; readonly signal: ChildSignal }
  | { readonly kind: "ask_identity"; readonly attempt: number; readonly admin: AdminAddress }
  | {
    readonly kind: "ask_inventory";
    readonly attempt: number;
    readonly admin: AdminAddress;
    readonly controlPlaneClusters?: readonly string[];
  }
  | { readonly kind: "ask_connections"; readonly attempt: number; readonly admin: AdminAddress }
  /** Judge an epoch whose admin is gone: by its process and its hot restart sockets. */
  | {
    readonly kind: "ask_vitals";
    readonly attempt: number;
    readonly epoch: number;
    readonly admin: AdminAddress;
  }
  /** `fail_health`: POST /healthcheck/fail. `listeners`: POST /drain_listeners?graceful. */
  | {
    readonly kind: "drain";
    readonly attempt: number;
    readonly admin: AdminAddress;
    readonly form: "fail_health" | "listeners";
  }
  /** Clear INITIALIZING in the shared segment. Only after the dead child was reaped and with no other child starting. */
  | { readonly kind: "repair_segment"; readonly attempt: number }
  /** Answer the successor of `epoch`, which died while it drained, in its place, until it tells it to terminate. */
  | {
    readonly kind: "stand_in";
    readonly attempt: number;
    readonly epoch: number;
    readonly boundMs: number;
    /** The next supervisor would make one of its own. */
    readonly isPrecaution?: true;
  }
  | { readonly kind: "end_stand_in"; readonly attempt: number }
  /** handoff.lock: one successor at a time on this base id, whoever starts it. Gives up after `waitMs`. */
  | { readonly kind: "take_handoff_lock"; readonly attempt: number; readonly waitMs: number }
  | { readonly kind: "release_handoff_lock" }
  /** Heartbeat, owner, sockets and admin at one moment. */
  | ({ readonly kind: "look" } & Question)
  /** Heartbeat and owner.json. */
  | {
    readonly kind: "publish";
    readonly epoch: number;
    readonly ready: boolean;
    readonly admin: AdminAddress;
    readonly envoyVersion: string;
    readonly proof?: string;
  }
  /** An Envoy whose supervisor is gone. `unlessLive`: only as long as it initialises. */
  | { readonly kind: "signal_orphan"; readonly pid: number; readonly signal: ChildSignal; readonly unlessLive: boolean }
  /** What this supervisor's epochs take over from the one they join; without values: nothing any more. */
  | { readonly kind: "adopt"; readonly concurrency?: number; readonly parentShutdownTimeMs?: number }
  | { readonly kind: "write_marker"; readonly epoch: number }
  | { readonly kind: "remove_marker" }
  /** Remove snapshots of other digests: what may still be started again stays. */
  | { readonly kind: "prune_snapshots"; readonly keepDigests: readonly string[] }
  /** Keep the binary that this attempt runs startable, whatever becomes of its file; let go of others. */
  | {
    readonly kind: "keep_binary";
    readonly attempt: number;
    readonly digest: string;
    readonly path: string;
    readonly keepDigests: readonly string[];
  }
  | { readonly kind: "set_timer"; readonly name: TimerName; readonly afterMs: number }
  | { readonly kind: "clear_timer"; readonly name: TimerName };
