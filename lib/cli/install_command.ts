// Owns: `epochd install`. Must not: know how files get to their place (lib/install does).

import type { Command } from "commander";
import { parseOwner, prepareHostDir } from "../install/host_dir.ts";
import { install, ownDirectory } from "../install/install.ts";
import { oneLine, plural } from "../observe/words.ts";
import { version } from "../observe/version.ts";
import { exitCode } from "./exit_code.ts";
import type { Terminal } from "./terminal.ts";

export interface InstallOptions {
  readonly to?: string;
  readonly hostDir?: readonly string[];
  readonly owner?: string;
  readonly json?: true;
}

export const installExamples = `
Examples:
  epochd install --to /opt/epochd
  epochd install --host-dir /host/state --host-dir /host/shm --owner 65532:65532

An initContainer runs the first, so that Envoy's own image gets epochd, its probe and the library they need. The second, as root,
makes directories of the node and hands them to the user that the pod runs as.

Exit codes: 0 done, 1 failed (what was in --to before is as it was), 2 usage.`;

export function addInstallOptions(command: Command): void {
  command
    .option("--to <DIR>", "copy epochd, its three helpers and their library there, whole or not at all")
    .option("--host-dir <DIR>", "make this directory, for --owner alone (repeatable)", collect)
    .option("--owner <UID:GID>", "who gets the host directories")
    .option("--json", "for programs");
}

function collect(value: string, previous: readonly string[] | undefined): readonly string[] {
  return [...previous ?? [], value];
}

export async function installCommand(options: InstallOptions, terminal: Terminal): Promise<number> {
  const { to, hostDir = [], json = false } = options;
  const misuse = (text: string) => {
    terminal.err(`error: ${oneLine(text)}\n`);
    return exitCode.usage;
  };
  if (to === undefined && hostDir.length === 0) {
    return misuse("install: nothing to do, expected --to DIR or --host-dir DIR");
  }
  if (to === "" || hostDir.includes("")) return misuse("install: the directory is empty, expected a path");
  const owner = parseOwner(options.owner ?? "");
  if (hostDir.length > 0 && owner === undefined) {
    return misuse(`--owner ${options.owner ?? "is missing"}: expected numbers such as 65532:65532, for --host-dir`);
  }
  if (hostDir.length === 0 && options.owner !== undefined) return misuse("--owner: expected --host-dir DIR with it");

  const fail = (problem: string) => {
    if (json) terminal.out(`${JSON.stringify({ type: "urn:epochd:problem:install_failed", detail: problem })}\n`);
    terminal.err(`error: ${oneLine(problem)}\n`);
    return exitCode.refused;
  };
  const lines: string[] = [];
  const report: Record<string, unknown> = { version };
  for (const path of hostDir) {
    const prepared = await prepareHostDir(path, owner!);
    if (prepared.kind === "failed") return fail(prepared.problem);
    lines.push(`${path} ${prepared.changed ? "now belongs" : "belongs"} to ${options.owner} alone`);
    report.host_dirs = [...(report.host_dirs as unknown[] ?? []), { path, changed: prepared.changed }];
  }
  if (to !== undefined) {
    const source = await ownDirectory();
    if (source === undefined) {
      return fail("install: this epochd runs from source, expected the executable that `make compile` builds");
    }
    const installation = await install(source, to);
    if (installation.kind === "failed") return fail(installation.problem);
    const changed = installation.files.filter(({ action }) => action !== "current");
    lines.push(
      changed.length === 0
        ? `epochd ${version} is in ${to} already`
        : `epochd ${version} is in ${to}: ${plural(changed.length, "file")} written, checksums verified`,
    );
    report.to = to;
    report.files = installation.files;
  }
  terminal.out(json ? `${JSON.stringify(report, undefined, 2)}\n` : `${oneLine(lines.join("; "))}\n`);
  return exitCode.ok;
}
