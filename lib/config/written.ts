// Owns: a checked configuration as one would write it: `30000` ms is `30s`, with every default in place.
// Must not: parse, check or compare.

import type { AdminAddress } from "../core/epoch.ts";
import { formatDuration } from "./duration.ts";
import type { FieldDescription } from "./field.ts";
import type { CrashBudget, Rollback } from "./scalars.ts";
import { apiFieldDescriptions, type ConfigFields, logFieldDescriptions } from "./schema.ts";
import { stateDirOf } from "./service_config.ts";
import { serviceFieldDescriptions } from "./service_schema.ts";

/** A field's value in YAML or JSON. */
export type Written = string | number | boolean | readonly string[];
export type WrittenFields = Readonly<Record<string, Written>>;

/** What the API shows: PUT takes it back as it is. */
export interface WrittenConfig {
  readonly services: Readonly<Record<string, WrittenFields>>;
  readonly api: WrittenFields;
  readonly log: WrittenFields;
}

export function writtenConfig(fields: ConfigFields): WrittenConfig {
  const services = Object.entries(fields.services).map(([name, service]) => {
    const whole = { ...service, state_dir: stateDirOf(name, service) };
    return [name, writtenFields(serviceFieldDescriptions, whole)] as const;
  });
  return {
    services: Object.fromEntries(services),
    api: writtenFields(apiFieldDescriptions, fields.api),
    log: writtenFields(logFieldDescriptions, fields.log),
  };
}

/** Fields without a value are absent. */
function writtenFields(
  descriptions: readonly FieldDescription[],
  values: Readonly<Record<string, unknown>>,
): WrittenFields {
  const entries = descriptions.flatMap(({ key, unit }) =>
    values[key] === undefined ? [] : [[key, writtenValue(unit, values[key])] as const]
  );
  return Object.fromEntries(entries);
}

function writtenValue(unit: "ms" | undefined, value: unknown): Written {
  if (typeof value === "number") return unit === "ms" ? formatDuration(value) : value;
  if (typeof value === "string" || typeof value === "boolean") return value;
  if (Array.isArray(value)) return value.map((one) => String(writtenValue(undefined, one)));
  return writtenObject(value as object);
}

function writtenObject(value: object): Written {
  if ("withinMs" in value || ("kind" in value && value.kind === "off")) return writtenRollback(value as Rollback);
  if ("windowMs" in value) {
    const { restarts, windowMs } = value as CrashBudget;
    return `${restarts} in ${formatDuration(windowMs)}`;
  }
  if ("text" in value) return String(value.text);
  return writtenAddress(value as AdminAddress);
}

function writtenRollback(rule: Rollback): string {
  return rule.kind === "off" ? "off" : `on-crash-within ${formatDuration(rule.withinMs)}`;
}

function writtenAddress(address: AdminAddress): string {
  if (address.kind === "unix") return `unix:${address.path}`;
  return address.host.includes(":") ? `[${address.host}]:${address.port}` : `${address.host}:${address.port}`;
}
