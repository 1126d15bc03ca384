// Owns: whether one configuration may become another while services run: validation, lifecycle, preflight. One set of rules for
// file, signal and API. Must not: change anything.

import { type ConfigRefusal, refuseChange, type StaticField } from "../config/change.ts";
import { valueAt } from "../config/edits.ts";
import { actionOf, type ConfigDiff, diffConfigs, sameValue, staticChanges } from "../config/lifecycle.ts";
import { checkSections, type ConfigOrigin, type Sections } from "../config/load.ts";
import { problemLine } from "../config/problem.ts";
import type { RunConfig } from "../config/run_config.ts";
import { pinnedField, staticDetail, staticField } from "../config/static_fields.ts";
import { type WrittenConfig, writtenConfig } from "../config/written.ts";
import type { Fleet } from "./fleet.ts";

export interface RunningConfig {
  readonly config: RunConfig;
  /** As it was asked for, without flags and defaults. */
  readonly document: Sections;
  readonly written: WrittenConfig;
}

export type CheckedChange =
  | { readonly kind: "refused"; readonly refusal: ConfigRefusal }
  | { readonly kind: "may"; readonly asked: RunningConfig; readonly diff: ConfigDiff };

/** `where` names the source of the sections in messages. */
export function checkChange(
  running: RunningConfig,
  sections: Sections,
  origin: ConfigOrigin,
  where: string | undefined,
  byPerson: boolean,
): CheckedChange {
  const checked = checkSections(sections, origin, where);
  if (checked.kind === "refused") {
    const { problems } = checked;
    return refuseChange("config_invalid", `nothing was changed: ${problems.map(problemLine).join("; ")}`, { problems });
  }
  const written = writtenConfig(checked.fields);
  const pinned = byPerson ? pinnedChanges(running, sections, checked.pinned) : [];
  const diff = diffConfigs(running.written, written);
  const fields = [...pinned, ...staticChanges(diff).map(staticField)];
  if (fields.length > 0) return refuseChange("static_parameter", staticDetail(fields), { fields });
  return { kind: "may", asked: { config: checked.config, document: sections, written }, diff };
}

/** Asking for a value that a flag overrules would be taken and have no effect: that is told. */
function pinnedChanges(
  { written, document }: RunningConfig,
  sections: Sections,
  pinned: ReadonlyMap<string, string>,
): readonly StaticField[] {
  return [...pinned].flatMap(([field, by]) => {
    const path = field.split(".");
    const asked = valueAt(sections, path);
    const runs = valueAt(written, path) as Parameters<typeof pinnedField>[2];
    if (asked === undefined || sameValue(asked, runs) || sameValue(asked, valueAt(document, path))) return [];
    return [pinnedField(field, by, runs, asked)];
  });
}

/** Of the services that get another epoch or are new: what would not run is refused before anything changes. */
export async function preflightChange(
  fleet: Fleet,
  { config }: RunningConfig,
  diff: ConfigDiff,
): Promise<ConfigRefusal | undefined> {
  const concerned = Object.entries(config.services).filter(([name]) =>
    ["hot_restart", "add"].includes(actionOf(diff, name))
  );
  const refusals = await Promise.all(concerned.map(async ([name, service]) => {
    const no = await fleet.preflight(name, service);
    return no === undefined ? undefined : { name, no };
  }));
  const first = refusals.find((found) => found !== undefined);
  if (first === undefined) return undefined;
  const detail = `nothing was changed: service ${first.name} would not start: ${first.no.detail}`;
  return refuseChange("preflight_failed", detail, { service: first.name, refusal: first.no.name }).refusal;
}
