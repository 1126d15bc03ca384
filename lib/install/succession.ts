// Owns: the installed executable while another one takes its place: staged beside it, then put in place, the old one kept.
// Must not: run or check either. At every moment, killed wherever it may be, a startable file is at the installed path.

import { basename, dirname, join } from "node:path";
import { reason } from "../adapters/content.ts";
import { copyToNew, digestOf, syncDirectory } from "./files.ts";
import { formatManifest, manifestName, parseManifest } from "./manifest.ts";

/** The directory of what is staged, with the pid of who does it. */
const STAGED = /\.next-(\d{1,10})$/;
/** What the executable finds beside itself; it may as well be the machine's. */
const LIBRARY = "libgcc_s.so.1";

/** The place of a supervisor's file, also where it is still that of an upgrade that was cut short. */
export function installedPath(running: string): string {
  const path = running.replace(/ \(deleted\)$/, "");
  const [above, name] = [dirname(path), basename(path)];
  return STAGED.test(above) && basename(above).startsWith(`${name}.next-`) ? join(dirname(above), name) : path;
}

export function previousPath(installed: string): string {
  return `${installed}.previous`;
}

export async function isSameFile(one: string, other: string): Promise<boolean> {
  const [a, b] = await Promise.all([one, other].map((path) => Deno.stat(path).catch(() => undefined)));
  return a !== undefined && b !== undefined && a.dev === b.dev && a.ino === b.ino;
}

/**
 * A copy beside the installed one, on disk, in a directory of its own: a process has its file's name for life, and `pidof epochd` is to
 * find it. The problem where it can't be had, and nothing is left then.
 */
export async function stage(file: string, installed: string): Promise<{ readonly path: string } | string> {
  const directory = `${installed}.next-${Deno.pid}`;
  const path = join(directory, basename(installed));
  try {
    await removeLeft(installed);
    await Deno.mkdir(directory, { mode: 0o755 });
    await Deno.chmod(directory, 0o755);
    const library = join(dirname(installed), LIBRARY);
    if (await exists(library)) await Deno.symlink(`../${LIBRARY}`, join(directory, LIBRARY));
    await copyToNew(file, path, 0o755);
    await syncDirectory(directory);
    return { path };
  } catch (error) {
    await discard(path);
    return `copy ${file} to ${path}: ${reason(error)}`;
  }
}

/** With its directory, in which nothing else is. */
export async function discard(staged: string): Promise<void> {
  const directory = dirname(staged);
  if (!STAGED.test(directory)) return;
  await Deno.remove(directory, { recursive: true }).catch(() => {});
}

/** The problem, or undefined. */
export async function putInPlace(staged: string, installed: string): Promise<string | undefined> {
  const kept = `${installed}.kept-${Deno.pid}`;
  try {
    await keep(installed, kept);
    await Deno.rename(staged, installed);
    await syncDirectory(dirname(installed));
    await retellManifest(installed);
    await discard(staged);
    return undefined;
  } catch (error) {
    return `put ${staged} in the place of ${installed}: ${reason(error)}`;
  } finally {
    // A rename onto another name of the same file leaves both.
    await Deno.remove(kept).catch(() => {});
  }
}

async function keep(installed: string, kept: string): Promise<void> {
  try {
    await Deno.link(installed, kept);
  } catch (error) {
    if (error instanceof Deno.errors.NotFound) return;
    // A file system without links.
    await copyToNew(installed, kept, 0o755);
  }
  await Deno.rename(kept, previousPath(installed));
}

/** `epochd install` takes from this directory only what the list beside it says. */
async function retellManifest(installed: string): Promise<void> {
  const path = join(dirname(installed), manifestName);
  if (basename(installed) !== "epochd") return;
  const manifest = parseManifest(await Deno.readTextFile(path).catch(() => ""));
  const digest = await digestOf(installed);
  if (typeof manifest === "string" || digest === undefined) return;
  const temporary = `${path}.next-${Deno.pid}`;
  await Deno.writeTextFile(temporary, formatManifest({ ...manifest, epochd: digest }), {
    mode: 0o644,
    createNew: true,
  });
  await Deno.rename(temporary, path);
}

/** What upgrades that were killed have left, and nobody runs. */
async function removeLeft(installed: string): Promise<void> {
  const directory = dirname(installed);
  const running = new Set<string>();
  for await (const { name } of Deno.readDir("/proc")) {
    if (!/^\d+$/.test(name)) continue;
    const exe = await Deno.readLink(`/proc/${name}/exe`).catch(() => undefined);
    if (exe !== undefined) running.add(exe);
  }
  for await (const { name, isDirectory } of Deno.readDir(directory)) {
    const pid = isDirectory && name.startsWith(`${basename(installed)}.next-`) ? STAGED.exec(name)?.[1] : undefined;
    if (pid === undefined || await exists(`/proc/${pid}`)) continue;
    const path = join(directory, name, basename(installed));
    if (!running.has(path)) await discard(path);
  }
}

async function exists(path: string): Promise<boolean> {
  return await Deno.stat(path).then(() => true, () => false);
}
