// Owns: where the library lies that an Envoy is started with, so that the death of its supervisor is its own and nobody else's.
// Must not: build it (tools/death_signal.ts), or fail a start: without it Envoy keeps its own rule.

import { Buffer } from "node:buffer";
import { join } from "node:path";
import { temporaryFor } from "../adapters/temporary.ts";
import { LIBRARY } from "./library.ts";

const NAME = "libepochd-death-signal.so";

/** Writes it into the first of these directories that lets programs run; undefined where none does. */
export function writeLibrary(directories: readonly string[], mountInfo = readMountInfo()): string | undefined {
  const bytes = Buffer.from(LIBRARY[Deno.build.arch], "base64");
  for (const directory of directories) {
    const path = join(directory, NAME);
    const temporary = temporaryFor(path);
    try {
      if (isNoExec(Deno.realPathSync(directory), mountInfo)) continue;
      // Anew by rename: another supervisor's Envoy may be starting with the one that is there.
      Deno.writeFileSync(temporary, bytes, { mode: 0o755, createNew: true });
      Deno.renameSync(temporary, path);
      return path;
    } catch {
      // The next one may be writable.
    }
  }
  return undefined;
}

/** The environment that preloads it, beside what is preloaded already. */
export function preloadEnv(library: string | undefined, present = Deno.env.get("LD_PRELOAD")): Record<string, string> {
  if (library === undefined) return {};
  return { LD_PRELOAD: present === undefined || present === "" ? library : `${library}:${present}` };
}

/** By the mount that is nearest above the directory: the loader could not map the library from a `noexec` one. */
export function isNoExec(directory: string, mountInfo: string): boolean {
  let [longest, found] = [-1, false];
  for (const line of mountInfo.split("\n")) {
    const [, , , , point, options = ""] = line.split(" ");
    if (point === undefined) continue;
    // Later ones of the same place lie on top.
    const isAbove = point === "/" || directory === point || directory.startsWith(`${point}/`);
    if (!isAbove || point.length < longest) continue;
    [longest, found] = [point.length, options.split(",").includes("noexec")];
  }
  return found;
}

function readMountInfo(): string {
  try {
    return Deno.readTextFileSync("/proc/self/mountinfo");
  } catch {
    return "";
  }
}
