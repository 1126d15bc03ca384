// Owns: the file that tells kubelet's probe that traffic is served. Must not: decide when that is so.

import type { ReadyMarker } from "../runtime/ports.ts";
import { reason } from "./content.ts";
import { ageMs, type ProcState, readProcStat } from "./proc_stat.ts";

/** A living supervisor refreshes its marker several times within this. */
const FRESH_MS = 10_000;
/** /proc counts a process' start in hundredths of a second. */
const START_SLACK_MS = 100;

export interface FileReadyMarkerOptions {
  readonly wallMs?: () => number;
  readonly pid?: number;
  /** Nobody outside this pod has this path: the pid in a marker of the past may be anybody's by now. Default false. */
  readonly isPodLocal?: boolean;
}

/** `"<unix ms> <epoch> <pid>\n"`, replaced by rename, so that a reader sees it whole or not at all. */
export class FileReadyMarker implements ReadyMarker {
  private readonly temporary: string;
  private readonly pid: number;
  private readonly wallMs: () => number;
  private readonly isPodLocal: boolean;
  private turn: Promise<unknown> = Promise.resolve();

  constructor(readonly path: string, options: FileReadyMarkerOptions = {}) {
    this.pid = options.pid ?? Deno.pid;
    this.wallMs = options.wallMs ?? Date.now;
    this.isPodLocal = options.isPodLocal ?? false;
    this.temporary = `${path}.${this.pid}.tmp`;
  }

  write(epoch: number): Promise<string | undefined> {
    return this.inTurn(async () => {
      await this.refuseForeign();
      await this.removeTemporary();
      // A file of our own making: a link that somebody put there would be followed. Not synced: a marker is for the living.
      const text = `${this.wallMs()} ${epoch} ${this.pid}\n`;
      await Deno.writeTextFile(this.temporary, text, { mode: 0o644, createNew: true });
      await Deno.rename(this.temporary, this.path);
    }, "write");
  }

  /** Only what this process wrote: a marker of another supervisor is its own. */
  remove(): Promise<string | undefined> {
    return this.inTurn(async () => {
      if (await this.owner() === this.pid) await Deno.remove(this.path);
    }, "remove");
  }

  /**
   * At the start: what an ended supervisor wrote does not speak for this run. `removed` is called when there was one. The
   * problem where a living supervisor keeps it fresh.
   */
  removeStale(removed: () => void = () => {}): Promise<string | undefined> {
    return this.inTurn(async () => {
      await this.refuseForeign();
      const holder = this.isPodLocal ? undefined : await this.livingWriter();
      if (holder !== undefined) {
        throw new Error(`it is held by pid ${holder}, a supervisor that keeps it fresh: give another --ready-marker`);
      }
      await Deno.remove(this.path);
      removed();
    }, "remove the old");
  }

  /** One at a time, so that the last asked for is the last done. */
  private inTurn(act: () => Promise<void>, verb: string): Promise<string | undefined> {
    const result = this.turn.then(act).then(() => undefined, async (error) => {
      if (error instanceof Deno.errors.NotFound && verb !== "write") return undefined;
      await this.removeTemporary();
      return `${verb} ready marker ${this.path}: ${reason(error)}`;
    });
    this.turn = result;
    return result;
  }

  private async removeTemporary(): Promise<void> {
    await Deno.remove(this.temporary).catch(() => {});
  }

  private async refuseForeign(): Promise<void> {
    const info = await Deno.lstat(this.path).catch((error) => {
      if (error instanceof Deno.errors.NotFound) return undefined;
      throw error;
    });
    if (info?.isSymlink) throw new Error("it is a symbolic link, expected a file or nothing");
    if (info?.isDirectory) throw new Error("it is a directory, expected a file or nothing");
    if (info !== undefined && !info.isFile) throw new Error("it is not a regular file, expected a file or nothing");
  }

  /** Another epochd that runs now and ran when this marker was written, a moment ago. */
  private async livingWriter(): Promise<number | undefined> {
    const marker = parseMarker(await Deno.readTextFile(this.path).catch(() => ""));
    if (marker === undefined || marker.pid === this.pid) return undefined;
    const sinceMs = this.wallMs() - marker.unixMs;
    if (Math.abs(sinceMs) >= FRESH_MS) return undefined;
    const writer = await readProcStat(marker.pid);
    if (writer === undefined || /[ZXx]/.test(writer.state) || !await isSupervisor(writer)) return undefined;
    // Younger than the marker: the pid is another process' by now.
    const livesMs = await ageMs(writer);
    return livesMs !== undefined && livesMs + START_SLACK_MS < sinceMs ? undefined : marker.pid;
  }

  private async owner(): Promise<number | undefined> {
    await this.refuseForeign();
    return parseMarker(await Deno.readTextFile(this.path))?.pid;
  }
}

/** Runs the program that this process runs, as `run`: another one has the pid by chance, as from another PID namespace. */
async function isSupervisor({ pid, name }: ProcState): Promise<boolean> {
  if ((await readProcStat(Deno.pid))?.name !== name) return false;
  const args = await Deno.readTextFile(`/proc/${pid}/cmdline`).catch(() => "");
  return args.split("\0").includes("run");
}

export interface Marker {
  readonly unixMs: number;
  readonly epoch: number;
  readonly pid: number;
}

export function parseMarker(text: string): Marker | undefined {
  const match = /^(\d{1,16}) (\d{1,10}) (\d{1,10})\n$/.exec(text);
  return match === null ? undefined : { unixMs: Number(match[1]), epoch: Number(match[2]), pid: Number(match[3]) };
}
