// Owns: a configuration in few words: its digest, where running and file differ, what a change is made of.
// Must not: change or read one.

import { sha256 } from "../adapters/content.ts";
import { type ConfigDiff, diffConfigs, type FieldChange } from "../config/lifecycle.ts";
import { shown } from "../config/shown_value.ts";
import type { Written, WrittenConfig } from "../config/written.ts";

/** Where running and file differ, and a file that was refused. */
export interface ConfigSummary {
  readonly digest: string;
  readonly path?: string;
  /** Absent without a file, or when they say the same. */
  readonly differences?: readonly { readonly field: string; readonly running?: Written; readonly file?: Written }[];
  readonly refused?: { readonly name: string; readonly detail: string; readonly wallMs: number };
}

export function digestOf(value: unknown): string {
  return sha256(JSON.stringify(value)).slice(0, 32);
}

export function differences(running: WrittenConfig, file: WrittenConfig): Pick<ConfigSummary, "differences"> {
  const { changes, added, removed } = diffConfigs(running, file);
  const found = [
    ...changes.map(({ field, running, asked }) => ({
      field,
      ...(running === undefined ? {} : { running }),
      ...(asked === undefined ? {} : { file: asked }),
    })),
    ...added.map((name) => ({ field: `services.${name}`, file: "a service" })),
    ...removed.map((name) => ({ field: `services.${name}`, running: "a service" })),
  ];
  return found.length === 0 ? {} : { differences: found };
}

/** For history and people: `services.edge.drain_time 30s to 20s`. */
export function summaryOf({ changes, added, removed }: ConfigDiff): readonly string[] {
  const most = 8;
  const texts = [
    ...added.map((name) => `service ${name} added`),
    ...removed.map((name) => `service ${name} removed`),
    ...changes.map(changeText),
  ];
  return texts.length <= most ? texts : [...texts.slice(0, most), `${texts.length - most} more`];
}

export function changeText({ field, running, asked }: FieldChange): string {
  return `${field} ${shown(running)} to ${shown(asked)}`;
}
