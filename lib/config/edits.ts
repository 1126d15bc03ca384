// Owns: which places of epochd.yaml must change for it to say what runs. Pure. Must not: read or write YAML.

import type { ConfigDiff } from "./lifecycle.ts";
import type { Sections } from "./load.ts";

export interface Edit {
  readonly path: readonly string[];
  /** Absent: the key goes, and its default stands. */
  readonly value?: unknown;
}

/** `diff`: from what the file says to what runs. `document`: what was asked for, without defaults. */
export function editsFor(diff: ConfigDiff, document: Sections): readonly Edit[] {
  const fields = diff.changes.map(({ field, service }): Edit => {
    const path = pathOf(field, service);
    const given = valueAt(document, path);
    return { path, ...(given === undefined ? {} : { value: given }) };
  });
  const removed = diff.removed.map((name): Edit => ({ path: ["services", name] }));
  const added = diff.added.map((name): Edit => ({
    path: ["services", name],
    value: valueAt(document, ["services", name]) ?? {},
  }));
  return [...removed, ...fields, ...added];
}

/** Names of services hold no dot, but nothing is taken apart that was put together here. */
function pathOf(field: string, service: string | undefined): readonly string[] {
  return service === undefined ? field.split(".") : ["services", service, field.slice(`services.${service}.`.length)];
}

export function valueAt(sections: unknown, path: readonly string[]): unknown {
  let value = sections;
  for (const key of path) {
    if (typeof value !== "object" || value === null || !Object.hasOwn(value, key)) return undefined;
    value = (value as Readonly<Record<string, unknown>>)[key];
  }
  return value;
}
