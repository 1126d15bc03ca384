// Owns: what an epoch is and what it runs. Must not: know how it is started or asked.

/** Where Envoy's admin listens, as epochd reaches it. */
export type AdminAddress =
  | { readonly kind: "tcp"; readonly host: string; readonly port: number }
  | { readonly kind: "unix"; readonly path: string };

/** What an epoch runs, fixed once it was prepared: the same plan gives the same Envoy again. */
export interface Plan {
  /** sha256 (hex) over bootstrap, binary and arguments: equal keys are the same Envoy. */
  readonly key: string;
  readonly bootstrapDigest: string;
  readonly binaryDigest: string;
  /** The snapshot in the state directory, named by its digest: what was validated is what runs. */
  readonly bootstrapPath: string;
  readonly binaryPath: string;
  readonly admin: AdminAddress;
  /** Clusters by which its control plane is reached over gRPC. */
  readonly controlPlaneClusters?: readonly string[];
  /** Equal in another supervisor's plan where that one would be the same Envoy; absent where more than bootstrap and binary count. */
  readonly proof?: string;
  /** What its flags say: settings that changed since then hold for the next plan. */
  readonly drainTimeMs?: number;
  readonly parentShutdownTimeMs?: number;
}

/** How a process ended, as wait(2) tells it. */
export interface Exit {
  /** 0 to 255, or 128 + signal number. `unknown`: of a process that is not this one's child, where the kernel tells nobody else. */
  readonly code: number | "unknown";
  readonly signal?: string;
}

/** Where nobody knows how it ended, its time and what is there after it must tell whether the protocol ended it. */
export function mayBeClean({ code, signal }: Exit): boolean {
  return (code === 0 && signal === undefined) || code === "unknown";
}

/** One Envoy process, from spawn on. `attempt` names it for ever; `number` (--restart-epoch) may be tried twice. */
export interface Child {
  readonly attempt: number;
  readonly number: number;
  readonly plan: Plan;
  readonly spawnedAtMs: number;
  /** Absent until the operating system has told it. */
  readonly pid?: number;
}

/** A child that answered LIVE at its own epoch number. */
export interface Epoch extends Child {
  readonly liveAtMs: number;
  /** As /server_info tells it, for example `<sha>/1.40.0/Clean/RELEASE/BoringSSL`. */
  readonly version: string;
  /** `hot_restart_version` of /server_info; a successor's binary must print the same. */
  readonly hotRestartVersion: string;
}

/** What /server_info said on a fresh connection. */
export interface Identity {
  readonly epoch: number;
  readonly state: "LIVE" | "DRAINING" | "PRE_INITIALIZING" | "INITIALIZING";
  readonly version: string;
  readonly hotRestartVersion: string;
  /** Worker threads by its flags; absent where it doesn't say. */
  readonly concurrency?: number;
}
