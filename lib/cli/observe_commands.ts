// Owns: the commands that look and change nothing - events, history, doctor - and completions, as the command line has them.
// Must not: hold a command's work.

import { type Command, InvalidArgumentError, Option } from "commander";
import { apiSocketOption, socketOf } from "./api_socket_option.ts";
import type { HistoryOptions } from "./history_command.ts";
import type { Terminal } from "./terminal.ts";

type End = (code: number) => void;

interface Flags {
  readonly follow?: true;
  readonly service?: string;
  readonly last: number;
  readonly kind: HistoryOptions["kind"];
  readonly stateDir?: string;
  readonly json?: true;
  readonly apiSocket?: string;
}

export async function addObserveCommands(
  program: Command,
  args: readonly string[],
  terminal: Terminal,
  end: End,
): Promise<void> {
  addEvents(program, terminal, end);
  addHistory(program, terminal, end);
  const doctor = program.command("doctor").description("look for what would break a hot restart, before it does");
  if (args.includes("doctor") || args[0] === "completions") {
    const { addDoctorOptions } = await import("./doctor_command.ts");
    addDoctorOptions(doctor, terminal, end);
  }
  program.command("completions").description("print completions for a shell")
    .argument("<SHELL>", "bash, zsh or fish", toShell)
    .addHelpText("after", completionsExamples)
    .action(async (shell: "bash" | "zsh" | "fish") => {
      const { completions } = await import("./completions.ts");
      terminal.out(completions(program, shell));
      end(0);
    });
}

function addEvents(program: Command, terminal: Terminal, end: End): void {
  program.command("events").description("show what happened, and with --follow what happens")
    .option("-f, --follow", "go on until Ctrl-C or the end of the supervisor")
    .option("--service <NAME>", "of one service alone")
    .addOption(new Option("--last <NUMBER>", "at most so many of the past").argParser(toCount).default(50))
    .option("--json", "for programs: one object a line")
    .addOption(apiSocketOption())
    .addHelpText("after", eventsExamples)
    .action(async (flags: Flags) => {
      const { eventsCommand } = await import("./events_command.ts");
      const { service, last, follow = false, json = false } = flags;
      end(
        await eventsCommand({
          socket: socketOf(flags),
          follow,
          json,
          last,
          ...(service === undefined ? {} : { service }),
        }, terminal),
      );
    });
}

function addHistory(program: Command, terminal: Terminal, end: End): void {
  program.command("history").description(
    "show the last handoffs and configurations, also of a supervisor that has ended",
  )
    .addOption(
      new Option("--kind <KIND>", "which of them").choices(["all", "handoff", "configuration"]).default("all"),
    )
    .option("--service <NAME>", "handoffs of one service alone")
    .addOption(new Option("--last <NUMBER>", "at most so many").argParser(toCount).default(30))
    .option("--state-dir <DIR>", "read the handoffs of a service there, without a supervisor")
    .option("--json", "for programs")
    .addOption(apiSocketOption())
    .addHelpText("after", historyExamples)
    .action(async (flags: Flags) => {
      const { historyCommand } = await import("./history_command.ts");
      const { service, last, kind, stateDir, json = false } = flags;
      const options: HistoryOptions = {
        socket: socketOf(flags),
        json,
        kind,
        last,
        ...(service === undefined ? {} : { service }),
        ...(stateDir === undefined ? {} : { stateDir }),
      };
      end(await historyCommand(options, terminal));
    });
}

function toCount(value: string): number {
  if (!/^\d{1,6}$/.test(value)) throw new InvalidArgumentError("Expected a whole number.");
  return Number(value);
}

function toShell(value: string): string {
  if (["bash", "zsh", "fish"].includes(value)) return value;
  throw new InvalidArgumentError("Expected bash, zsh or fish.");
}

const eventsExamples = `
Examples:
  epochd events                       what the supervisor still holds, at most 50 of it
  epochd events --follow --last 0     only what happens from now on
  epochd events -f --service edge
  epochd events --json | jq 'select(.level == "error")'

Exit codes: 0 shown, also when the supervisor ends; 1 no supervisor; 2 usage.`;

const historyExamples = `
Examples:
  epochd history
  epochd history --kind handoff --service edge --last 5
  epochd history --state-dir /run/epochd/state      when no supervisor runs any more
  epochd history --json

Exit codes: 0 shown, 1 no supervisor or no such directory, 2 usage.`;

const completionsExamples = `
Examples:
  epochd completions bash > /etc/bash_completion.d/epochd
  epochd completions zsh > "\${fpath[1]}/_epochd"
  epochd completions fish > ~/.config/fish/completions/epochd.fish`;
