// Owns: whether a file is an epochd that runs here, and of which version. Must not: install it.

import { refuseUpgrade, type UpgradeRefusal } from "../runtime/upgrade_status.ts";
import { runBounded } from "./bounded_run.ts";
import { reason } from "./content.ts";
import { ELF_HEADER_BYTES, elfSize, foreignHeader } from "./elf.ts";

const RUN_MS = 20_000;
/** What the loader says of a library that it misses, with exit code 127. */
const LIBRARY = /error while loading shared libraries: ([^:]+):/;

export type CheckedFile =
  | { readonly kind: "usable"; readonly version: string }
  | { readonly kind: "refused"; readonly refusal: UpgradeRefusal };

export async function checkEpochd(path: string): Promise<CheckedFile> {
  const wrong = await lookAt(path);
  if (wrong !== undefined) return wrong;
  const ran = await runBounded(path, ["--version"], { timeoutMs: RUN_MS, signal: new AbortController().signal });
  switch (ran.kind) {
    case "aborted":
    case "timeout":
      return refuseUpgrade("executable_fails", `${path} --version did not end within ${RUN_MS / 1000} s`);
    case "failed":
      return ran.error instanceof Deno.errors.PermissionDenied
        ? refuseUpgrade("executable_not_executable", notExecutable(path))
        : refuseUpgrade("executable_fails", `${path} can't be run: ${reason(ran.error)}`);
    case "ended":
      return judge(path, ran.code, ran.stdout, ran.stderr);
  }
}

function judge(path: string, code: number, stdout: string, stderr: string): CheckedFile {
  const library = LIBRARY.exec(stderr)?.[1];
  if (library !== undefined) {
    const detail = `${path} misses ${library}: expected it beside the executable, as \`epochd install\` puts it`;
    return refuseUpgrade("executable_fails", detail);
  }
  if (code !== 0) {
    const said = stderr.trim().split("\n")[0]?.slice(0, 200) ?? "";
    return refuseUpgrade("executable_fails", `${path} --version ended with ${code}${said === "" ? "" : `: ${said}`}`);
  }
  const version = /^epochd (\S+) \(.*\)\n?$/.exec(stdout)?.[1];
  if (version !== undefined) return { kind: "usable", version };
  const shown = JSON.stringify(stdout.slice(0, 80));
  return refuseUpgrade("executable_wrong", `${path} --version says ${shown}, expected \`epochd VERSION (deno ...)\``);
}

async function lookAt(path: string): Promise<Extract<CheckedFile, { kind: "refused" }> | undefined> {
  try {
    const info = await Deno.stat(path);
    if (!info.isFile) return refuseUpgrade("executable_wrong", `${path} is not a regular file`);
    if (((info.mode ?? 0) & 0o111) === 0) return refuseUpgrade("executable_not_executable", notExecutable(path));
    using file = await Deno.open(path);
    const bytes = new Uint8Array(ELF_HEADER_BYTES);
    const header = bytes.subarray(0, await file.read(bytes) ?? 0);
    const foreign = header[0] === 0x23 ? "a script, not an executable" : foreignHeader(header, Deno.build.arch);
    if (foreign !== undefined) return refuseUpgrade("executable_wrong", `${path}: ${foreign}`);
    const least = elfSize(header);
    if (info.size >= least) return undefined;
    return refuseUpgrade("executable_wrong", `${path} is cut short: ${info.size} bytes, expected ${least} or more`);
  } catch (error) {
    if (error instanceof Deno.errors.NotFound) return refuseUpgrade("executable_missing", `${path} does not exist`);
    if (error instanceof Deno.errors.PermissionDenied) {
      return refuseUpgrade("executable_not_executable", `${path} can't be read by uid ${Deno.uid()}`);
    }
    return refuseUpgrade("executable_missing", `${path} can't be looked at: ${reason(error)}`);
  }
}

function notExecutable(path: string): string {
  return `${path} may not be executed by uid ${Deno.uid()}: expected mode 0755, on a file system that lets programs run`;
}
