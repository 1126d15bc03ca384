// Owns: the settings that decisions depend on, in the core's own units. Must not: parse, or know files and flags.

/** Times in milliseconds; ranges and defaults are those of lib/config/service_schema.ts. */
export interface Settings {
  readonly debounceMs: number;
  /** A file that never rests is taken after this long all the same. */
  readonly debounceMaxMs: number;
  readonly drainTimeMs: number;
  readonly parentShutdownTimeMs: number;
  readonly liveTimeoutMs: number;
  /** Silence of a serving epoch's admin after which it counts as hung. */
  readonly watchdogMs: number;
  readonly markerRefreshMs: number;
  /** Least time between two LIVEs; `parent_shutdown_time`: until the predecessor has ended. 0 cuts its connections. */
  readonly minGapMs: number | "parent_shutdown_time";
  readonly onCrash: "exit" | "restart";
  /** Restarts in place within `crashWindowMs` before giving up. */
  readonly crashBudget: number;
  readonly crashWindowMs: number;
  readonly onLostAdmin: "handoff" | "keep";
  readonly onHang: "report" | "kill";
  readonly preDrainDelayMs: number;
  /** How long a handoff waits for the serving epoch's control plane to come back. */
  readonly controlPlaneWaitMs: number;
  /** 0: off. A new plan whose epoch dies this soon is rolled back to the last good one. */
  readonly rollbackWithinMs: number;
  /** 0: off. Another executable, pushed or put in its slot, is rolled back when its epoch dies this soon, whatever `rollback` says. */
  readonly binaryTrialMs: number;
  /** Tries of a plan that passed preflight and failed to run, beyond the first. */
  readonly retryLimit: number;
  readonly retryBackoffMs: number;
  /** Longest random delay before a handoff that content changes asked for; 0: off. */
  readonly jitterMs: number;
  /** State directory, base id and network are shared with another pod's supervisor. */
  readonly crossPod: boolean;
  /** What a supervisor does whose Envoy was succeeded by another one's: in a pod, leaving would restart the container. */
  readonly whenSuperseded: "wait" | "exit";
  /** How long the pod lives after SIGTERM; 0: no bound is known. */
  readonly gracePeriodMs: number;
  /** `serve`: Envoys outlive their supervisor, so the state directory may speak of some that are nobody's. */
  readonly onSupervisorDeath: "end" | "serve";
}
