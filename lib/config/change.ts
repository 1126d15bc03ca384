// Owns: what asking for another configuration comes to, as values. Must not: decide or apply.

import type { Written } from "./written.ts";
import type { FieldChange, ServiceAction, Verdict } from "./lifecycle.ts";
import type { Problem } from "./problem.ts";

/** Names are API, beside those of lib/core/refusal.ts. */
export type ConfigRefusalName =
  | "config_file_changed"
  | "config_invalid"
  | "config_no_file"
  | "config_read_only"
  | "etag_differs"
  | "history_unknown"
  | "preflight_failed"
  | "service_leaving"
  | "static_parameter"
  | "stopping"
  | "unknown_service";

/** A field that can't change while epochd runs. */
export interface StaticField {
  readonly field: string;
  readonly running?: Written;
  readonly asked?: Written;
  readonly why: string;
  readonly remedy: string;
}

export interface ConfigRefusal {
  readonly name: ConfigRefusalName;
  /** One line: what, the value, what to do. */
  readonly detail: string;
  readonly problems?: readonly Problem[];
  readonly fields?: readonly StaticField[];
  readonly service?: string;
  /** Of the preflight that said no. */
  readonly refusal?: string;
}

export interface ServiceOutcome {
  readonly action: ServiceAction;
  /** Names the trigger, where there was one: facts carry it. */
  readonly request?: string;
  /** Open now, of the epoch that would be replaced or end; only where it was asked what would happen. */
  readonly connections?: number;
}

export interface ChangeDone {
  readonly kind: "done";
  readonly dryRun: boolean;
  readonly verdict: Exclude<Verdict, "refused">;
  readonly changes: readonly FieldChange[];
  readonly services: Readonly<Record<string, ServiceOutcome>>;
  /** Of the configuration that runs then: its ETag. */
  readonly digest: string;
  /** Whether epochd.yaml says the same now. */
  readonly persisted: boolean;
}

export type ChangeOutcome = ChangeDone | { readonly kind: "refused"; readonly refusal: ConfigRefusal };

export function refuseChange(
  name: ConfigRefusalName,
  detail: string,
  more: Omit<ConfigRefusal, "name" | "detail"> = {},
): { readonly kind: "refused"; readonly refusal: ConfigRefusal } {
  return { kind: "refused", refusal: { name, detail, ...more } };
}
