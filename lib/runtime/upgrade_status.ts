// Owns: what is told of a change of epochd itself, and the names of what is refused. Must not: decide.

/** Names are API, as those of lib/core/refusal.ts. */
export type UpgradeRefusalName =
  | "busy"
  | "configuration_refused"
  | "executable_fails"
  | "executable_missing"
  | "executable_not_executable"
  | "executable_wrong"
  | "not_cross_pod"
  | "not_serving"
  | "outlives_no_main_process"
  | "preflight_refused"
  | "spawn_failed"
  | "stays_when_superseded"
  | "stopping"
  | "would_restart_container";

export interface UpgradeRefusal {
  readonly name: UpgradeRefusalName;
  readonly detail: string;
}

export interface UpgradeStatus {
  /** `starting`: the other one comes up. `taken_over`: its epochs serve. `failed`: this supervisor serves on. */
  readonly phase: "starting" | "taken_over" | "failed";
  readonly executable: string;
  readonly version: string;
  readonly pid: number;
  /** What the new supervisor says of its services, by name. */
  readonly services?: Readonly<Record<string, string>>;
  /** Why it failed. */
  readonly detail?: string;
}

export function refuseUpgrade(name: UpgradeRefusalName, detail: string): {
  readonly kind: "refused";
  readonly refusal: UpgradeRefusal;
} {
  return { kind: "refused", refusal: { name, detail } };
}

export type UpgradeOutcome =
  | { readonly kind: "started"; readonly executable: string; readonly version: string; readonly pid: number }
  /** With `dryRun`: nothing stands in the way. */
  | { readonly kind: "possible"; readonly executable: string; readonly version: string }
  | { readonly kind: "refused"; readonly refusal: UpgradeRefusal };

/** What the API may ask. */
export interface UpgradeControl {
  readonly status: UpgradeStatus | undefined;
  /** The file that this supervisor runs; "" where that is no file of epochd's own. */
  readonly runningExecutable: string;
  begin(executable: string, who: string, dryRun: boolean): Promise<UpgradeOutcome>;
}
