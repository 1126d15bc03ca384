// Owns: the shape in which a service is shown to people and programs. Must not: be stored; view.ts derives it.

import type { Refusal } from "./refusal.ts";
import type { Role } from "./fact.ts";
import type { TriggerSource } from "./event.ts";

/** One living Envoy. */
export interface EpochStatus {
  readonly epoch: number;
  readonly attempt: number;
  readonly role: Role;
  readonly pid?: number;
  /** For example `1.40.0`; absent until LIVE. */
  readonly version?: string;
  readonly bootstrapDigest: string;
  readonly binaryDigest: string;
  readonly admin: string;
  readonly ageMs: number;
  readonly liveForMs?: number;
  /** Of a predecessor: when its successor ends it, whatever it still holds. */
  readonly endsInMs?: number;
}

/** One service at one moment. */
export interface ServiceStatus {
  readonly phase:
    | "idle"
    | "starting"
    | "serving"
    | "replacing"
    | "pausing"
    | "stopping"
    | "detecting"
    | "yielding"
    | "superseded"
    | "ended";
  /** Where in the phase, for example `preflight`, `initialising`, `draining`. */
  readonly step?: string;
  readonly ready: boolean;
  /** Why not ready, or what is odd although it is. */
  readonly note?: string;
  readonly epochs: readonly EpochStatus[];
  /** Its Envoys outlive this supervisor. */
  readonly outlivesSupervisor?: true;
  /** Answers the newest epoch in place of its predecessor, which died while it drained. */
  readonly standIn?: { readonly epoch: number; readonly pid: number; readonly forMs: number };
  /** Handoffs begun since the start of this supervisor. */
  readonly handoffs: number;
  readonly waiting?: { readonly sources: readonly TriggerSource[]; readonly forMs: number };
  /** Newest first: what was refused and will not be tried again by itself. */
  readonly refused: readonly {
    readonly refusal: Refusal;
    readonly bootstrapDigest?: string;
    readonly binaryDigest?: string;
    readonly agoMs: number;
  }[];
  readonly watch: readonly {
    readonly subject: "bootstrap" | "binary";
    readonly mode: "events" | "polling";
    readonly content: string;
  }[];
  readonly exitCode?: number;
}

/** What a person has to know of what was refused: all since the serving epoch is LIVE. Before it, it is history. */
export function standingRefusals({ epochs, refused }: ServiceStatus): ServiceStatus["refused"] {
  const liveForMs = epochs.find(({ role }) => role === "newest")?.liveForMs ?? Infinity;
  return refused.filter(({ agoMs }) => agoMs <= liveForMs);
}
