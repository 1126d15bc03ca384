// Owns: what it takes to get from one configuration to another, by the lifecycle of what differs. Pure.
// Must not: refuse, apply, or know where a configuration came from.

import type { FieldDescription, Lifecycle } from "./field.ts";
import { apiFieldDescriptions, logFieldDescriptions } from "./schema.ts";
import { serviceFieldDescriptions } from "./service_schema.ts";
import type { Written, WrittenConfig, WrittenFields } from "./written.ts";

export interface FieldChange {
  /** `services.edge.drain_time`. */
  readonly field: string;
  /** The service whose field it is; absent for `api` and `log`. */
  readonly service?: string;
  readonly lifecycle: Lifecycle;
  /** Absent: there is no value. */
  readonly running?: Written;
  readonly asked?: Written;
}

export interface ConfigDiff {
  /** Of services that are in both. */
  readonly changes: readonly FieldChange[];
  readonly added: readonly string[];
  readonly removed: readonly string[];
}

/** What becomes of one service. */
export type ServiceAction = "none" | "dynamic" | "hot_restart" | "add" | "remove";

/** How the whole change takes effect: the heaviest of what it is made of. */
export type Verdict = "unchanged" | "dynamic" | "hot_restart" | "refused";

export function diffConfigs(running: WrittenConfig, asked: WrittenConfig): ConfigDiff {
  const before = Object.keys(running.services);
  const after = Object.keys(asked.services);
  const both = before.filter((name) => Object.hasOwn(asked.services, name));
  return {
    changes: [
      ...both.flatMap((name) =>
        diffFields(
          serviceFieldDescriptions,
          `services.${name}`,
          running.services[name]!,
          asked.services[name]!,
          name,
        )
      ),
      ...diffFields(apiFieldDescriptions, "api", running.api, asked.api),
      ...diffFields(logFieldDescriptions, "log", running.log, asked.log),
    ],
    added: after.filter((name) => !Object.hasOwn(running.services, name)),
    removed: before.filter((name) => !Object.hasOwn(asked.services, name)),
  };
}

function diffFields(
  descriptions: readonly FieldDescription[],
  section: string,
  running: WrittenFields,
  asked: WrittenFields,
  service?: string,
): readonly FieldChange[] {
  return descriptions.flatMap(({ key, lifecycle }) => {
    const [before, after] = [running[key], asked[key]];
    if (sameValue(before, after)) return [];
    return [{
      field: `${section}.${key}`,
      lifecycle,
      ...(service === undefined ? {} : { service }),
      ...(before === undefined ? {} : { running: before }),
      ...(after === undefined ? {} : { asked: after }),
    }];
  });
}

export function sameValue(one: unknown, other: unknown): boolean {
  return one === other || JSON.stringify(one) === JSON.stringify(other);
}

export function isUnchanged({ changes, added, removed }: ConfigDiff): boolean {
  return changes.length + added.length + removed.length === 0;
}

export function staticChanges({ changes }: ConfigDiff): readonly FieldChange[] {
  return changes.filter(({ lifecycle }) => lifecycle === "static");
}

export function actionOf(diff: ConfigDiff, service: string): ServiceAction {
  if (diff.added.includes(service)) return "add";
  if (diff.removed.includes(service)) return "remove";
  const own = diff.changes.filter((change) => change.service === service);
  if (own.some(({ lifecycle }) => lifecycle === "hot-restart")) return "hot_restart";
  return own.length > 0 ? "dynamic" : "none";
}

export function verdictOf(diff: ConfigDiff): Verdict {
  if (isUnchanged(diff)) return "unchanged";
  if (staticChanges(diff).length > 0) return "refused";
  return diff.changes.some(({ lifecycle }) => lifecycle === "hot-restart") ? "hot_restart" : "dynamic";
}
