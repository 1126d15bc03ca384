// Owns: one event as level, text and flat fields, whatever its kind: what a log line is made of.
// Must not: write, or know the form of a line.

import type { Fact } from "../core/fact.ts";
import type { Exit } from "../core/epoch.ts";
import type { Refusal } from "../core/refusal.ts";
import { catalogue } from "./catalogue.ts";
import type { FieldKind, Level, Row } from "./row.ts";
import { shellCatalogue } from "./shell_catalogue.ts";
import type { ShellFact } from "./shell_fact.ts";

export interface Described {
  readonly level: Level;
  readonly message: string;
  readonly fields: Readonly<Record<string, unknown>>;
}

/** The row of a kind takes the fact of that kind; TypeScript can't follow that through an index. */
const rows = { ...shellCatalogue, ...catalogue } as unknown as Readonly<
  Record<(Fact | ShellFact)["kind"], Row<Fact | ShellFact>>
>;

export function describe(fact: Fact | ShellFact): Described {
  const row = rows[fact.kind];
  return {
    level: typeof row.level === "function" ? row.level(fact) : row.level,
    message: row.message(fact),
    fields: flatten(fact, row.fields),
  };
}

function flatten(fact: Fact | ShellFact, kinds: Readonly<Record<string, FieldKind>>): Record<string, unknown> {
  const flat: Record<string, unknown> = {};
  for (const [key, value] of Object.entries(fact)) {
    if (key === "kind" || value === undefined) continue;
    if (kinds[key] === "refusal") {
      const refusal = value as Refusal;
      flat.refusal = refusal.name;
      flat.detail = refusal.detail;
    } else if (kinds[key] === "exit") {
      const exit = value as Exit;
      if (exit.code !== "unknown") flat.exitCode = exit.code;
      if (exit.signal !== undefined) flat.exitSignal = exit.signal;
    } else flat[key] = kinds[key] === "ms" && typeof value === "number" ? Math.round(value * 10) / 10 : value;
  }
  return flat;
}
