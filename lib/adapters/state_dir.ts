// Owns: the state directory as a place: that it exists, is ours alone and can be written. Must not: know what lies in it.

import { join } from "node:path";
import { reason } from "./content.ts";
import { temporaryFor } from "./temporary.ts";

/** Resolves to the problem, or undefined when the directory can be used. */
export async function prepareStateDir(path: string): Promise<string | undefined> {
  const problem = (why: string) => `use state directory ${path}: ${why}`;
  try {
    await Deno.mkdir(path, { recursive: true, mode: 0o700 });
  } catch (error) {
    // The path, or a part of it, is something else.
    if (error instanceof Deno.errors.AlreadyExists) return problem("is not a directory");
    return problem(reason(error));
  }
  try {
    const info = await Deno.stat(path);
    if (!info.isDirectory) return problem("is not a directory");
    const uid = Deno.uid();
    if (info.uid !== null && info.uid !== uid && uid !== 0) {
      return problem(`belongs to uid ${info.uid}, epochd runs as uid ${uid}`);
    }
    // Who may write here may choose what runs. It is refused, not mended: /tmp with 0700 would lock everybody out. Others may read its
    // names: what lies in it has 0600.
    const mode = (info.mode ?? 0) & 0o7777;
    if ((mode & 0o022) !== 0) {
      return problem(`has mode ${mode.toString(8).padStart(4, "0")}, others may write to it: expected 0700`);
    }
    const probe = temporaryFor(join(path, ".write"));
    await Deno.writeTextFile(probe, "");
    await Deno.remove(probe);
    await sweep(path);
    return undefined;
  } catch (error) {
    return problem(reason(error));
  }
}

const ABANDONED_MS = 60_000;

/** Removes what a killed supervisor was writing; what is young, another one may be writing. */
async function sweep(path: string): Promise<void> {
  for await (const { name, isFile } of Deno.readDir(path)) {
    if (!isFile || !name.endsWith(".tmp")) continue;
    const file = join(path, name);
    const writtenMs = (await Deno.lstat(file).catch(() => undefined))?.mtime?.getTime() ?? Infinity;
    if (Date.now() - writtenMs > ABANDONED_MS) await Deno.remove(file).catch(() => {});
  }
}

/** Names this boot of the machine: state of another boot speaks of processes that are gone. */
export async function readBootId(procDir = "/proc"): Promise<string | undefined> {
  try {
    const id = (await Deno.readTextFile(`${procDir}/sys/kernel/random/boot_id`)).trim();
    return id === "" ? undefined : id;
  } catch {
    return undefined;
  }
}
