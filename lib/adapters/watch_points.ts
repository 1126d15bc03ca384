// Owns: where a path could change: the directories on the way to its file, symbolic links followed. Must not: watch them.

import { dirname, join, resolve } from "node:path";

export interface WatchPoints {
  /** Each directory with what tells it from another of the same path: one that was replaced must be watched anew. */
  readonly directories: ReadonlyMap<string, string>;
  /** The links, the file, and the first part that is missing: only what happens to these matters. */
  readonly paths: ReadonlySet<string>;
}

/** As the kernel: more links on one way are a loop. */
const MAX_LINKS = 40;

/**
 * A ConfigMap's file is a link to `..data/NAME`, and `..data` a link that kubelet swaps: each link's own directory counts, and the
 * last file's. Where a part is missing, its directory is the one to watch.
 */
export async function watchPoints(path: string): Promise<WatchPoints> {
  const directories = new Map<string, string>();
  const paths = new Set<string>();
  const watch = async (point: string) => {
    paths.add(point);
    const directory = dirname(point);
    const info = await Deno.stat(directory).catch(() => undefined);
    if (info !== undefined) directories.set(directory, `${info.dev}-${info.ino}`);
  };
  let parts = resolve(path).split("/").slice(1);
  let at = "/";
  for (let links = 0; parts.length > 0;) {
    const [part = "", ...rest] = parts;
    const here = join(at, part);
    const info = await Deno.lstat(here).catch(() => undefined);
    const target = info?.isSymlink === true ? await Deno.readLink(here).catch(() => undefined) : undefined;
    if (target !== undefined && ++links <= MAX_LINKS) {
      await watch(here);
      parts = [...resolve(at, target).split("/").slice(1).filter((name) => name !== ""), ...rest];
      at = "/";
      continue;
    }
    if (info === undefined || rest.length === 0 || target !== undefined) {
      await watch(here);
      break;
    }
    at = here;
    parts = rest;
  }
  return { directories, paths };
}

export function sameDirectories(one: WatchPoints, other: WatchPoints): boolean {
  return one.directories.size === other.directories.size &&
    [...one.directories].every(([path, id]) => other.directories.get(path) === id);
}
