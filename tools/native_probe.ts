/**
 * Builds lib/probe/probe.c into an executable that needs nothing but the kernel.
 * Owns the flags and the header of words. Must not: choose where the result goes, or use a compiler of the machine.
 */
import { join } from "node:path";
import { version } from "../lib/observe/version.ts";
import { defaultMaxAge, errorWords, futureMs, help, maxAgeExpected, pathMissing } from "../lib/probe/words.ts";
import { projectDir, toolsDir } from "./toolchain.ts";

export const nativeTargets = ["x86_64-linux-musl", "aarch64-linux-musl"] as const;
export type NativeTarget = typeof nativeTargets[number];

export const zig: string = join(toolsDir, "zig/zig");
const source = join(projectDir, "lib/probe/probe.c");
// The processor is the oldest that Envoy's own builds run on, not the one that builds; without contraction, so that
// doubles round as in JavaScript on both processors.
const flags = [
  "-std=c11",
  "-Os",
  "-ffp-contract=off",
  "-Wall",
  "-Wextra",
  "-Werror",
  "-static",
  "-s",
  "-mcpu=baseline",
];

export async function buildNativeProbe(output: string, target: NativeTarget = nativeTargets[0]): Promise<void> {
  await compileC(zig, ["cc", "-target", target, ...flags], source, output);
}

/** With a compiler and flags of the caller's: for sanitizers. */
export async function compileProbe(compiler: string, args: readonly string[], output: string): Promise<void> {
  await compileC(compiler, args, source, output);
}

/** Any single C file, with the words in reach. */
export async function compileC(
  compiler: string,
  args: readonly string[],
  input: string,
  output: string,
): Promise<void> {
  const include = `${output}.include`;
  await Deno.mkdir(include, { recursive: true });
  try {
    await Deno.writeTextFile(join(include, "words.h"), wordsHeader());
    const child = new Deno.Command(compiler, {
      args: [...args, "-I", include, "-o", output, input],
      env: { ZIG_GLOBAL_CACHE_DIR: join(toolsDir, "cache/zig"), ZIG_LOCAL_CACHE_DIR: join(include, "cache") },
      stdin: "null",
      stdout: "null",
      stderr: "piped",
    });
    const { success, code, stderr } = await child.output();
    if (!success) throw new Error(`${compiler} ended with ${code}:\n${new TextDecoder().decode(stderr)}`);
  } finally {
    await Deno.remove(include, { recursive: true });
  }
}

function wordsHeader(): string {
  const words = {
    HELP: help,
    VERSION: `epochd-probe ${version} (native)\n`,
    DEFAULT_MAX_AGE: defaultMaxAge,
    MAX_AGE_EXPECTED: maxAgeExpected,
    PATH_MISSING: pathMissing,
    ...Object.fromEntries(Object.entries(errorWords).map(([name, text]) => [`WORDS_${name}`, text])),
  };
  const defines = Object.entries(words).map(([name, text]) => `#define ${name} ${cString(text)}\n`);
  return [...defines, `#define FUTURE_MS INT64_C(${futureMs})\n`].join("");
}

function cString(text: string): string {
  // Of JSON's escapes, plain ASCII uses only those that C has too.
  if (/[^\n\x20-\x7e]/.test(text)) throw new Error(`not plain ASCII: ${JSON.stringify(text)}`);
  return JSON.stringify(text);
}
