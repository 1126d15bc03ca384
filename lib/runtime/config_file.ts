// Owns: what epochd.yaml said when it was read last, and writing accepted changes back into it.
// Must not: decide what is accepted. Loaded when it is first needed: the YAML library costs a start 20 ms.

import { refuseChange } from "../config/change.ts";
import { editsFor } from "../config/edits.ts";
import { parseConfig, readConfigFile } from "../config/file.ts";
import { diffConfigs, isUnchanged } from "../config/lifecycle.ts";
import { checkSections, type ConfigOrigin, type Sections } from "../config/load.ts";
import { replaceConfigFile } from "../config/persist.ts";
import { type WrittenConfig, writtenConfig } from "../config/written.ts";
import { editYaml } from "../config/yaml_edit.ts";
import type { RunningConfig } from "./change_check.ts";

/** The file as it was accepted last. */
export interface KnownFile {
  readonly digest: string;
  readonly written: WrittenConfig;
}

type Refused = ReturnType<typeof refuseChange>;

export async function readSections(
  path: string,
): Promise<{ readonly kind: "read"; readonly sections: Sections; readonly digest: string } | Refused> {
  const file = await readConfigFile(path);
  if (file.kind === "read") return file;
  const { problems } = file;
  const texts = problems.map(({ where, value, expected }) => [where, value, expected].filter(Boolean).join(" "));
  return refuseChange("config_invalid", `nothing was changed: ${texts.join("; ")}`, { problems });
}

/** Makes the file say what was asked for, or says why not; then nothing was written. */
export async function writeBack(
  path: string,
  known: KnownFile,
  asked: RunningConfig,
  origin: ConfigOrigin,
): Promise<
  | { readonly kind: "written"; readonly file: KnownFile; readonly document: Sections }
  | { readonly kind: "same" }
  | Refused
> {
  const diff = diffConfigs(known.written, asked.written);
  if (isUnchanged(diff)) return { kind: "same" };
  const now = await readConfigFile(path);
  if (now.digest !== undefined && now.digest !== known.digest) {
    return refuseChange(
      "config_file_changed",
      `${path} was edited since epochd took it: reload it first, or leave it alone by persist=false`,
    );
  }
  if (now.kind === "refused") {
    return refuseChange("config_read_only", `${path} can't be read: ${now.problems[0]?.expected}`);
  }
  const edited = editYaml(now.text, editsFor(diff, asked.document));
  if ("why" in edited) return cantSay(path, edited.why);
  // What was written must be what was asked for, whatever anchors and merges the file uses.
  const parsed = parseConfig(edited.text, path);
  const checked = parsed.kind === "parsed" ? checkSections(parsed.sections, origin) : undefined;
  if (parsed.kind !== "parsed" || checked?.kind !== "checked") {
    return cantSay(path, "the edited text is no valid configuration");
  }
  const written = writtenConfig(checked.fields);
  if (!isUnchanged(diffConfigs(written, asked.written))) return cantSay(path, "its anchors or merges stand in the way");
  const done = await replaceConfigFile(path, edited.text, now.digest);
  if (done.kind === "refused") return refuseChange(done.name, done.detail);
  return { kind: "written", file: { digest: done.digest, written }, document: parsed.sections };
}

function cantSay(path: string, why: string): Refused {
  return refuseChange(
    "config_read_only",
    `${path} can't be edited (${why}): edit it by hand and reload, or use persist=false`,
  );
}
