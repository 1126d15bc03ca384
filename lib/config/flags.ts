// Owns: which flag sets which field, and how a flag's text becomes the field's value.
// Must not: check values (the schema does), or know the library that splits the command line.

import type { FieldDescription } from "./field.ts";
import { apiFieldDescriptions, logFieldDescriptions } from "./schema.ts";
import { serviceFieldDescriptions } from "./service_schema.ts";

/** By flag name without dashes: texts as given, `false` for `--no-...`, all texts of a repeatable flag. */
export type FlagValues = Readonly<Record<string, string | boolean | readonly string[]>>;

export type Section = "service" | "api" | "log";

export interface Flag {
  readonly section: Section;
  readonly field: FieldDescription;
}

export const runFlags: readonly Flag[] = [
  ...serviceFieldDescriptions.map((field): Flag => ({ section: "service", field })),
  ...apiFieldDescriptions.map((field): Flag => ({ section: "api", field })),
  ...logFieldDescriptions.map((field): Flag => ({ section: "log", field })),
];

export interface GivenFlag extends Flag {
  readonly value: unknown;
}

/** Flags that set fields; others (`config`) are the caller's. */
export function givenFlags(values: FlagValues): readonly GivenFlag[] {
  return runFlags.flatMap((flag) => {
    const value = values[flag.field.flag];
    return value === undefined ? [] : [{ ...flag, value: fieldValue(flag.field, value) }];
  });
}

/** A whole number becomes one; anything else stays as it was given, so that the message shows it. */
function fieldValue(field: FieldDescription, value: string | boolean | readonly string[]): unknown {
  return field.form === "integer" && typeof value === "string" && /^[+-]?\d{1,15}$/.test(value) ? Number(value) : value;
}
