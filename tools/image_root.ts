/**
 * `image_root.ts DIR`: the root file system of epochd's image. Called by the Dockerfile.
 * Owns what is in the image; expects the toolchain of `setup.py --compile`.
 */
import { dirname, join } from "node:path";
import { type InstalledName, manifestName, modeOf, programFiles } from "../lib/install/manifest.ts";
import { compile, distDir } from "./compile.ts";
import { glibcFiles } from "./glibc.ts";

const imageHome = "/usr/local/lib/epochd";

export async function makeImageRoot(root: string): Promise<void> {
  await compile();
  const names: readonly InstalledName[] = [...programFiles, manifestName];
  for (const name of names) await put(join(distDir, name), join(root, imageHome, name), modeOf(name));
  for (const { path, from } of await glibcFiles(join(distDir, "epochd"))) await put(from, join(root, path), 0o755);
  await Deno.mkdir(join(root, "tmp"), { recursive: true });
  await Deno.chmod(join(root, "tmp"), 0o1777);
}

async function put(from: string, to: string, mode: number): Promise<void> {
  await Deno.mkdir(dirname(to), { recursive: true });
  await Deno.copyFile(from, to);
  await Deno.chmod(to, mode);
  // The same files give the same layer, whenever it is built.
  await Deno.utime(to, 0, 0);
}

if (import.meta.main) await makeImageRoot(Deno.args[0]!);
