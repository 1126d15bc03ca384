// Owns: `epochd reload` and `epochd rollback`. Must not: decide what may change.

import type { Command } from "commander";
import { connectTo } from "../api/client.ts";
import { shortDigest } from "../observe/words.ts";
import { apiSocketOption, socketOf } from "./api_socket_option.ts";
import { toSwitchOptions } from "./binary_commands.ts";
import { addChangeOptions, type ChangeFlags, reportChange, toQuestion } from "./change_options.ts";
import { exitCode } from "./exit_code.ts";
import { reportFailure } from "./failure.ts";
import { alignedRows } from "./table.ts";
import type { Terminal } from "./terminal.ts";

type End = (code: number) => void;

export function addReloadOptions(command: Command, terminal: Terminal, end: End): void {
  addChangeOptions(command, false).addOption(apiSocketOption()).addHelpText("after", reloadExamples)
    .action(async (flags: ChangeFlags) => {
      end(reportChange(await connectTo(socketOf(flags)).reload(toQuestion(flags)), flags.json === true, terminal));
    });
}

export function addRollbackOptions(command: Command, terminal: Terminal, end: End): void {
  command.argument("[TO]", "number or beginning of the digest; default: the one before")
    .option("--list", "show what there is to go back to")
    .option("--binary", "the executable instead: the one before, see `epochd binaries`")
    .option("--to <DIGEST>", "with --binary: the beginning of its digest, or installed for --envoy-path")
    .option("--drained", "with --binary: no handoff, for an Envoy that can't take over; connections end")
    .option("--service <NAME>", "with --binary: which one, where there are several");
  addChangeOptions(command, true).addOption(apiSocketOption()).addHelpText("after", rollbackExamples)
    .action(async (to: string | undefined, flags: ChangeFlags & RollbackFlags) => {
      const wrong = misuse(to, flags);
      if (wrong !== undefined) {
        terminal.err(`error: ${wrong}\n`);
        return end(exitCode.usage);
      }
      if (flags.binary === true) {
        const { rollBackBinaryCommand } = await import("./push_command.ts");
        const target = flags.to === undefined ? {} : { to: flags.to };
        return end(await rollBackBinaryCommand({ ...toSwitchOptions(flags), ...target }, terminal));
      }
      if (flags.list === true) return end(await list(flags, terminal));
      end(
        reportChange(await connectTo(socketOf(flags)).rollback(to, toQuestion(flags)), flags.json === true, terminal),
      );
    });
}

interface RollbackFlags {
  readonly list?: true;
  readonly binary?: true;
  readonly to?: string;
  readonly drained?: true;
  readonly service?: string;
}

/** What does not go together. */
function misuse(to: string | undefined, flags: ChangeFlags & RollbackFlags): string | undefined {
  if (flags.binary !== true) {
    const alone = (["to", "service", "drained"] as const).find((name) => flags[name] !== undefined);
    return alone === undefined ? undefined : `--${alone}: expected --binary beside it`;
  }
  if (to !== undefined) return `${to}: expected --to ${to} with --binary`;
  if (flags.list === true) return "--list: expected no --binary beside it; `epochd binaries` lists executables";
  if (flags.dryRun === true) return "--dry-run: expected no --binary beside it";
  return flags.persist === undefined ? undefined : "--persist: expected no --binary beside it";
}

async function list(flags: ChangeFlags, terminal: Terminal): Promise<number> {
  const answer = await connectTo(socketOf(flags)).history();
  if (answer.kind !== "ok") return reportFailure(answer, terminal, flags.json === true);
  if (flags.json === true) {
    terminal.out(`${JSON.stringify(answer.value)}\n`);
    return exitCode.ok;
  }
  const rows = answer.value.configurations.map(({ id, at, digest, who, source, why, running }) => [
    running ? `${id} *` : String(id),
    at.slice(0, 19).replace("T", " "),
    shortDigest(digest),
    source,
    who,
    why,
  ]);
  for (const line of alignedRows([["ID", "ACCEPTED (UTC)", "DIGEST", "BY", "WHO", "WHY"], ...rows])) {
    terminal.out(`${line}\n`);
  }
  return exitCode.ok;
}

const reloadExamples = `
Examples:
  epochd reload                  read epochd.yaml again, and a new epoch for every service: what SIGHUP does
  epochd reload --wait=live
  epochd reload --dry-run        say what would change, and how

Exit codes: 0 done, 1 refused or no supervisor, 2 usage.`;

const rollbackExamples = `
Examples:
  epochd rollback --list
  epochd rollback                to the configuration before this one
  epochd rollback 12 --wait      to number 12; returns when the old epochs have ended
  epochd rollback --binary --wait              to the executable before this one
  epochd rollback --binary --to 3f9c0a1b2c3d   to one of \`epochd binaries\`

Exit codes: 0 done, 1 refused or no supervisor, 2 usage.`;
