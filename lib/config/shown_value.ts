// Owns: a field's value within a sentence. Must not: import anything heavier (commands use it without the schema).

import type { Written } from "./written.ts";

export function shown(value: Written | undefined): string {
  return value === undefined ? "without a value" : typeof value === "string" ? value : JSON.stringify(value);
}
