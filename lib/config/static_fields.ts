// Owns: how a change of what can't change is refused: field, both values, why, what to do. Must not: find the changes.

import type { StaticField } from "./change.ts";
import type { FieldChange } from "./lifecycle.ts";
import { apiFieldDescriptions, logFieldDescriptions } from "./schema.ts";
import { serviceFieldDescriptions } from "./service_schema.ts";
import { shown } from "./shown_value.ts";
import type { Written } from "./written.ts";

export function staticField(change: FieldChange): StaticField {
  const { field, service, running, asked } = change;
  const key = field.slice(field.lastIndexOf(".") + 1);
  const fields = service !== undefined
    ? serviceFieldDescriptions
    : field.startsWith("api.")
    ? apiFieldDescriptions
    : logFieldDescriptions;
  const why = fields.find((one) => one.key === key)?.staticWhy ?? "it is fixed when epochd starts";
  const remedy = service === undefined
    ? "start a new supervisor with it"
    : "start a new supervisor with it, or remove the service and add one of another name";
  return { field, ...values(running, asked), why, remedy };
}

/** A value that a flag or the environment of this supervisor gives stands over file and API. */
export function pinnedField(field: string, by: string, running: Written | undefined, asked: unknown): StaticField {
  const given = typeof asked === "string" || typeof asked === "number" || typeof asked === "boolean"
    ? asked
    : JSON.stringify(asked);
  return {
    field,
    ...values(running, given),
    why: `${by} of this supervisor sets it and wins over file and API`,
    remedy: `start a new supervisor without ${by}`,
  };
}

export function staticDetail(fields: readonly StaticField[]): string {
  const texts = fields.map(({ field, running, asked, why, remedy }) =>
    `${field} is ${shown(running)} and can't become ${shown(asked)}: ${why}; ${remedy}`
  );
  return `nothing was changed: ${texts.join(". ")}`;
}

function values(running: Written | undefined, asked: Written | undefined) {
  return { ...(running === undefined ? {} : { running }), ...(asked === undefined ? {} : { asked }) };
}
