/** README's table of the flags of `epochd run`. Owns its columns; what is in them comes from the schema. */
import type { FieldDescription } from "../../lib/config/field.ts";
import { runFlags } from "../../lib/config/flags.ts";
import { table } from "./markdown.ts";

export function flagsTable(): string {
  const rows = runFlags.map(({ field }) => [`\`${flagOf(field)}\``, defaultOf(field), field.description]);
  return table(["flag", "default", "meaning"], [
    ["`--config FILE`", "none", "epochd.yaml; flags win over it"],
    ...rows,
  ]);
}

export function flagOf(field: FieldDescription): string {
  return field.form === "switch" ? `--${field.flag}` : `--${field.flag} ${field.placeholder ?? "VALUE"}`;
}

export function defaultOf(field: FieldDescription): string {
  if (field.required) return "required";
  if (field.defaultText !== undefined) return field.defaultText;
  if (field.default === undefined) return "none";
  return typeof field.default === "boolean" ? (field.default ? "on" : "off") : `\`${field.default}\``;
}
