// Owns: the schema of epochd.yaml for editors and programs: JSON Schema with `x-lifecycle`. Must not: check anything.

import * as z from "zod";
import type { FieldDescription, FieldMeta } from "./field.ts";
import { apiFieldDescriptions, configSchema, logFieldDescriptions } from "./schema.ts";
import { serviceFieldDescriptions } from "./service_schema.ts";

type JsonSchema = z.core.JSONSchema.BaseSchema;

const texts = { lifecycle: "x-lifecycle", unit: "x-unit", defaultText: "x-default" } as const;
const unsaid = ["placeholder", "flag", "expected", "staticWhy", ...Object.keys(texts)];

export function configJsonSchema(): JsonSchema {
  const schema = z.toJSONSchema(configSchema, {
    io: "input",
    override: ({ zodSchema, jsonSchema }) => describe(jsonSchema, z.globalRegistry.get(zodSchema)),
  });
  const { services, api, log } = schema.properties as Readonly<Record<string, JsonSchema>>;
  addFlags(services!.additionalProperties as JsonSchema, serviceFieldDescriptions);
  addFlags(api!, apiFieldDescriptions);
  addFlags(log!, logFieldDescriptions);
  return { title: "epochd.yaml", ...schema };
}

function addFlags({ properties = {} }: JsonSchema, fields: readonly FieldDescription[]): void {
  for (const { key, flag } of fields) (properties[key] as JsonSchema)["x-flag"] = `--${flag}`;
}

/** zod copies what a field is described by; only what is of use outside stays, under names of its own. */
export function describe(jsonSchema: JsonSchema, meta: unknown): void {
  const { ...given } = (meta ?? {}) as Partial<FieldMeta>;
  for (const [key, name] of Object.entries(texts)) {
    const value = given[key as keyof typeof texts];
    if (value !== undefined) jsonSchema[name] = value;
  }
  for (const key of unsaid) delete jsonSchema[key];
}
