// Owns: every field of epochd.yaml as a row of a table, for pages that people read. Must not: know the form of the page.

import type { FieldDescription, Lifecycle } from "./field.ts";
import { apiFieldDescriptions, logFieldDescriptions } from "./schema.ts";
import { serviceFieldDescriptions } from "./service_schema.ts";

export interface FieldRow {
  /** `services.NAME.drain_time`. */
  readonly field: string;
  readonly flag: string;
  readonly lifecycle: Lifecycle;
  readonly default: string;
  readonly description: string;
}

export function configFieldRows(): readonly FieldRow[] {
  return [
    ...serviceFieldDescriptions.map((field) => row("services.NAME", field)),
    ...apiFieldDescriptions.map((field) => row("api", field)),
    ...logFieldDescriptions.map((field) => row("log", field)),
  ];
}

function row(section: string, { key, flag, lifecycle, required, description, ...field }: FieldDescription): FieldRow {
  const value = field.default ?? field.defaultText ?? (required ? "required" : "");
  return { field: `${section}.${key}`, flag: `--${flag}`, lifecycle, default: String(value), description };
}
