// Owns: `epochd run` up to a checked configuration: its flags, made from the schema. Must not: supervise (run.ts does).

import { type Command, InvalidArgumentError, Option } from "commander";
import type { FieldDescription } from "../config/field.ts";
import { type FlagValues, runFlags } from "../config/flags.ts";
import { type Environment, type Loaded, loadRunConfig } from "../config/load.ts";
import { type Problem, problemLine } from "../config/problem.ts";
import { oneLine } from "../observe/words.ts";
import { exitCode } from "./exit_code.ts";
import type { Terminal } from "./terminal.ts";

export const runExamples = `
Examples:
  epochd run --envoy-config envoy.yaml
  epochd run --envoy-config /etc/envoy/envoy.yaml --ready-marker /run/epochd/ready --drain-time 10s --parent-shutdown-time 15s
  epochd run --envoy-config envoy.yaml --envoy-arg --component-log-level --envoy-arg upstream:debug
  epochd run --config epochd.yaml

While it runs: SIGHUP starts a new epoch, SIGTERM and SIGINT drain and end, SIGUSR1 makes Envoy reopen its logs.
Exit codes: 0 stopped as asked, 1 the newest epoch died, 2 usage or configuration, 3 the first start failed preflight,
4 no epoch became LIVE in time, 70 a bug in epochd.`;

export function addRunOptions(command: Command): void {
  command.addOption(once(new Option("--config <FILE>", "epochd.yaml; flags win over it")));
  for (const { field } of runFlags) for (const option of toOptions(field)) command.addOption(option);
}

export async function runCommand(command: Command, terminal: Terminal): Promise<number> {
  const environment = { EPOCHD_API_SOCKET: Deno.env.get("EPOCHD_API_SOCKET"), PATH: Deno.env.get("PATH") };
  const { loaded, chosen } = await loadByFlags(flagValues(command), environment);
  if (loaded.kind === "refused") {
    for (const problem of loaded.problems) terminal.err(`error: ${oneLine(problemLine(problem))}\n`);
    return exitCode.usage;
  }
  const { run } = await import("./run.ts");
  const code = await run(loaded, chosen);
  if (chosen !== undefined) await (await import("../adapters/free_base_id.ts")).leaveBaseId(chosen);
  return code;
}

/** What these flags and their file describe; with `--base-id auto` the base id that was found free as well. */
export async function loadByFlags(
  given: FlagValues,
  environment: Environment,
): Promise<{ readonly loaded: Loaded; readonly chosen?: number }> {
  const chosen = given["base-id"] === "auto" ? await chooseBaseId() : undefined;
  if (chosen === undefined) return { loaded: await loadRunConfig(given, environment) };
  const loaded = await loadRunConfig({ ...given, "base-id": String(chosen) }, environment);
  const problems = loaded.kind === "refused" ? [] : checkChosen(loaded);
  return { loaded: problems.length > 0 ? { kind: "refused", problems } : loaded, chosen };
}

async function chooseBaseId(): Promise<number | undefined> {
  const { findFreeBaseId } = await import("../adapters/free_base_id.ts");
  return await findFreeBaseId();
}

function checkChosen({ config }: Extract<Loaded, { kind: "loaded" }>): readonly Problem[] {
  if (Object.values(config.services).every(({ crossPod }) => !crossPod)) return [];
  const expected =
    "expected a number: with --cross-pod or --on-supervisor-death serve every supervisor must have the same";
  return [{ where: "--base-id", value: "auto", expected }];
}

function toOptions(field: FieldDescription): readonly Option[] {
  const described = describe(field);
  if (field.form !== "switch") {
    return [once(new Option(`--${field.flag} <${field.placeholder ?? "VALUE"}>`, described), field)];
  }
  return [new Option(`--${field.flag}`, described), new Option(`--no-${field.flag}`).hideHelp()];
}

function describe(field: FieldDescription): string {
  const notes = [
    ...(field.choices === undefined ? [] : [field.choices.join(" | ")]),
    ...(field.required ? ["required"] : []),
    ...(field.form === "list" ? ["repeatable"] : []),
    ...(field.default === undefined ? [] : [`default ${field.default}`]),
    ...(field.defaultText === undefined ? [] : [`default ${field.defaultText}`]),
    ...(field.form === "switch" && field.default === true ? [`--no-${field.flag} turns it off`] : []),
  ];
  return notes.length === 0 ? field.description : `${field.description} (${notes.join("; ")})`;
}

/** A second value would silently win; repeatable flags collect instead. */
function once(option: Option, field?: FieldDescription): Option {
  return option.argParser((value: string, previous: unknown) => {
    if (field?.form === "list") return [...(previous as string[] | undefined ?? []), value];
    if (previous !== undefined) throw new InvalidArgumentError(`It stands there twice, before with ${previous}.`);
    return value;
  });
}

export function flagValues(command: Command): FlagValues {
  const values: Record<string, string | boolean | readonly string[]> = {};
  for (const option of command.options) {
    const value: unknown = command.getOptionValue(option.attributeName());
    if (value === undefined) continue;
    values[option.name().replace(/^no-/, "")] = value as string | boolean | readonly string[];
  }
  return values;
}
