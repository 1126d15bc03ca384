// Owns: the command line: which command it is, and that misuse ends with 2 and a hint. Must not: hold a command's work.

import { Command, CommanderError, Option } from "commander";
import { runtime, version } from "../observe/version.ts";
import { apiSocketOption, socketOf } from "./api_socket_option.ts";
import { addBinaryCommands } from "./binary_commands.ts";
import { toUntil } from "./change_options.ts";
import { exitCode } from "./exit_code.ts";
import type { InstallOptions } from "./install_command.ts";
import { addObserveCommands } from "./observe_commands.ts";
import { openTerminal, OutputError, type Terminal } from "./terminal.ts";

/** The exit code; rejects only for a bug. */
export async function main(args: readonly string[], terminal: Terminal = openTerminal()): Promise<number> {
  let code: number = exitCode.ok;
  const program = new Command("epochd")
    .description("Keeps Envoy serving while its bootstrap, flags, executable or supervisor change.")
    .version(`epochd ${version} (${runtime})`, "--version", "print the version and end")
    .helpOption("-h, --help", "print help and end")
    .exitOverride()
    .configureOutput({
      writeOut: (text) => terminal.out(text),
      writeErr: (text) => terminal.err(text),
      getOutHelpWidth: () => 120,
      getErrHelpWidth: () => 120,
      getOutHasColors: () => terminal.colour,
      getErrHasColors: () => false,
    })
    .addHelpText("after", programExamples);
  const end = (value: number) => void (code = value);

  // Completions tell of all commands; a command is loaded alone.
  const wants = (name: string) => args.includes(name) || args[0] === "completions";

  const run = program.command("run").description("supervise Envoy until told to stop");
  // The schema is loaded for `run` alone: the other commands start without it.
  if (wants("run")) {
    const { addRunOptions, runCommand, runExamples } = await import("./run_command.ts");
    addRunOptions(run);
    run.addHelpText("after", runExamples).action(async () => end(await runCommand(run, terminal)));
  }

  const install = program.command("install").description("copy epochd into a directory, for an image or a node");
  if (wants("install")) {
    const { addInstallOptions, installCommand, installExamples } = await import("./install_command.ts");
    addInstallOptions(install);
    install.addHelpText("after", installExamples)
      .action(async (options: InstallOptions) => end(await installCommand(options, terminal)));
  }

  program.command("status").description("show services and their epochs")
    .option(
      "--watch",
      "draw it anew while it changes, with connections and the last handoffs; lines where that is no terminal",
    )
    .option("--json", "for programs")
    .addOption(apiSocketOption())
    .addHelpText("after", statusExamples)
    .action(async (options: { json?: true; watch?: true; apiSocket?: string }) => {
      const { statusCommand } = await import("./status_command.ts");
      const { json = false, watch = false } = options;
      end(await statusCommand({ socket: socketOf(options), json, watch }, terminal));
    });

  program.command("restart").description("start a new epoch that takes over from the serving one")
    .addOption(
      new Option(
        "--wait [UNTIL]",
        "live: until the new epoch serves; drained: and the old one has ended (alone: drained)",
      ).argParser(toUntil),
    )
    .option("--service <NAME>", "which one, where there are several")
    .option("--force", "even though the serving epoch's control plane is away")
    .option("--drained", "no handoff: drain what serves, end it, start afresh; says first how many connections end")
    .option("--dry-run", "with --drained: say that, and do nothing")
    .option("--json", "for programs")
    .addOption(apiSocketOption())
    .addHelpText("after", restartExamples)
    .action(async (options: RestartFlags) => {
      const { restartCommand } = await import("./restart_command.ts");
      end(
        await restartCommand({
          socket: socketOf(options),
          force: options.force === true,
          drained: options.drained === true,
          dryRun: options.dryRun === true,
          json: options.json === true,
          ...(options.service === undefined ? {} : { service: options.service }),
          ...(options.wait === undefined ? {} : { wait: options.wait === true ? "drained" : options.wait }),
        }, terminal),
      );
    });

  const reload = program.command("reload").description("read epochd.yaml again, and a new epoch for every service");
  const rollback = program.command("rollback").description(
    "go back to an earlier configuration, or with --binary to an earlier executable",
  );
  if (wants("reload") || wants("rollback")) {
    const { addReloadOptions, addRollbackOptions } = await import("./reload_command.ts");
    addReloadOptions(reload, terminal, end);
    addRollbackOptions(rollback, terminal, end);
  }

  addBinaryCommands(program, terminal, end);

  const upgrade = program.command("upgrade").description("let another executable of epochd take over every service");
  if (wants("upgrade")) (await import("./upgrade_command.ts")).addUpgradeOptions(upgrade, terminal, end);

  const config = program.command("config").description("show, change, compare and check the configuration");
  if (wants("config")) (await import("./config_commands.ts")).addConfigCommands(config, terminal, end);

  const key = program.command("key").description("make, list and revoke keys of the API over TCP");
  if (wants("key")) (await import("./key_command.ts")).addKeyCommands(key, terminal, end);

  await addObserveCommands(program, args, terminal, end);

  try {
    await program.parseAsync([...args], { from: "user" });
    return code;
  } catch (error) {
    if (error instanceof OutputError) {
      terminal.err(`error: write the output: ${error.message}\n`);
      return exitCode.refused;
    }
    if (!(error instanceof CommanderError)) throw error;
    if (error.exitCode === 0) return exitCode.ok;
    if (error.code !== "commander.help") terminal.err("epochd --help and epochd COMMAND --help show what there is\n");
    return exitCode.usage;
  }
}

interface RestartFlags {
  readonly wait?: true | "live" | "drained";
  readonly service?: string;
  readonly force?: true;
  readonly drained?: true;
  readonly dryRun?: true;
  readonly json?: true;
  readonly apiSocket?: string;
}

const programExamples = `
Examples:
  epochd run --envoy-config envoy.yaml
  epochd status
  epochd restart --wait`;

const statusExamples = `
Examples:
  epochd status
  epochd status --watch
  epochd status --json --api-socket /run/epochd/api.sock

Exit codes: 0 shown, 1 no supervisor, 2 usage.`;

const restartExamples = `
Examples:
  epochd restart                  ask for it and return
  epochd restart --wait           return when the old epoch has ended
  epochd restart --wait=live      return when the new epoch serves
  epochd restart --service edge --json
  epochd restart --drained --dry-run    how many connections a restart without a handoff would end

Exit codes: 0 done, 1 refused or no supervisor, 2 usage.`;
