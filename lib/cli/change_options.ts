// Owns: the options that every command has which asks for another configuration. Must not: ask for it.

import { type Command, InvalidArgumentError, Option } from "commander";
import type { ChangeQuestion } from "../api/client.ts";
import type { Answer, Changed } from "../api/client.ts";
import { changeText } from "./change_text.ts";
import { exitCode } from "./exit_code.ts";
import { reportFailure } from "./failure.ts";
import type { Terminal } from "./terminal.ts";

export interface ChangeFlags {
  readonly wait?: true | "live" | "drained";
  readonly dryRun?: true;
  readonly force?: true;
  readonly persist?: boolean;
  readonly json?: true;
  readonly apiSocket?: string;
}

export function addChangeOptions(command: Command, withPersist: boolean): Command {
  command.addOption(
    new Option("--wait [UNTIL]", "live: until new epochs serve; drained: and the old ones have ended (alone: drained)")
      .argParser(toUntil),
  ).option("--dry-run", "check everything and say what would happen");
  if (withPersist) {
    command.option("--persist", "write the change into epochd.yaml (default: as api.persist says)")
      .option("--no-persist", "keep epochd.yaml as it is");
  }
  return command.option("--force", "even though a serving epoch's control plane is away").option(
    "--json",
    "for programs",
  );
}

export function toQuestion({ wait, dryRun, force, persist }: ChangeFlags): ChangeQuestion {
  return {
    wait: wait === undefined ? "accepted" : wait === true ? "drained" : wait,
    dryRun: dryRun === true,
    force: force === true,
    ...(persist === undefined ? {} : { persist }),
  };
}

/** The exit code that belongs to it. */
export function reportChange(answer: Answer<Changed>, json: boolean, terminal: Terminal): number {
  if (answer.kind !== "ok") return reportFailure(answer, terminal, json);
  terminal.out(json ? `${JSON.stringify(answer.value)}\n` : changeText(answer.value, terminal));
  return exitCode.ok;
}

export function toUntil(value: string): "live" | "drained" {
  if (value === "live" || value === "drained") return value;
  throw new InvalidArgumentError("Expected live or drained.");
}
