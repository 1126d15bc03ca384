// Owns: the commands about executables - push, binaries, rollback --binary - as the command line has them. Must not: hold their work.

import { type Command, Option } from "commander";
import { apiSocketOption, socketOf } from "./api_socket_option.ts";
import { toUntil } from "./change_options.ts";
import type { SwitchCommandOptions } from "./push_command.ts";
import type { Terminal } from "./terminal.ts";

type End = (code: number) => void;

export interface SwitchFlags {
  readonly wait?: true | "live" | "drained";
  readonly service?: string;
  readonly force?: true;
  readonly drained?: true;
  readonly json?: true;
  readonly apiSocket?: string;
}

interface PushFlags extends SwitchFlags {
  readonly sha256?: string;
  readonly signature?: string;
}

export function addBinaryCommands(program: Command, terminal: Terminal, end: End): void {
  program.command("push").description("give a service another Envoy executable and hot restart into it")
    .argument("<FILE>", "Envoy's executable; - reads it from standard input")
    .option("--sha256 <HEX>", "what its digest must be (of a FILE: computed)")
    .option("--signature <FILE>", "its minisign signature (of a FILE: FILE.minisig, where that is there)")
    .addOption(
      new Option(
        "--wait [UNTIL]",
        "live: until the new epoch serves; drained: and the old one has ended (alone: drained)",
      ).argParser(toUntil),
    )
    .option("--service <NAME>", "which one, where there are several")
    .option("--force", "also where it runs already, and even though the serving epoch's control plane is away")
    .option("--drained", "no handoff, for an Envoy that can't take over: drain what serves, end it, start afresh")
    .option("--json", "for programs")
    .addOption(apiSocketOption())
    .addHelpText("after", pushExamples)
    .action(async (file: string, flags: PushFlags) => {
      const { pushCommand } = await import("./push_command.ts");
      const { sha256, signature } = flags;
      end(
        await pushCommand({
          ...toSwitchOptions(flags),
          file,
          ...(sha256 === undefined ? {} : { sha256 }),
          ...(signature === undefined ? {} : { signature }),
        }, terminal),
      );
    });
  program.command("binaries").description("show the executables that were pushed, and which of them runs")
    .option("--service <NAME>", "which one, where there are several")
    .option("--json", "for programs")
    .addOption(apiSocketOption())
    .addHelpText("after", binariesExamples)
    .action(async (flags: SwitchFlags) => {
      const { binariesCommand } = await import("./binaries_command.ts");
      const { socket, service, json } = toSwitchOptions(flags);
      end(await binariesCommand({ socket, json, ...(service === undefined ? {} : { service }) }, terminal));
    });
}

export function toSwitchOptions(flags: SwitchFlags): SwitchCommandOptions {
  const { wait, service, force, drained, json } = flags;
  return {
    socket: socketOf(flags),
    force: force === true,
    drained: drained === true,
    json: json === true,
    ...(service === undefined ? {} : { service }),
    ...(wait === undefined ? {} : { wait: wait === true ? "drained" : wait }),
  };
}

const pushExamples = `
Examples:
  epochd push ./envoy-1.40.0 --wait
  epochd push ./envoy --signature ./envoy.minisig --wait=live
  kubectl exec -i POD -c envoy -- epochd push - --sha256 HEX --wait < envoy

The service must run with --slots-dir. Give --sha256 with -: a stream that breaks looks like the file's end.
Exit codes: 0 done, or current already; 1 refused or no supervisor; 2 usage.`;

const binariesExamples = `
Examples:
  epochd binaries
  epochd binaries --service edge --json

Exit codes: 0 shown, 1 refused or no supervisor, 2 usage.`;
