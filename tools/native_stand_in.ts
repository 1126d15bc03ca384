/**
 * Builds lib/stand_in/stand_in.c into an executable that needs nothing but the kernel; `native_stand_in.ts` puts it where an epochd
 * that runs from source looks for it, and is cheap when it is there.
 * Owns the flags. Must not: use a compiler of the machine.
 */
import { basename, dirname, join } from "node:path";
import { existsSync } from "node:fs";
import { sourceProgram } from "../lib/stand_in/location.ts";
import { compileC, type NativeTarget, nativeTargets, zig } from "./native_probe.ts";
import { projectDir } from "./toolchain.ts";

const source = join(projectDir, "lib/stand_in/stand_in.c");
const flags = ["-std=c11", "-Os", "-Wall", "-Wextra", "-Werror", "-static", "-s", "-mcpu=baseline"];

export async function buildStandIn(output: string, target: NativeTarget = nativeTargets[0]): Promise<void> {
  await compileC(zig, ["cc", "-target", target, ...flags], source, output);
}

/** With a compiler and flags of the caller's: for sanitizers. */
export async function compileStandIn(compiler: string, args: readonly string[], output: string): Promise<void> {
  await compileC(compiler, args, source, output);
}

/** For an epochd that runs from source; resolves to its path. */
export async function provideStandIn(): Promise<string> {
  const path = sourceProgram();
  if (existsSync(path)) return path;
  await Deno.mkdir(dirname(path), { recursive: true });
  // Two may build it at once.
  const work = await Deno.makeTempDir({ dir: dirname(path), prefix: ".work-" });
  try {
    const built = join(work, basename(path));
    await buildStandIn(built, `${Deno.build.arch}-linux-musl`);
    await Deno.rename(built, path);
    return path;
  } finally {
    await Deno.remove(work, { recursive: true });
  }
}

if (import.meta.main) {
  await Deno.stdout.write(new TextEncoder().encode(`${await provideStandIn()}\n`));
}
