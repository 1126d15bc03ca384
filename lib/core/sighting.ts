// Owns: what one supervisor can see of another one of the same base id, as data. Must not: decide by it; predecessor.ts does.

import type { AdminAddress, Identity } from "./epoch.ts";
import type { Launches } from "./orphan.ts";

/** `owner.json`: what the serving supervisor says of itself. */
export interface Owner {
  readonly epoch: number;
  /** Its marker is fresh: it serves and its predecessor is gone. */
  readonly ready: boolean;
  readonly admin: AdminAddress;
  readonly baseId: number;
  readonly concurrency: number;
  readonly drainTimeMs: number;
  readonly parentShutdownTimeMs: number;
  /** How long its pod lives after SIGTERM; 0: no bound is known. */
  readonly gracePeriodMs: number;
  readonly uid: number;
  /** /proc/sys/kernel/random/boot_id: a file of another boot speaks of processes that are gone. */
  readonly bootId: string;
  /** Drawn at the start of the supervisor: pids repeat across PID namespaces. */
  readonly instance: string;
  readonly pod: string;
  readonly version: string;
  readonly envoyVersion: string;
  /** `proof` of the plan that serves. */
  readonly proof?: string | undefined;
}

/** The `epoch` file, its age by the wall clock that both supervisors share; negative: from the future. */
export type HeartbeatSeen =
  | { readonly kind: "none" }
  | { readonly kind: "beat"; readonly epoch: number; readonly ageMs: number };

/** What a look is to find out beside files and sockets. */
export interface Question {
  /** Where admin is asked for its identity, beside the address that the owner gives; absent: nobody is asked. */
  readonly admin?: AdminAddress;
  /** Ask at the owner's address although no other is known. */
  readonly askOwner?: boolean;
  /** Whether somebody else holds handoff.lock. */
  readonly probeLock: boolean;
}

/** Everything at one moment. */
export interface Sighting {
  readonly heartbeat: HeartbeatSeen;
  readonly owner?: Owner;
  /** This supervisor's own instance wrote owner.json. */
  readonly mine: boolean;
  /** The owner is of this boot of the machine; absent without an owner. */
  readonly sameBoot?: boolean;
  /** Slots (epoch modulo 3) with a parent socket: an Envoy lives there, whoever its supervisor is. */
  readonly slots: readonly number[];
  /** What /server_info says on a fresh connection. */
  readonly identity?: Pick<Identity, "epoch" | "state" | "hotRestartVersion" | "concurrency">;
  /** handoff.lock is held by somebody else: a successor is on its way. */
  readonly handoffUnderWay?: boolean;
  /** Absent where Envoys end with their supervisor. */
  readonly launches?: Launches;
  /** owner.json is about another base id, and an Envoy lives there: the state directory is that one's. */
  readonly otherBase?: { readonly baseId: number; readonly pod: string };
}
