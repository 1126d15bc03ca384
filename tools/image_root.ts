/**
 * `image_root.ts DIR`: the contents of epochd's image: DIR/program, and DIR/system for a base without a C library of its own.
 * Owns where things are in the image. Called by the Dockerfile; expects the toolchain of `setup.py --compile`.
 */
import { dirname, join } from "node:path";
import { type InstalledName, manifestName, modeOf, programFiles } from "../lib/install/manifest.ts";
import { compile, distDir } from "./compile.ts";
import { glibcFiles } from "./glibc.ts";

export const imageHome = "/usr/local/lib/epochd";

export async function makeImageRoot(directory: string): Promise<void> {
  await compile();
  const [program, system] = [join(directory, "program"), join(directory, "system")];
  const names: readonly InstalledName[] = [...programFiles, manifestName];
  for (const name of names) await put(join(distDir, name), join(program, imageHome, name), modeOf(name));
  for (const { path, from } of await glibcFiles(join(distDir, "epochd"))) await put(from, join(system, path), 0o755);
  await Deno.mkdir(join(system, "tmp"));
  await Deno.chmod(join(system, "tmp"), 0o1777);
  await forgetTimes(directory);
}

/** The same files give the same layer, whenever it is built. */
async function forgetTimes(path: string): Promise<void> {
  if ((await Deno.lstat(path)).isDirectory) {
    for (const { name } of await Array.fromAsync(Deno.readDir(path))) await forgetTimes(join(path, name));
  }
  await Deno.utime(path, 0, 0);
}

async function put(from: string, to: string, mode: number): Promise<void> {
  await Deno.mkdir(dirname(to), { recursive: true });
  await Deno.copyFile(from, to);
  await Deno.chmod(to, mode);
}

if (import.meta.main) await makeImageRoot(Deno.args[0]!);
