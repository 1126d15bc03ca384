// Owns: the state of one service between two events. Must not: hold what can be derived (view.ts does that).

import type { Detecting, Superseded, Yielding } from "./pod_phases.ts";
import type { Child, Epoch, Exit, Plan } from "./epoch.ts";
import type { Connections, Content, Inventory, Subject, TriggerSource } from "./event.ts";
import type { ExitCode } from "./fact.ts";
import type { Orphan } from "./orphan.ts";
import type { StandIn } from "./standing.ts";
import type { Refusal } from "./refusal.ts";

/** Why a trigger waits for its turn. */
export type WaitReason = "handoff" | "predecessor_drains" | "hung" | "min_gap" | "jitter";

/** Triggers that wait for their turn, merged: the newest desired state is read when the turn comes. */
export interface Pending {
  readonly sources: readonly TriggerSource[];
  readonly requests: readonly string[];
  readonly when: "always" | "changed";
  readonly force: boolean;
  readonly drained?: boolean;
  readonly sinceMs: number;
  readonly notBeforeMs: number;
  /** Why it waits, told once a reason. */
  readonly told: WaitReason | undefined;
}

/** One handoff, from its turn on; `id` counts up by one. */
export interface Handoff {
  readonly id: number;
  readonly source: TriggerSource;
  readonly requests: readonly string[];
  readonly when: "always" | "changed";
  readonly force: boolean;
  readonly drained?: boolean;
  /** Tries before this one, where it is one of epochd's own. */
  readonly tries: number;
  /** Another executable that comes by it has to prove itself. */
  readonly onTrial: boolean;
  readonly beganAtMs: number;
}

/** An epoch whose successor is LIVE: Envoy's protocol ends it, epochd only reaps it. */
export interface Predecessor {
  readonly epoch: Epoch;
  readonly handoff: Handoff;
  readonly drainsSinceMs: number;
  /** How often its successor was started again. */
  readonly revivals: number;
}

/** How the serving epoch is known to be well. */
export type Health =
  | { readonly kind: "answering" }
  | { readonly kind: "silent"; readonly sinceMs: number; readonly lost: AdminLost | undefined }
  /** `by`: what must speak again before it counts as well. `lost`: its admin was gone before. */
  | {
    readonly kind: "hung";
    readonly sinceMs: number;
    readonly by: "admin" | "vitals";
    readonly lost: AdminLost | undefined;
  }
  | AdminLost;

/** A failed successor took the admin away: requests go on, judged by process and sockets. */
export interface AdminLost {
  readonly kind: "admin_lost";
  readonly sinceMs: number;
  /** Successors of the same plan that failed since then. */
  readonly recoveries: number;
  /** Since when process or sockets are not as they should be. */
  readonly unwellSinceMs: number | undefined;
}

/** `join`: succeeds another pod's epoch. `drained`: see DrainedRestart. */
export type StartCause = "first" | "crash" | "revival" | "join" | "drained";

/** A restart without a handoff, from the drain of `from` until epoch 0 of `plan` is LIVE. */
export interface DrainedRestart {
  readonly handoff: Handoff;
  readonly from: Epoch;
  readonly plan: Plan;
  /** When the drain began, and when the last Envoy was gone. */
  readonly sinceMs: number;
  readonly endedAtMs?: number;
}

/** Another pod's epoch that this supervisor's newest succeeds: seen by its sockets only. */
export interface Foreign {
  readonly epoch: number;
  readonly sinceMs: number;
  readonly boundMs: number;
  /** Its supervisor is gone: nobody else is Ready for it, or ends it when it hangs. */
  readonly orphanPid?: number;
}

/** A child between spawn and LIVE, as far as it was seen. */
export interface Initialising {
  readonly kind: "initialising";
  readonly child: Child;
  /** The state that was last told; empty until the child's own admin has answered. */
  readonly told: string;
  /** When the deadline passed: only an answer to a question from then on condemns a child that may be LIVE by now. */
  readonly deadlineAtMs: number | undefined;
}

/** Where a start is. */
export type StartStep =
  /** Shared base id: its parent may get another pod's successor at any time; one of the two must come first. */
  | {
    readonly kind: "locking";
    readonly attempt: number;
    readonly sinceMs: number;
    readonly lockedAtMs: number | undefined;
  }
  | { readonly kind: "preflight"; readonly attempt: number; readonly beganAtMs: number }
  | Initialising
  | { readonly kind: "ending"; readonly child: Child; readonly refusal: Refusal }
  | { readonly kind: "repairing"; readonly attempt: number; readonly refusal: Refusal; readonly exit: Exit }
  /** The newest died while its failed successor was being put away: first that one's process, then the flag it left. */
  | { readonly kind: "clearing"; readonly attempt: number; readonly child: Child | undefined }
  /** The first epoch died: a full preflight finds the reason worth telling. */
  | { readonly kind: "diagnosing"; readonly attempt: number; readonly beganAtMs: number; readonly exit: Exit };

/** The plan has passed; it is forked when the serving epoch's control plane is there. */
export interface AwaitingControlPlane {
  readonly kind: "awaiting_control_plane";
  readonly attempt: number;
  readonly plan: Plan;
  readonly told: boolean;
  /** An earlier repair had failed and is tried again first: no child may start before its answer. */
  readonly isRepairing: boolean;
}

/** Where a handoff is. */
export type ReplaceStep =
  | { readonly kind: "preflight"; readonly attempt: number; readonly beganAtMs: number }
  /** A drained restart: whom it would cut is asked first. */
  | { readonly kind: "counting"; readonly attempt: number; readonly plan: Plan }
  | AwaitingControlPlane
  /** Shared base id: first the lock, then a look that nobody else's successor came before. */
  | {
    readonly kind: "locking";
    readonly attempt: number;
    readonly plan: Plan;
    readonly before: Inventory | undefined;
    readonly lockedAtMs: number | undefined;
    /** Nobody came before: what somebody's dead child left is cleared first. */
    readonly isRepairing: boolean;
  }
  | Initialising & { readonly before: Inventory | undefined }
  | { readonly kind: "ending"; readonly child: Child; readonly refusal: Refusal; readonly tookAdmin: boolean }
  | {
    readonly kind: "repairing";
    readonly attempt: number;
    readonly plan: Plan;
    readonly refusal: Refusal;
    /** The child answered at its own epoch, so the serving epoch's admin is gone for certain. */
    readonly tookAdmin: boolean;
    /** When the child was reaped, and how it had ended. */
    readonly sinceMs: number;
    readonly exit: Exit;
  }
  | {
    readonly kind: "checking_admin";
    readonly plan: Plan;
    readonly refusal: Refusal;
    readonly sinceMs: number;
    readonly exit: Exit;
    /** INITIALIZING was not set: the child died before it came to that, or after it. */
    readonly isClean: boolean;
  };

/** Where a stop is. */
export type StopStep =
  | { readonly kind: "ending_child" }
  /** Shared base id: somebody may be starting a successor right now. */
  | { readonly kind: "awaiting_successor"; readonly sinceMs: number; readonly told: boolean }
  | { readonly kind: "pre_drain" }
  | { readonly kind: "draining"; readonly last: Connections | undefined; readonly quietPolls: number }
  | { readonly kind: "awaiting_predecessor" }
  /** Shared base id: one last look before the newest is signalled, under handoff.lock where it can be had. */
  | { readonly kind: "verifying"; readonly lockedAtMs: number | undefined }
  | { readonly kind: "terminating" }
  /** All that was this supervisor's own is gone; what others have left on this base id goes as well. */
  | {
    readonly kind: "ending_orphans";
    readonly sinceMs: number;
    readonly attempt: number | undefined;
    readonly newest: Orphan | undefined;
    readonly stage: "looking" | "draining" | "ending";
  };

/** What is needed to start an epoch that follows a death. */
export interface Comeback {
  readonly cause: StartCause;
  readonly number: number;
  /** Absent at the very first start: preflight makes it. */
  readonly plan: Plan | undefined;
  /** Drains, and hands its sockets to a revived successor. */
  readonly parent: Predecessor | undefined;
  readonly foreign: Foreign | undefined;
  /** Since when nobody accepts connections. */
  readonly gapSinceMs: number | undefined;
  readonly tries: number;
  readonly drained?: DrainedRestart | undefined;
}

/** What the service is at; everything it knows of living Envoys is in here or in `leaving`. */
export type Phase =
  | { readonly kind: "idle" }
  | { readonly kind: "starting"; readonly comeback: Comeback; readonly step: StartStep }
  | { readonly kind: "pausing"; readonly comeback: Comeback }
  | Serving
  | Replacing
  | Stopping
  | Detecting
  | Yielding
  | Superseded
  | { readonly kind: "ended"; readonly exitCode: ExitCode; readonly reason: string };

/** One epoch serves; its predecessor may drain. */
export interface Serving {
  readonly kind: "serving";
  readonly epoch: Epoch;
  readonly predecessor: Predecessor | undefined;
  readonly health: Health;
  /** Drains in another pod; this one is ready when it is gone. */
  readonly foreign: Foreign | undefined;
  /** How often it was started again beside another pod's predecessor. */
  readonly rejoins?: number | undefined;
  /** What the predecessor had, to be compared once with what this epoch has. */
  readonly compare: Inventory | undefined;
}

/** `from` serves while its successor is made. */
export interface Replacing {
  readonly kind: "replacing";
  readonly from: Epoch;
  readonly health: Health;
  readonly handoff: Handoff;
  readonly predecessor: Predecessor | undefined;
  readonly step: ReplaceStep;
}

/** The way out; `times` counts how often it was asked for, 0: the service ends by itself. */
export interface Stopping {
  readonly kind: "stopping";
  readonly exitCode: ExitCode;
  readonly reason: string;
  readonly times: number;
  /** Not LIVE: ended first, so that nobody has an attached successor. */
  readonly child: Child | undefined;
  readonly newest: Epoch | undefined;
  /** Without a newest: its successor is dead, and it is the last one that is ended. */
  readonly predecessor: Predecessor | undefined;
  /** Another pod's predecessor, which the newest ends by protocol and must outlive. */
  readonly foreign?: Foreign | undefined;
  /** This is no end: what starts when the last Envoy is gone. */
  readonly after?: DrainedRestart;
  /** The flag of a dead child is being cleared, for which the lock is held. */
  readonly isRepairing?: boolean;
  readonly step: StopStep;
}

/** What was refused, so that the same content is not tried in a loop. */
export interface Refused {
  readonly refusal: Refusal;
  readonly bootstrapDigest: string | undefined;
  readonly binaryDigest: string | undefined;
  readonly atMs: number;
  readonly tries: number;
}

/** Another executable became LIVE and has not proved itself yet. */
export interface BinaryTrial {
  readonly binaryDigest: string;
  /** What served before it. */
  readonly before: Plan;
  readonly untilMs: number;
  /** It came by a drained restart: neither of the two can hand over to the other. */
  readonly drained: boolean;
}

/** All that one service knows between two events. */
export interface State {
  readonly phase: Phase;
  /** The last attempt and the last handoff that were numbered. */
  readonly attempts: number;
  readonly handoffs: number;
  readonly pending: Pending | undefined;
  readonly seen: Readonly<Partial<Record<Subject, Content>>>;
  readonly seenChangedAtMs: number;
  readonly watch: Readonly<Partial<Record<Subject, "events" | "polling">>>;
  readonly debouncing: { readonly jitter: number; readonly subject: Subject } | undefined;
  /** Newest first, at most `REFUSED_KEPT`. */
  readonly refused: readonly Refused[];
  /** Handoff to be tried again by the `retry` timer. */
  readonly retry: { readonly when: "always" | "changed"; readonly tries: number } | undefined;
  /** Plans that were LIVE, newest first, at most two: the running one and the last good one before it. */
  readonly proven: readonly Plan[];
  readonly trial: BinaryTrial | undefined;
  /** When epochs were started in place after a death. */
  readonly crashesAtMs: readonly number[];
  /** Third generations, ended by protocol when their successor's successor started, and not reaped yet. */
  readonly leaving: readonly Predecessor[];
  readonly standIn: StandIn | undefined;
  /** The last repair failed: INITIALIZING may still be set, and the next child would die of it. */
  readonly flagLeft: boolean;
  /** handoff.lock is ours. */
  readonly handoffLock: boolean;
  readonly publishProblem: string | undefined;
  readonly reopenWanted: boolean;
  readonly markerProblem: string | undefined;
  readonly lateAnswers: number;
}

/** Refused contents remembered. */
export const REFUSED_KEPT = 16;

/** Before the `start` event. */
export const initialState: State = {
  phase: { kind: "idle" },
  attempts: 0,
  handoffs: 0,
  pending: undefined,
  debouncing: undefined,
  retry: undefined,
  markerProblem: undefined,
  seen: {},
  seenChangedAtMs: 0,
  watch: {},
  refused: [],
  proven: [],
  trial: undefined,
  crashesAtMs: [],
  leaving: [],
  standIn: undefined,
  flagLeft: false,
  handoffLock: false,
  publishProblem: undefined,
  reopenWanted: false,
  lateAnswers: 0,
};
