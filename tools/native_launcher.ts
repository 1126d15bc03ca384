/**
 * Builds lib/launch/launch.c into an executable that needs nothing but the kernel.
 * Owns its flags, and the copy that runs from source use. Must not: use a compiler of the machine.
 */
import { createHash } from "node:crypto";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { compileC, type NativeTarget, nativeTargets, zig } from "./native_probe.ts";
import { projectDir, toolsDir } from "./toolchain.ts";

const source = join(projectDir, "lib/launch/launch.c");
const flags = ["-std=c11", "-Os", "-Wall", "-Wextra", "-Werror", "-static", "-s", "-mcpu=baseline"];

export async function buildLauncher(output: string, target: NativeTarget = nativeTargets[0]): Promise<void> {
  await compileC(zig, ["cc", "-target", target, ...flags], source, output);
}

/** Where epochd runs from source: EPOCHD_LAUNCHER names this one. Built once for each text of its source. */
export async function cachedLauncher(): Promise<string> {
  const digest = createHash("sha256").update(await Deno.readTextFile(source)).update(flags.join(" ")).digest("hex");
  const directory = join(toolsDir, "cache/launcher");
  const path = join(directory, `epochd-launch-${digest.slice(0, 16)}`);
  if (existsSync(path)) return path;
  await Deno.mkdir(directory, { recursive: true });
  const built = `${path}.${crypto.randomUUID().slice(0, 8)}`;
  await buildLauncher(built, `${Deno.build.arch}-linux-musl`);
  await Deno.rename(built, path);
  return path;
}

if (import.meta.main) Deno.stdout.writeSync(new TextEncoder().encode(`${await cachedLauncher()}\n`));
