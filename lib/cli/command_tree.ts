// Owns: the commands with their options and what may stand after each, as completions need them, read from the command line's own tree.
// Must not: know a shell.

import type { Command, Option } from "commander";
import { runFlags } from "../config/flags.ts";

export interface TreeOption {
  /** `--follow`, and `-f` where there is one. */
  readonly names: readonly string[];
  readonly description: string;
  /** Absent: it takes no value. */
  readonly value?: Value;
}

export type Value = { readonly kind: "file" | "directory" | "any" } | {
  readonly kind: "choice";
  readonly of: readonly string[];
};

export interface TreeCommand {
  /** From the root: `config get`; empty for the root. */
  readonly path: string;
  readonly name: string;
  readonly description: string;
  readonly options: readonly TreeOption[];
  readonly commands: readonly TreeCommand[];
  /** What the first argument may be. */
  readonly argument?: Value;
}

const shells = ["bash", "zsh", "fish"];
/** Choices that the command line checks by itself. */
const known: Readonly<Record<string, readonly string[]>> = {
  "--wait": ["live", "drained"],
  "--role": ["read", "operate", "admin"],
};

export function commandTree(command: Command, above: readonly string[] = []): TreeCommand {
  const path = above.length === 0 && command.parent === null ? [] : [...above, command.name()];
  const options = command.options.filter(({ hidden }) => !hidden).map(toOption);
  const argument = argumentOf(command);
  return {
    path: path.join(" "),
    name: command.name(),
    description: firstLine(command.description()),
    options: [...options, { names: ["--help", "-h"], description: "print help and end" }],
    commands: command.commands.map((inner) => commandTree(inner, path)),
    ...(argument === undefined ? {} : { argument }),
  };
}

/** The command itself and all below it. */
export function allCommands(tree: TreeCommand): readonly TreeCommand[] {
  return [tree, ...tree.commands.flatMap(allCommands)];
}

function toOption(option: Option): TreeOption {
  const names = [option.long, option.short].filter((name) => name !== undefined && name !== null);
  const takesValue = option.required || option.optional;
  return {
    names,
    description: firstLine(option.description),
    ...(takesValue ? { value: valueOf(option) } : {}),
  };
}

function valueOf({ long, flags, argChoices }: Option): Value {
  const field = runFlags.find(({ field }) => `--${field.flag}` === long)?.field;
  const choices = argChoices ?? known[long ?? ""] ?? field?.choices;
  if (choices !== undefined) return { kind: "choice", of: choices };
  return byPlaceholder(/[<[](\w+)/.exec(flags)?.[1] ?? "");
}

function byPlaceholder(placeholder: string): Value {
  if (placeholder === "FILE") return { kind: "file" };
  return { kind: placeholder === "DIR" || placeholder === "DIRECTORY" ? "directory" : "any" };
}

function argumentOf(command: Command): Value | undefined {
  const first = command.registeredArguments[0];
  if (first === undefined) return undefined;
  if (command.name() === "completions") return { kind: "choice", of: shells };
  return first.argChoices === undefined
    ? byPlaceholder(first.name().toUpperCase())
    : { kind: "choice", of: first.argChoices };
}

function firstLine(text: string): string {
  return text.split("\n")[0] ?? "";
}
