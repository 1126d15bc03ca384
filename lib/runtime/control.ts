// Owns: what API and command line may ask of a running supervisor. Must not: know HTTP.

import type { ServiceStatus } from "../core/status.ts";
import type { TriggerSource } from "../core/event.ts";
import type { ConfigSummary } from "./config_summary.ts";
import type { Census } from "../observe/observed.ts";
import type { Observer, RecordedFact } from "../observe/record.ts";
import type { UpgradeStatus } from "./upgrade_status.ts";

export interface SupervisorStatus {
  readonly version: string;
  readonly pid: number;
  /** Unix milliseconds. */
  readonly startedAtMs: number;
  readonly stopping: boolean;
  /** Absent where nobody keeps one. */
  readonly config?: ConfigSummary;
  readonly services: Readonly<Record<string, ServiceStatus>>;
  /** By service, where they were asked for and Envoy answered. */
  readonly connections?: Readonly<Record<string, Census>>;
  /** The file that this supervisor runs; absent where it runs from source. */
  readonly executable?: string;
  /** The last change of epochd itself that was begun here. */
  readonly upgrade?: UpgradeStatus;
}

/** `force`: although the control plane is away. `drained`: without a handoff, see DrainedRestart. */
export interface RestartOptions {
  readonly force: boolean;
  readonly drained?: boolean;
}

export interface Control {
  status(): SupervisorStatus;
  /** Asks for a new epoch; the answer names the request, which facts carry in `requests`. */
  trigger(
    service: string,
    source: TriggerSource,
    options: RestartOptions,
  ): { readonly request: string } | undefined;
  /** Past records still held (a bounded ring) with `seq` greater than `afterSeq`, then every new one; the result ends it. */
  subscribe(observer: Observer, afterSeq?: number): () => void;
  recent(): readonly RecordedFact[];
}
