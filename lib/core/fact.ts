// Owns: what is worth telling about a step, as data: the one source of log, metrics, ledger and event stream.
// Must not: hold texts; lib/observe/catalogue.ts has those, one row a kind.

import type { Exit } from "./epoch.ts";
import type { Subject, TriggerSource } from "./event.ts";
import type { Refusal } from "./refusal.ts";
import type { StartCause } from "./state.ts";

/** `child`: not LIVE yet. `newest`: serves. `predecessor`: drains, its successor is LIVE. */
export type Role = "child" | "newest" | "predecessor";

/** One thing worth telling; its kind names it in log, metrics and event stream. */
export type Fact =
  | { readonly kind: "trigger_accepted"; readonly source: TriggerSource; readonly requests: readonly string[] }
  | {
    readonly kind: "trigger_coalesced";
    readonly source: TriggerSource;
    readonly requests: readonly string[];
    readonly waiting: number;
  }
  | {
    readonly kind: "trigger_deferred";
    readonly reason: "handoff" | "predecessor_drains" | "hung" | "min_gap" | "jitter";
    readonly waitMs?: number;
  }
  | {
    readonly kind: "trigger_dropped";
    readonly source: TriggerSource;
    readonly requests: readonly string[];
    readonly refusal: Refusal;
  }
  | { readonly kind: "content_changed"; readonly subject: Subject; readonly digest: string }
  | { readonly kind: "content_unusable"; readonly subject: Subject; readonly problem: string }
  | { readonly kind: "content_back"; readonly subject: Subject; readonly digest: string }
  | {
    readonly kind: "watch_changed";
    readonly subject: Subject;
    readonly mode: "events" | "polling";
    readonly why: string;
  }
  | { readonly kind: "start_began"; readonly epoch: number; readonly cause: StartCause }
  | {
    readonly kind: "handoff_began";
    readonly handoff: number;
    readonly from: number;
    readonly to: number;
    readonly source: TriggerSource;
    readonly requests: readonly string[];
  }
  | {
    readonly kind: "preflight_passed";
    readonly cached: boolean;
    readonly tookMs: number;
    readonly bootstrapDigest: string;
    readonly binaryDigest: string;
  }
  | { readonly kind: "preflight_refused"; readonly refusal: Refusal; readonly tookMs: number }
  | { readonly kind: "control_plane_awaited"; readonly epoch: number; readonly boundMs: number }
  | { readonly kind: "epoch_spawned"; readonly epoch: number; readonly attempt: number; readonly pid: number }
  | { readonly kind: "epoch_progress"; readonly epoch: number; readonly state: string; readonly tookMs: number }
  | {
    readonly kind: "epoch_live";
    readonly epoch: number;
    readonly pid: number;
    readonly version: string;
    readonly tookMs: number;
  }
  | {
    readonly kind: "epoch_exited";
    readonly epoch: number;
    readonly attempt: number;
    readonly pid?: number;
    readonly exit: Exit;
    readonly role: Role;
    readonly livedMs: number;
  }
  | {
    readonly kind: "epoch_ending";
    readonly epoch: number;
    readonly pid?: number;
    readonly signal: "SIGTERM" | "SIGKILL";
    readonly role: Role;
  }
  /** Instead of a handoff: the serving epoch drains, and epoch 0 of the new plan follows when it has ended. */
  | {
    readonly kind: "drained_restart";
    readonly handoff: number;
    readonly epoch: number;
    readonly connections: number | undefined;
    readonly boundMs: number;
    readonly requests: readonly string[];
  }
  /** LIVE at N+1: `tookMs` from the trigger's turn on. The predecessor drains from here, unless it has `drainedFirst`. */
  | {
    readonly kind: "handoff_live";
    readonly handoff: number;
    readonly from: number;
    readonly to: number;
    readonly requests: readonly string[];
    readonly tookMs: number;
    readonly drainedFirst?: true;
  }
  /** The predecessor has ended. */
  | {
    readonly kind: "handoff_done";
    readonly handoff: number;
    readonly from: number;
    readonly to: number;
    readonly requests: readonly string[];
    readonly drainedMs: number;
  }
  | {
    readonly kind: "handoff_failed";
    readonly handoff: number;
    readonly from: number;
    readonly to: number;
    readonly requests: readonly string[];
    readonly refusal: Refusal;
    readonly tookMs: number;
  }
  | {
    readonly kind: "successor_has_fewer";
    readonly epoch: number;
    readonly listeners: readonly [number, number];
    readonly clusters: readonly [number, number];
  }
  | { readonly kind: "segment_repaired"; readonly cleared: boolean }
  | { readonly kind: "segment_repair_failed"; readonly detail: string }
  | { readonly kind: "admin_lost"; readonly epoch: number; readonly policy: "handoff" | "keep" }
  | { readonly kind: "admin_back"; readonly epoch: number; readonly silentMs: number }
  | {
    readonly kind: "epoch_hung";
    readonly epoch: number;
    readonly silentMs: number;
    readonly policy: "report" | "kill";
    readonly detail: string;
  }
  | { readonly kind: "predecessor_overdue"; readonly epoch: number; readonly boundMs: number }
  /** For an epoch that died while it drained: its successor lives on. */
  | { readonly kind: "stand_in_began"; readonly epoch: number; readonly pid: number; readonly boundMs: number }
  | {
    readonly kind: "stand_in_ended";
    readonly epoch: number;
    readonly why: "terminated" | "bound_over" | "not_needed";
    readonly stoodMs: number;
  }
  /** `waitMs`: until it is tried again; absent: no more. */
  | { readonly kind: "stand_in_failed"; readonly epoch: number; readonly problem: string; readonly waitMs?: number }
  | { readonly kind: "third_generation"; readonly ends: number; readonly successor: number }
  | {
    readonly kind: "newest_died";
    readonly epoch: number;
    readonly exit: Exit;
    readonly answer: "exit" | "restart" | "revival" | "budget_used_up" | "rollback";
  }
  | { readonly kind: "service_gap"; readonly epoch: number; readonly refusedMs: number }
  | { readonly kind: "restart_paused"; readonly waitMs: number; readonly used: number; readonly budget: number }
  | { readonly kind: "retry_planned"; readonly waitMs: number; readonly tries: number; readonly limit: number }
  | { readonly kind: "stop_asked"; readonly source: string; readonly times: number }
  | {
    readonly kind: "drain_began";
    readonly epoch: number;
    readonly boundMs: number;
    readonly form: "fail_health" | "listeners" | "without_admin";
  }
  | { readonly kind: "drain_unanswered"; readonly epoch: number; readonly detail: string }
  | {
    readonly kind: "drain_ended";
    readonly epoch: number;
    readonly connections: number | undefined;
    readonly why: "quiet" | "time_over" | "asked_twice";
  }
  | { readonly kind: "ready_changed"; readonly ready: boolean; readonly epoch?: number }
  | { readonly kind: "marker_failed"; readonly problem: string }
  | { readonly kind: "marker_back" }
  | { readonly kind: "binary_not_kept"; readonly problem: string }
  | { readonly kind: "handoff_lock_awaited"; readonly waitedMs: number }
  | {
    readonly kind: "predecessor_sought";
    readonly slots: readonly number[];
    readonly boundMs: number;
    readonly why: string;
  }
  | {
    readonly kind: "predecessor_found";
    readonly epoch: number;
    readonly by: "admin" | "beat" | "sockets";
    readonly pod?: string;
  }
  | {
    readonly kind: "settings_adopted";
    readonly concurrency: number;
    readonly parentShutdownTimeMs: number;
    readonly pod: string;
  }
  /** Started by a supervisor that is gone, and not LIVE: it is given what is left of its time. */
  | { readonly kind: "orphan_awaited"; readonly epoch: number; readonly pid: number; readonly boundMs: number }
  | {
    readonly kind: "orphan_ending";
    readonly epoch: number;
    readonly pid: number;
    readonly signal: "SIGTERM" | "SIGKILL";
    readonly why: "not_live" | "stop";
  }
  | { readonly kind: "foreign_ended"; readonly epoch: number; readonly drainedMs: number }
  /** Before its successor told it to: killed, or crashed. */
  | { readonly kind: "foreign_lost"; readonly epoch: number; readonly drainedMs: number }
  | { readonly kind: "foreign_overdue"; readonly epoch: number; readonly boundMs: number }
  | { readonly kind: "successor_attached"; readonly epoch: number; readonly to: number }
  | { readonly kind: "successor_awaited"; readonly epoch: number; readonly boundMs: number }
  | { readonly kind: "successor_vanished"; readonly epoch: number; readonly wasLive: boolean }
  | {
    readonly kind: "superseded";
    readonly epoch: number;
    readonly successor: number;
    readonly policy: "wait" | "exit";
  }
  | { readonly kind: "publish_failed"; readonly problem: string }
  | { readonly kind: "publish_back" }
  | { readonly kind: "logs_reopened"; readonly epochs: readonly number[] }
  | { readonly kind: "late_answer"; readonly of: string; readonly attempt: number }
  | { readonly kind: "ended"; readonly exitCode: ExitCode; readonly reason: string };

/** 0 stopped as asked; 1 newest died; 3 first start failed preflight; 4 not LIVE in time (2 and 70 are the shell's). */
export type ExitCode = 0 | 1 | 3 | 4;
