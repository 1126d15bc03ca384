// Owns: putting epochd's files into a directory: all checked and staged before the first is renamed into its place.
// Must not: write to the terminal, or change anything but that directory.

import { dirname, join } from "node:path";
import { reason } from "../adapters/content.ts";
import { copyToNew, digestOf, syncDirectory } from "./files.ts";
import {
  type InstalledName as Name,
  type Manifest,
  manifestName,
  modeOf,
  parseManifest,
  programFiles,
} from "./manifest.ts";

export interface InstalledFile {
  readonly name: Name;
  /** `current`: content and mode were right, the file is untouched. */
  readonly action: "installed" | "replaced" | "current";
  readonly bytes: number;
  readonly sha256: string;
}

export type Installation =
  | { readonly kind: "installed"; readonly files: readonly InstalledFile[] }
  | { readonly kind: "failed"; readonly problem: string };

class Failure extends Error {}

/** Only our names end so: what a killed installation left is told apart from what others keep in the directory. */
const STAGED = ".epochd-install.tmp";

export async function install(sourceDir: string, targetDir: string): Promise<Installation> {
  try {
    const wanted = await checkSource(sourceDir);
    await makeDirectory(targetDir);
    using lock = await attempt(`open ${targetDir}`, () => Deno.open(targetDir));
    await attempt(`lock ${targetDir}`, () => lock.lock(true));
    return { kind: "installed", files: await installAll(sourceDir, targetDir, wanted) };
  } catch (error) {
    if (error instanceof Failure) return { kind: "failed", problem: error.message };
    throw error;
  }
}

async function makeDirectory(path: string): Promise<void> {
  const info = await Deno.stat(path).catch(() => undefined);
  if (info !== undefined && !info.isDirectory) throw new Failure(`install into ${path}: it is not a directory`);
  await attempt(`create ${path}`, () => Deno.mkdir(path, { recursive: true, mode: 0o755 }));
}

interface Wanted {
  readonly name: Name;
  readonly sha256: string;
}

/** A copy that was cut short on its way here must not go further. */
async function checkSource(sourceDir: string): Promise<readonly Wanted[]> {
  const path = join(sourceDir, manifestName);
  const text = await attempt(`read ${path}`, () => Deno.readTextFile(path));
  const manifest: Manifest | string = parseManifest(text);
  if (typeof manifest === "string") throw new Failure(`read ${path}: ${manifest}`);
  for (const name of programFiles) {
    const source = join(sourceDir, name);
    const found = await attempt(`read ${source}`, () => digestOf(source));
    if (found === undefined) throw new Failure(`read ${source}: it does not exist, expected it beside ${path}`);
    if (found !== manifest[name]) {
      const { size } = await Deno.stat(source);
      throw new Failure(
        `read ${source}: it is cut short or altered: ${size} bytes with sha256 ${found}, expected ${manifest[name]}`,
      );
    }
  }
  const own = await digestOf(path);
  return [...programFiles.map((name) => ({ name, sha256: manifest[name] })), { name: manifestName, sha256: own! }];
}

async function installAll(
  sourceDir: string,
  dir: string,
  wanted: readonly Wanted[],
): Promise<readonly InstalledFile[]> {
  await removeStaged(dir);
  const files: InstalledFile[] = [];
  try {
    for (const { name, sha256 } of wanted) {
      const target = join(dir, name);
      const action = await actionFor(target, name, sha256);
      const source = join(sourceDir, name);
      if (action !== "current") await stage(source, target + STAGED, name, sha256);
      files.push({ name, action, bytes: (await Deno.stat(source)).size, sha256 });
    }
    for (const { name, action } of files) {
      const target = join(dir, name);
      if (action !== "current") await attempt(`install ${target}`, () => Deno.rename(target + STAGED, target));
    }
    await attempt(`sync ${dir}`, () => syncDirectory(dir));
    return files;
  } catch (error) {
    await removeStaged(dir).catch(() => {});
    throw error;
  }
}

async function actionFor(target: string, name: Name, sha256: string): Promise<InstalledFile["action"]> {
  const info = await Deno.lstat(target).catch((error) => {
    if (error instanceof Deno.errors.NotFound) return undefined;
    throw new Failure(`look at ${target}: ${reason(error)}`);
  });
  if (info === undefined) return "installed";
  if (info.isDirectory) throw new Failure(`install ${target}: a directory is in its place`);
  const isRight = info.isFile && ((info.mode ?? 0) & 0o7777) === modeOf(name) &&
    await attempt(`read ${target}`, () => digestOf(target)) === sha256;
  return isRight ? "current" : "replaced";
}

async function stage(source: string, staged: string, name: Name, sha256: string): Promise<void> {
  const { size } = await Deno.stat(source);
  await attempt(`write ${staged} (${size} bytes)`, () => copyToNew(source, staged, modeOf(name)));
  const written = await attempt(`read ${staged}`, () => digestOf(staged));
  if (written !== sha256) {
    throw new Failure(`write ${staged}: it reads back with sha256 ${written}, expected ${sha256}`);
  }
}

async function removeStaged(dir: string): Promise<void> {
  const names = await attempt(`list ${dir}`, () => Array.fromAsync(Deno.readDir(dir), ({ name }) => name));
  for (const name of names.filter((name) => name.endsWith(STAGED))) {
    await attempt(`remove ${join(dir, name)}`, () => Deno.remove(join(dir, name)));
  }
}

async function attempt<T>(what: string, act: () => Promise<T>): Promise<T> {
  try {
    return await act();
  } catch (error) {
    throw new Failure(`${what}: ${reason(error)}`);
  }
}

/** Where the running executable and what belongs to it lie; undefined when it runs from source. */
export async function ownDirectory(): Promise<string | undefined> {
  return Deno.build.standalone ? dirname(await Deno.realPath(Deno.execPath())) : undefined;
}
