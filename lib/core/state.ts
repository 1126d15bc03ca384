// Owns: the state of one service between two events. Must not: hold what can be derived (view.ts does that).

import type { Child, Epoch, Exit, Plan } from "./epoch.ts";
import type { Connections, Content, Inventory, Subject, TriggerSource } from "./event.ts";
import type { ExitCode } from "./fact.ts";
import type { Refusal } from "./refusal.ts";

export type WaitReason = "handoff" | "predecessor_drains" | "min_gap" | "jitter";

/** Triggers that wait for their turn, merged: the newest desired state is read when the turn comes. */
export interface Pending {
  readonly sources: readonly TriggerSource[];
  readonly requests: readonly string[];
  readonly when: "always" | "changed";
  readonly force: boolean;
  readonly sinceMs: number;
  readonly notBeforeMs: number;
  /** Why it waits, told once a reason. */
  readonly told: WaitReason | undefined;
}

export interface Handoff {
  readonly id: number;
  readonly source: TriggerSource;
  readonly requests: readonly string[];
  readonly when: "always" | "changed";
  readonly force: boolean;
  readonly beganAtMs: number;
}

/** An epoch whose successor is LIVE: Envoy's protocol ends it, epochd only reaps it. */
export interface Predecessor {
  readonly epoch: Epoch;
  readonly handoff: Handoff;
  readonly drainsSinceMs: number;
}

/** How the serving epoch is known to be well. */
export type Health =
  | { readonly kind: "answering" }
  | { readonly kind: "silent"; readonly sinceMs: number }
  | { readonly kind: "hung"; readonly sinceMs: number }
  /** A failed successor took the admin away: requests go on, judged by process and sockets. */
  | { readonly kind: "admin_lost"; readonly sinceMs: number; readonly recoveries: number };

export type StartCause = "first" | "crash" | "revival";

export type StartStep =
  | { readonly kind: "preflight"; readonly attempt: number; readonly beganAtMs: number }
  | { readonly kind: "initialising"; readonly child: Child; readonly told: string }
  | { readonly kind: "ending"; readonly child: Child; readonly refusal: Refusal }
  | { readonly kind: "repairing"; readonly attempt: number; readonly refusal: Refusal; readonly exit: Exit }
  /** The first epoch died: a full preflight finds the reason worth telling. */
  | { readonly kind: "diagnosing"; readonly attempt: number; readonly beganAtMs: number; readonly exit: Exit };

export type ReplaceStep =
  | { readonly kind: "preflight"; readonly attempt: number; readonly beganAtMs: number }
  | { readonly kind: "awaiting_control_plane"; readonly attempt: number; readonly plan: Plan; readonly told: boolean }
  | {
    readonly kind: "initialising";
    readonly child: Child;
    readonly told: string;
    readonly before: Inventory | undefined;
  }
  | { readonly kind: "ending"; readonly child: Child; readonly refusal: Refusal }
  | { readonly kind: "repairing"; readonly attempt: number; readonly plan: Plan; readonly refusal: Refusal }
  | { readonly kind: "checking_admin"; readonly plan: Plan; readonly refusal: Refusal; readonly sinceMs: number };

export type StopStep =
  | { readonly kind: "ending_child" }
  | { readonly kind: "pre_drain" }
  | { readonly kind: "draining"; readonly last: Connections | undefined; readonly quietPolls: number }
  | { readonly kind: "awaiting_predecessor" }
  | { readonly kind: "terminating" };

/** What is needed to start an epoch that follows a death. */
export interface Comeback {
  readonly cause: StartCause;
  readonly number: number;
  /** Absent at the very first start: preflight makes it. */
  readonly plan: Plan | undefined;
  /** Drains, and hands its sockets to a revived successor. */
  readonly parent: Predecessor | undefined;
  /** Since when nobody accepts connections. */
  readonly gapSinceMs: number | undefined;
  readonly tries: number;
}

export type Phase =
  | { readonly kind: "idle" }
  | { readonly kind: "starting"; readonly comeback: Comeback; readonly step: StartStep }
  | { readonly kind: "pausing"; readonly comeback: Comeback }
  | Serving
  | Replacing
  | Stopping
  | { readonly kind: "ended"; readonly exitCode: ExitCode; readonly reason: string };

export interface Serving {
  readonly kind: "serving";
  readonly epoch: Epoch;
  readonly predecessor: Predecessor | undefined;
  readonly health: Health;
  /** What the predecessor had, to be compared once with what this epoch has. */
  readonly compare: Inventory | undefined;
}

export interface Replacing {
  readonly kind: "replacing";
  readonly from: Epoch;
  readonly health: Health;
  readonly handoff: Handoff;
  readonly predecessor: Predecessor | undefined;
  readonly step: ReplaceStep;
}

export interface Stopping {
  readonly kind: "stopping";
  readonly exitCode: ExitCode;
  readonly reason: string;
  readonly times: number;
  /** Not LIVE: ended first, so that nobody has an attached successor. */
  readonly child: Child | undefined;
  readonly newest: Epoch | undefined;
  readonly predecessor: Predecessor | undefined;
  readonly step: StopStep;
}

export interface Refused {
  readonly refusal: Refusal;
  readonly bootstrapDigest: string | undefined;
  readonly binaryDigest: string | undefined;
  readonly atMs: number;
  readonly tries: number;
}

export interface State {
  readonly phase: Phase;
  /** The last attempt and the last handoff that were numbered. */
  readonly attempts: number;
  readonly handoffs: number;
  readonly pending: Pending | undefined;
  readonly seen: Readonly<Partial<Record<Subject, Content>>>;
  readonly watch: Readonly<Partial<Record<Subject, "events" | "polling">>>;
  readonly debouncing: { readonly jitter: number } | undefined;
  /** Newest first, at most `REFUSED_KEPT`. */
  readonly refused: readonly Refused[];
  /** Handoff to be tried again by the `retry` timer. */
  readonly retry: { readonly when: "always" | "changed"; readonly tries: number } | undefined;
  /** Plans that were LIVE, newest first, at most two: the running one and the last good one before it. */
  readonly proven: readonly Plan[];
  /** When epochs were started in place after a death. */
  readonly crashesAtMs: readonly number[];
  readonly reopenWanted: boolean;
  readonly markerProblem: string | undefined;
  readonly lateAnswers: number;
}

export const REFUSED_KEPT = 16;

export const initialState: State = {
  phase: { kind: "idle" },
  attempts: 0,
  handoffs: 0,
  pending: undefined,
  debouncing: undefined,
  retry: undefined,
  markerProblem: undefined,
  seen: {},
  watch: {},
  refused: [],
  proven: [],
  crashesAtMs: [],
  reopenWanted: false,
  lateAnswers: 0,
};
