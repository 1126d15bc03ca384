// Owns: executables that may be started again although their file was replaced or removed. Must not: decide which.
//
// Held open and run by way of /proc/PID/fd: no copy of 107 MB, nothing to clean up after a kill -9, no file system that forbids
// execution. What is written over in place (which the kernel refuses while an Envoy runs it) is no longer what was kept.

import { closeSync, fstatSync, openSync } from "node:fs";
import { reason } from "./content.ts";

interface Kept {
  readonly open: number;
  /** As the kernel counts descriptors, which a runtime's own number need not be. */
  readonly path: string;
  readonly stat: string;
}

export class KeptBinaries {
  private readonly kept = new Map<string, Kept>();

  /** `isStill`: whether the file is the one of this digest; else the image of the process that runs it is kept. */
  constructor(
    private readonly isStill: (path: string, digest: string) => boolean,
    private readonly procDir = "/proc",
  ) {}

  /** The problem, or undefined when it is kept. */
  keep(digest: string, path: string, pid: number): string | undefined {
    if (this.find(digest) !== undefined) return undefined;
    const from = this.isStill(path, digest) ? path : `${this.procDir}/${pid}/exe`;
    const problem = (why: string) => `keep the executable ${path} for a rollback: ${why}`;
    try {
      const open = openSync(from, "r");
      const stat = statOf(fstatSync(open));
      const shown = this.descriptorPath(open, stat);
      if (shown === undefined) {
        closeSync(open);
        return problem(`its descriptor is not in ${this.procDir}/self/fd`);
      }
      this.kept.set(digest, { open, path: shown, stat });
      return undefined;
    } catch (error) {
      return problem(reason(error));
    }
  }

  /** Where it can be run from. */
  find(digest: string): string | undefined {
    const kept = this.kept.get(digest);
    if (kept === undefined) return undefined;
    try {
      return statOf(Deno.statSync(kept.path)) === kept.stat ? kept.path : undefined;
    } catch {
      return undefined;
    }
  }

  prune(keepDigests: readonly string[]): void {
    for (const [digest, { open }] of this.kept) {
      if (keepDigests.includes(digest)) continue;
      this.kept.delete(digest);
      closeSync(open);
    }
  }

  /** By this process' pid, since "self" would be the child. */
  private descriptorPath(open: number, stat: string): string | undefined {
    const directory = `${this.procDir}/${Deno.pid}/fd`;
    const others = [...Deno.readDirSync(directory)].map(({ name }) => name).reverse();
    for (const name of [String(open), ...others]) {
      try {
        if (statOf(Deno.statSync(`${directory}/${name}`)) === stat) return `${directory}/${name}`;
      } catch {
        // Closed meanwhile, or nothing that has a stat.
      }
    }
    return undefined;
  }
}

/** Not ctime: a rename or an unlink of the file changes nothing in it. */
function statOf(info: { dev: number; ino: number | null; size: number; mtime: Date | null }): string {
  return [info.dev, info.ino, info.size, info.mtime?.getTime()].join("-");
}
