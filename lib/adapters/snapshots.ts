// Owns: the copies of bootstraps that epochs run from, named by their digest. Must not: know what they hold.

import { basename, dirname, extname, join } from "node:path";
import { reason } from "./content.ts";
import { temporaryFor } from "./temporary.ts";

export type Taken =
  | { readonly kind: "taken"; readonly path: string }
  | { readonly kind: "failed"; readonly problem: string };

export class Snapshots {
  private readonly directory: string;
  private turn: Promise<unknown> = Promise.resolve();
  /** Taken last: an epoch may be about to start from them although nobody has asked to keep them yet. */
  private recent: readonly string[] = [];
  /** What was taken and is not pruned, by digest: another supervisor of the same state directory prunes what it doesn't know. */
  private readonly kept = new Map<string, Uint8Array<ArrayBuffer>>();

  constructor(stateDir: string) {
    this.directory = join(stateDir, "bootstrap");
  }

  /**
   * Envoy goes by the extension, so the copy keeps the original's. Whole or not there, by rename; not synced, which takes longer than
   * everything else of a start: what a power failure leaves of it is compared byte by byte before it is used again.
   */
  take(digest: string, originalPath: string, bytes: Uint8Array<ArrayBuffer>): Promise<Taken> {
    this.recent = [digest, ...this.recent.filter((other) => other !== digest)].slice(0, 2);
    this.kept.set(digest, bytes);
    return this.inTurn(() => this.takeNow(digest, originalPath, bytes));
  }

  /** Removes the copies of other digests; what can't be removed is left for the next time. */
  prune(keepDigests: readonly string[]): Promise<void> {
    const keep = new Set([...keepDigests, ...this.recent]);
    for (const digest of this.kept.keys()) if (!keep.has(digest)) this.kept.delete(digest);
    return this.inTurn(() => this.pruneNow(keep));
  }

  /** Right before an epoch starts from it, and so without a turn: a copy that somebody removed is put back. */
  restore(path: string): void {
    const bytes = this.kept.get(basename(path, extname(path)));
    if (bytes === undefined || isThere(path)) return;
    const temporary = temporaryFor(path);
    try {
      Deno.mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
      Deno.writeFileSync(temporary, bytes, { mode: 0o600, createNew: true });
      Deno.renameSync(temporary, path);
    } catch {
      // Envoy tells that it is missing.
    }
  }

  /** One after the other: a copy that was just found to be there must not be removed. */
  private inTurn<T>(act: () => Promise<T>): Promise<T> {
    const result = this.turn.then(act);
    this.turn = result;
    return result;
  }

  private async takeNow(digest: string, originalPath: string, bytes: Uint8Array<ArrayBuffer>): Promise<Taken> {
    const path = join(this.directory, digest + extname(originalPath));
    const temporary = temporaryFor(path);
    try {
      if (await holds(path, bytes)) return { kind: "taken", path };
      await Deno.mkdir(this.directory, { recursive: true, mode: 0o700 });
      await Deno.remove(temporary).catch(() => {});
      {
        // 0600: bootstraps may hold secrets, and Envoy runs as the same user.
        using file = await Deno.open(temporary, { write: true, createNew: true, mode: 0o600 });
        for (let sent = 0; sent < bytes.length;) sent += await file.write(bytes.subarray(sent));
      }
      await Deno.rename(temporary, path);
      return { kind: "taken", path };
    } catch (error) {
      await Deno.remove(temporary).catch(() => {});
      return { kind: "failed", problem: `write the bootstrap's snapshot ${path}: ${reason(error)}` };
    }
  }

  private async pruneNow(keep: ReadonlySet<string>): Promise<void> {
    try {
      for await (const { name } of Deno.readDir(this.directory)) {
        const path = join(this.directory, name);
        if (name.endsWith(".tmp") ? await isYoung(path) : keep.has(name.slice(0, 64))) continue;
        await Deno.remove(path).catch(() => {});
      }
    } catch {
      // What can't be listed can't be pruned; the next prune tries again.
    }
  }
}

async function holds(path: string, bytes: Uint8Array): Promise<boolean> {
  try {
    const info = await Deno.lstat(path);
    if (!info.isFile || info.size !== bytes.length) return false;
    const there = await Deno.readFile(path);
    return there.length === bytes.length && there.every((byte, i) => byte === bytes[i]);
  } catch {
    return false;
  }
}

function isThere(path: string): boolean {
  try {
    return Deno.lstatSync(path).isFile;
  } catch {
    return false;
  }
}

/** Somebody may still be writing it. */
async function isYoung(path: string): Promise<boolean> {
  try {
    return Date.now() - ((await Deno.lstat(path)).mtime?.getTime() ?? 0) < 60_000;
  } catch {
    return true;
  }
}
