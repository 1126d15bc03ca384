// Owns: `epochd upgrade`: check the file, stage it, ask for the change, see it through, and put it in place.
// Must not: start a supervisor (the one that runs does), or replace a file before its successor serves.

import { resolve } from "node:path";
import type { Command } from "commander";
import { checkEpochd } from "../adapters/epochd_file.ts";
import { connectTo } from "../api/client.ts";
import { discard, installedPath, isSameFile, previousPath, putInPlace, stage } from "../install/succession.ts";
import { oneLine } from "../observe/words.ts";
import { version as ownVersion } from "../observe/version.ts";
import { apiSocketOption, socketOf } from "./api_socket_option.ts";
import { exitCode } from "./exit_code.ts";
import { reportFailure } from "./failure.ts";
import { openProgress, type Progress } from "./progress.ts";
import { painter, type Terminal } from "./terminal.ts";
import { type End, followUpgrade } from "./upgrade_follow.ts";

interface Flags {
  readonly to: string;
  /** `--no-install` makes it false. */
  readonly install: boolean;
  readonly dryRun?: true;
  readonly json?: true;
  readonly apiSocket?: string;
}

export function addUpgradeOptions(command: Command, terminal: Terminal, end: (code: number) => void): void {
  command.requiredOption("--to <FILE>", "the executable of epochd that takes over")
    .option("--no-install", "leave the installed file as it is: a later start is one of the old version")
    .option("--dry-run", "check everything, and start nothing")
    .option("--json", "for programs")
    .addOption(apiSocketOption())
    .addHelpText("after", upgradeExamples)
    .action(async (flags: Flags) => end(await upgradeCommand(flags, terminal)));
}

/** Where the installed file is, where one is to be replaced. */
interface Place {
  readonly installed: string;
  readonly staged: string;
}

export async function upgradeCommand(flags: Flags, terminal: Terminal): Promise<number> {
  const json = flags.json === true;
  if (flags.to === "") {
    terminal.err("error: --to is empty, expected the path of an executable\n");
    return exitCode.usage;
  }
  const file = resolve(flags.to);
  const refuse = (name: string, detail: string) => {
    const problem = { type: `urn:epochd:problem:${name}`, title: name.replaceAll("_", " "), status: 409, detail };
    return reportFailure({ kind: "problem", problem: { ...problem, refusal: name } }, terminal, json);
  };
  const checked = await checkEpochd(file);
  if (checked.kind === "refused") return refuse(checked.refusal.name, checked.refusal.detail);
  const client = connectTo(socketOf(flags));
  const status = await client.status();
  if (status.kind !== "ok") return reportFailure(status, terminal, json);
  const { pid, version, executable = "" } = status.value;

  const installed = flags.install && executable !== "" ? installedPath(executable) : undefined;
  const isThere = installed === undefined || await isSameFile(file, installed);
  if (flags.dryRun === true) {
    const answer = await client.upgrade(file, { dryRun: true });
    if (answer.kind !== "ok") return reportFailure(answer, terminal, json);
    const where = isThere ? "no file would be replaced" : `${installed} would be replaced`;
    terminal.out(
      json
        ? `${JSON.stringify({ outcome: "possible", ...answer.value })}\n`
        : `possible: epochd ${answer.value.version} can take over from ${version} (pid ${pid}), ${where}\n`,
    );
    return exitCode.ok;
  }
  const progress = json ? undefined : openProgress(terminal);
  progress?.step(`${file} is epochd ${checked.version}, ${version} runs with pid ${pid}`, "copying");
  let place: Place | undefined;
  if (!isThere) {
    const staged = await stage(file, installed);
    if (typeof staged === "string") {
      progress?.end();
      return refuse("install_failed", `${staged}; --no-install leaves the installed file alone`);
    }
    place = { installed, staged: staged.path };
    progress?.step(`copied to ${staged.path}`, "checks");
  }
  const answer = await client.upgrade(place?.staged ?? file, { dryRun: false });
  if (answer.kind !== "ok") {
    progress?.end();
    // Without an answer it may have been started all the same.
    if (answer.kind === "problem" && place !== undefined) await discard(place.staged);
    return reportFailure(answer, terminal, json);
  }
  const newPid = answer.value.pid ?? 0;
  progress?.step(`epochd ${answer.value.version} started with pid ${newPid}`, "it takes over");
  const ended = await followUpgrade({ socket: socketOf(flags), oldPid: pid, newPid, progress });
  if (ended.kind === "failed") {
    progress?.end();
    if (place !== undefined && !ended.isAlive) await discard(place.staged);
    return refuse("upgrade_failed", ended.detail);
  }
  return await conclude({ place, from: { version, pid }, to: { version: answer.value.version, pid: newPid } }, {
    ended,
    progress,
    json,
    terminal,
  });
}

interface Done {
  readonly place: Place | undefined;
  readonly from: { readonly version: string; readonly pid: number };
  readonly to: { readonly version: string; readonly pid: number };
}

async function conclude(
  { place, from, to }: Done,
  { progress, json, terminal }: {
    readonly ended: End;
    readonly progress: Progress | undefined;
    readonly json: boolean;
    readonly terminal: Terminal;
  },
): Promise<number> {
  const problem = place === undefined ? undefined : await putInPlace(place.staged, place.installed);
  if (place !== undefined && problem === undefined) {
    progress?.step(`installed as ${place.installed}, before: ${previousPath(place.installed)}`, undefined);
  }
  progress?.end();
  const files = place === undefined || problem !== undefined
    ? {}
    : { installed: place.installed, previous: previousPath(place.installed) };
  if (json) {
    const outcome = problem === undefined ? "upgraded" : "not_installed";
    const detail = problem === undefined ? {} : { detail: problem };
    terminal.out(`${JSON.stringify({ outcome, from, to, ...files, ...detail })}\n`);
  }
  if (problem !== undefined) {
    const text =
      `epochd ${to.version} serves with pid ${to.pid}, and a later start is one of ${from.version}: ${problem}`;
    terminal.err(`error: ${oneLine(text)}\n`);
    return exitCode.refused;
  }
  if (!json) {
    const paint = painter(terminal.colour);
    const text = `epochd ${to.version} (pid ${to.pid}) serves, ${from.version} (pid ${from.pid}) has ended`;
    terminal.out(`${paint("green", "done")}: ${text}\n`);
  }
  return exitCode.ok;
}

const upgradeExamples = `
Examples:
  epochd upgrade --to ./epochd                          this file takes over, and becomes the installed one
  epochd upgrade --to /usr/local/bin/epochd.previous    back to the one before
  epochd upgrade --to ./epochd --dry-run

The supervisor that runs starts FILE with its own arguments; every service is handed over epoch by epoch, as between two pods, so
each needs cross_pod. If the new one fails, the old one serves on. This is epochd ${ownVersion}.

Exit codes: 0 the new one serves and the old one has ended, 1 refused or failed, 2 usage.`;
