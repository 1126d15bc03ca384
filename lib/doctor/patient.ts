// Owns: what the doctor looks at: one service's settings, where the machine's files are, and the supervisor that runs it, if one does.
// Must not: look.

import type { ServiceConfig } from "../config/service_config.ts";
import type { AdminAddress, Identity } from "../core/epoch.ts";
import type { EpochStatus } from "../core/status.ts";

/** The epoch that serves now. */
export interface Serving {
  readonly pid: number;
  readonly epoch: number;
  readonly admin: AdminAddress;
  /** Absent where its admin does not answer. */
  readonly identity?: Identity;
}

export interface Patient {
  readonly service: string;
  readonly config: ServiceConfig;
  /** Absent: nobody runs it, the settings are those of flags and file. */
  readonly supervisor?: { readonly pid: number; readonly epochs: readonly EpochStatus[] };
  readonly serving?: Serving;
  /** In a Kubernetes pod. */
  readonly inPod: boolean;
  /** Stands before every path of the machine, for tests. */
  readonly root: string;
}

export function readText(path: string): string | undefined {
  try {
    return Deno.readTextFileSync(path);
  } catch {
    return undefined;
  }
}

export function showBytes(bytes: number): string {
  const mebi = bytes / 1_048_576;
  return mebi >= 1024 ? `${(mebi / 1024).toFixed(1)} GiB` : `${mebi.toFixed(0)} MiB`;
}
