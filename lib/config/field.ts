// Owns: what every field of the configuration is described by, and how it is read back from a schema.
// Must not: know any single field.

import * as z from "zod";

/** When a change takes effect: at once, with the next epoch, or only with a new supervisor. */
export type Lifecycle = "dynamic" | "hot-restart" | "static";

export interface FieldMeta {
  /** One sentence, no full stop. */
  readonly description: string;
  readonly lifecycle: Lifecycle;
  /** What stands for the value in help texts, for example `DURATION`; absent for a switch. */
  readonly placeholder?: string;
  readonly unit?: "ms";
  /** Where the flag is not the field's name with dashes. */
  readonly flag?: string;
  /** What the default is, where it is found out at start. */
  readonly defaultText?: string;
  /** What a right value looks like, for messages; else the schema says it. */
  readonly expected?: string;
  /** Why a static field can't change while epochd runs, a clause: `the probe is told where it is`. */
  readonly staticWhy?: string;
}

/** Last in the chain: what wraps a schema later loses its description. */
export function field<S extends z.ZodType>(schema: S, meta: FieldMeta): S {
  return schema.meta({ ...meta });
}

export type FieldForm = "switch" | "list" | "integer" | "text";

/** A field as help texts, flag parsing, messages and generated documents see it. */
export interface FieldDescription extends FieldMeta {
  /** In the file: `drain_time`. */
  readonly key: string;
  /** Without dashes: `drain-time`. */
  readonly flag: string;
  readonly form: FieldForm;
  readonly required: boolean;
  /** As one would write it. */
  readonly default?: string | number | boolean;
  readonly choices?: readonly string[];
}

export function describeFields(shape: Readonly<Record<string, z.ZodType>>): readonly FieldDescription[] {
  return Object.entries(shape).map(([key, schema]) => describeField(key, schema));
}

function describeField(key: string, schema: z.ZodType): FieldDescription {
  const meta = schema.meta() as FieldMeta | undefined;
  if (meta === undefined) throw new Error(`field ${key} has no description`);
  const unwrapped = unwrap(schema);
  const choices = unwrapped.inner instanceof z.ZodEnum ? unwrapped.inner.options.map(String) : undefined;
  return {
    ...meta,
    key,
    flag: meta.flag ?? key.replaceAll("_", "-"),
    form: formOf(unwrapped.inner),
    required: unwrapped.required,
    ...(unwrapped.default === undefined ? {} : { default: unwrapped.default }),
    ...(choices === undefined ? {} : { choices }),
  };
}

interface Unwrapped {
  readonly inner: unknown;
  readonly required: boolean;
  readonly default?: string | number | boolean;
}

function unwrap(schema: unknown): Unwrapped {
  if (schema instanceof z.ZodPrefault || schema instanceof z.ZodDefault) {
    const value = schema.def.defaultValue;
    const plain = typeof value === "string" || typeof value === "number" || typeof value === "boolean";
    return { inner: unwrap(schema.def.innerType).inner, required: false, ...(plain ? { default: value } : {}) };
  }
  if (schema instanceof z.ZodOptional) return { ...unwrap(schema.def.innerType), required: false };
  return { inner: schema, required: true };
}

function formOf(inner: unknown): FieldForm {
  if (inner instanceof z.ZodBoolean) return "switch";
  if (inner instanceof z.ZodArray) return "list";
  if (inner instanceof z.ZodNumber) return "integer";
  return "text";
}
