// Owns: `epochd config get|set|diff|schema|validate`. Must not: decide what may change.

import type { Command } from "commander";
import { type ChangeQuestion, connectTo } from "../api/client.ts";
import { valueAt } from "../config/edits.ts";
import { nearest } from "../config/nearest.ts";
import { shown } from "../config/shown_value.ts";
import type { WrittenConfig } from "../config/written.ts";
import { oneLine } from "../observe/words.ts";
import { apiSocketOption, socketOf } from "./api_socket_option.ts";
import { addChangeOptions, type ChangeFlags, reportChange, toQuestion } from "./change_options.ts";
import { exitCode } from "./exit_code.ts";
import { reportFailure } from "./failure.ts";
import type { Terminal } from "./terminal.ts";

type End = (code: number) => void;

export function addConfigCommands(parent: Command, terminal: Terminal, end: End): void {
  parent.addHelpText("after", examples);
  parent.command("get").description("show what runs: the whole configuration, or one field of it")
    .argument("[FIELD]", "for example services.edge.drain_time, or services.edge")
    .option("--json", "for programs").addOption(apiSocketOption()).addHelpText("after", examples)
    .action(async (field: string | undefined, flags: ChangeFlags) => end(await get(field, flags, terminal)));
  addChangeOptions(
    parent.command("set").description("change fields: dynamic ones at once, others with a new epoch of their service")
      .argument("<FIELD=VALUE...>", "for example services.edge.drain_time=20s; without a value (FIELD=) its default"),
    true,
  ).addOption(apiSocketOption()).addHelpText("after", examples)
    .action(async (fields: readonly string[], flags: ChangeFlags) => end(await set(fields, flags, terminal)));
  parent.command("diff").description("what would change if epochd.yaml, or another file, were taken")
    .argument("[FILE]", "default: the epochd.yaml of the supervisor")
    .option("--json", "for programs").addOption(apiSocketOption()).addHelpText("after", diffExamples)
    .action(async (file: string | undefined, flags: ChangeFlags) => end(await diff(file, flags, terminal)));
  parent.command("schema").description("print the JSON Schema of epochd.yaml, for editors and programs")
    .addHelpText("after", examples)
    .action(async () => {
      const { configJsonSchema } = await import("../config/json_schema.ts");
      terminal.out(`${JSON.stringify(configJsonSchema(), undefined, 2)}\n`);
      end(exitCode.ok);
    });
  parent.command("validate").description("check a file, without a supervisor")
    .argument("<FILE>").option("--json", "for programs").addHelpText("after", validateExamples)
    .action(async (file: string, flags: ChangeFlags) => end(await validate(file, flags, terminal)));
}

async function get(field: string | undefined, flags: ChangeFlags, terminal: Terminal): Promise<number> {
  const answer = await connectTo(socketOf(flags)).config();
  if (answer.kind !== "ok") return reportFailure(answer, terminal, flags.json === true);
  const value = field === undefined ? answer.value : valueAt(answer.value, field.split("."));
  if (value === undefined) return unknownField(field!, answer.value, terminal);
  if (flags.json === true) terminal.out(`${JSON.stringify(value, undefined, 2)}\n`);
  else if (typeof value !== "object") terminal.out(`${value}\n`);
  else terminal.out((await import("./yaml_text.ts")).yamlText(value));
  return exitCode.ok;
}

function unknownField(field: string, config: WrittenConfig, terminal: Terminal): number {
  const parts = field.split(".");
  const known = fieldsOf(config, parts.length);
  const meant = nearest(field, known);
  const hint = meant === undefined ? "epochd config get shows all" : `did you mean ${meant}?`;
  terminal.err(`error: ${oneLine(field)}: no such field, or it has no value; ${hint}\n`);
  return exitCode.usage;
}

function fieldsOf(value: unknown, depth: number): readonly string[] {
  if (depth === 0 || typeof value !== "object" || value === null || Array.isArray(value)) return [""];
  return Object.entries(value).flatMap(([key, inner]) =>
    fieldsOf(inner, depth - 1).map((rest) => rest === "" ? key : `${key}.${rest}`)
  );
}

async function set(fields: readonly string[], flags: ChangeFlags, terminal: Terminal): Promise<number> {
  let patch: unknown = {};
  for (const text of fields) {
    const equals = text.indexOf("=");
    const path = text.slice(0, equals).split(".");
    if (equals < 1 || path.includes("")) {
      terminal.err(`error: ${oneLine(text)}: expected FIELD=VALUE, for example services.edge.drain_time=20s\n`);
      return exitCode.usage;
    }
    const value = toValue(text.slice(equals + 1));
    patch = mergePatchKeepingNull(patch, path.reduceRight<unknown>((inner, key) => ({ [key]: inner }), value));
  }
  return reportChange(
    await connectTo(socketOf(flags)).patchConfig(patch, toQuestion(flags)),
    flags.json === true,
    terminal,
  );
}

/** Nulls are part of the patch, so they are no removal here. */
function mergePatchKeepingNull(target: unknown, patch: unknown): unknown {
  if (typeof patch !== "object" || patch === null || Array.isArray(patch)) return patch;
  const merged = { ...target as Record<string, unknown> };
  for (const [key, value] of Object.entries(patch)) merged[key] = mergePatchKeepingNull(merged[key] ?? {}, value);
  return merged;
}

/** JSON where it is JSON that a field may hold; else the text as it stands. */
function toValue(text: string): unknown {
  if (text === "") return null;
  if (!/^(?:true|false|-?\d{1,15}|\[.*\]|".*")$/s.test(text)) return text;
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}

const outlook: ChangeQuestion = { wait: "accepted", dryRun: true, force: false };

async function diff(file: string | undefined, flags: ChangeFlags, terminal: Terminal): Promise<number> {
  const client = connectTo(socketOf(flags));
  const json = flags.json === true;
  let answer;
  if (file === undefined) answer = await client.reload(outlook);
  else {
    const { readConfigFile } = await import("../config/file.ts");
    const read = await readConfigFile(file);
    if (read.kind === "refused") {
      for (const { where, value, expected } of read.problems) {
        terminal.err(`error: ${oneLine([where, value].filter(Boolean).join(" "))}: ${oneLine(expected)}\n`);
      }
      return exitCode.usage;
    }
    answer = await client.putConfig(read.sections, { ...outlook, persist: false });
  }
  if (answer.kind !== "ok") return reportFailure(answer, terminal, json);
  const { changes, services } = answer.value;
  const named = Object.entries(services).filter(([, { action }]) => action === "add" || action === "remove");
  if (json) terminal.out(`${JSON.stringify(answer.value)}\n`);
  else {
    for (const { field, running, asked, lifecycle } of changes) {
      terminal.out(`${field}: ${shown(running)} -> ${shown(asked)} (${lifecycle})\n`);
    }
    for (const [name, { action }] of named) {
      terminal.out(`services.${name}: ${action === "add" ? "added" : "removed"}\n`);
    }
  }
  return changes.length + named.length === 0 ? exitCode.ok : exitCode.refused;
}

async function validate(file: string, flags: ChangeFlags, terminal: Terminal): Promise<number> {
  const [{ loadRunConfig }, { problemLine }] = await Promise.all([
    import("../config/load.ts"),
    import("../config/problem.ts"),
  ]);
  const loaded = await loadRunConfig({ config: file }, { PATH: Deno.env.get("PATH") });
  if (loaded.kind === "refused") {
    if (flags.json === true) terminal.out(`${JSON.stringify({ valid: false, problems: loaded.problems })}\n`);
    for (const problem of loaded.problems) terminal.err(`error: ${oneLine(problemLine(problem))}\n`);
    return exitCode.refused;
  }
  const services = Object.keys(loaded.config.services);
  terminal.out(
    flags.json === true
      ? `${JSON.stringify({ valid: true, services })}\n`
      : `valid: ${file} describes service ${services.join(", ")}\n`,
  );
  return exitCode.ok;
}

const examples = `
Examples:
  epochd config get
  epochd config get services.edge.drain_time
  epochd config set services.edge.drain_time=20s --wait
  epochd config set log.level=debug --no-persist
  epochd config set services.edge.watchdog= --dry-run
  epochd config schema > epochd.schema.json

Exit codes: 0 done, 1 refused or no supervisor, 2 usage.`;

const diffExamples = `
Examples:
  epochd config diff                  running against the supervisor's epochd.yaml
  epochd config diff new.yaml --json  running against another file

Exit codes: 0 nothing differs, 1 something differs, or it would be refused, or no supervisor, 2 usage.`;

const validateExamples = `
Examples:
  epochd config validate /etc/epochd/epochd.yaml

Exit codes: 0 valid, 1 not valid, 2 usage.`;
