// Owns: the copies of bootstraps that epochs run from, named by their digest. Must not: know what they hold.

import { extname, join } from "node:path";
import { reason } from "./digests.ts";

export type Taken =
  | { readonly kind: "taken"; readonly path: string }
  | { readonly kind: "failed"; readonly problem: string };

export class Snapshots {
  private readonly directory: string;
  private serial = 0;

  constructor(stateDir: string) {
    this.directory = join(stateDir, "bootstrap");
  }

  /** Envoy goes by the extension, so the copy keeps the original's. Whole and on disk, or not there. */
  async take(digest: string, originalPath: string, bytes: Uint8Array<ArrayBuffer>): Promise<Taken> {
    const path = join(this.directory, digest + extname(originalPath));
    const temporary = `${path}.${Deno.pid}.${this.serial++}.tmp`;
    try {
      if (await hasSize(path, bytes.length)) return { kind: "taken", path };
      await Deno.mkdir(this.directory, { recursive: true, mode: 0o700 });
      {
        // 0600: bootstraps may hold secrets, and Envoy runs as the same user.
        using file = await Deno.open(temporary, { write: true, createNew: true, mode: 0o600 });
        for (let sent = 0; sent < bytes.length;) sent += await file.write(bytes.subarray(sent));
        await file.syncData();
      }
      await Deno.rename(temporary, path);
      return { kind: "taken", path };
    } catch (error) {
      await Deno.remove(temporary).catch(() => {});
      return { kind: "failed", problem: `write the bootstrap's snapshot ${path}: ${reason(error)}` };
    }
  }

  async prune(keepDigests: readonly string[]): Promise<void> {
    const keep = new Set(keepDigests);
    try {
      for await (const { name } of Deno.readDir(this.directory)) {
        if (keep.has(name.slice(0, 64)) && !name.endsWith(".tmp")) continue;
        await Deno.remove(join(this.directory, name)).catch(() => {});
      }
    } catch {
      // What can't be listed can't be pruned; the next prune tries again.
    }
  }
}

async function hasSize(path: string, size: number): Promise<boolean> {
  try {
    const info = await Deno.lstat(path);
    return info.isFile && info.size === size;
  } catch {
    return false;
  }
}
