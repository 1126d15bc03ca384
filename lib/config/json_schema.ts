// Owns: the schema of epochd.yaml for editors and programs: JSON Schema with `x-lifecycle`. Must not: check anything.

import * as z from "zod";
import type { FieldMeta } from "./field.ts";
import { configSchema } from "./schema.ts";

type JsonSchema = z.core.JSONSchema.BaseSchema;

const texts = { lifecycle: "x-lifecycle", unit: "x-unit", flag: "x-flag", defaultText: "x-default" } as const;
const unsaid = ["placeholder", "expected", "staticWhy", ...Object.keys(texts)];

export function configJsonSchema(): JsonSchema {
  const schema = z.toJSONSchema(configSchema, {
    io: "input",
    override: ({ zodSchema, jsonSchema }) => describe(jsonSchema, z.globalRegistry.get(zodSchema)),
  });
  return { title: "epochd.yaml", ...schema };
}

/** zod copies what a field is described by; only what is of use outside stays, under names of its own. */
export function describe(jsonSchema: JsonSchema, meta: unknown): void {
  const { ...given } = (meta ?? {}) as Partial<FieldMeta>;
  for (const [key, name] of Object.entries(texts)) {
    const value = given[key as keyof typeof texts];
    if (value !== undefined) jsonSchema[name] = key === "flag" ? `--${value}` : value;
  }
  for (const key of unsaid) delete jsonSchema[key];
}
