// Owns: telling equal from other content of Envoy's binaries, as cheaply as 107 MB allow. Must not: run them, or watch them.

import { createHash } from "node:crypto";
import { isMissing, reason, sha256, statKey } from "./content.ts";
import { ELF_HEADER_BYTES, elfSize } from "./elf.ts";

export type Look =
  | { readonly kind: "usable"; readonly digest: string }
  | { readonly kind: "unusable"; readonly why: "missing" | "not_executable" | "unreadable"; readonly problem: string };

/** One content that was seen, whatever files have had it. */
interface Known {
  readonly digest: string;
  readonly size: number;
  readonly stats: Set<string>;
  sha256?: string;
  /** Keeps the content readable until it must be hashed, even when its file is replaced. */
  held?: Deno.FsFile;
}

/** Contents that are remembered; a forgotten one that returns gets another name. */
const MAX_KNOWN = 32;

/** A write in the same tick of the kernel's clock leaves mtime as it is; a tick has up to 10 ms. */
const RACY_MS = 100;

/**
 * Digests of binaries, by name: equal content always gets the name that it had first in this process. The first content is named by
 * its file's stat and hashed only when another file of its size shows up, so that a start never waits for a hash (70 to 250 ms).
 */
export class BinaryDigests {
  private readonly known: Known[] = [];
  private turn: Promise<unknown> = Promise.resolve();
  /** Files hashed so far. */
  hashed = 0;

  constructor(private readonly wallMs: () => number = Date.now) {}

  /** Looks at the file now; calls wait for each other, so that no content is hashed twice. */
  look(path: string): Promise<Look> {
    const look = this.turn.then(() => this.lookNow(path));
    this.turn = look;
    return look;
  }

  /** Whether the file is, by its stat alone, the one that this digest names. */
  isStill(path: string, digest: string): boolean {
    try {
      return this.byStat(statKey(Deno.statSync(path)))?.digest === digest;
    } catch {
      return false;
    }
  }

  /**
   * Hashes what is held only, when there is time. Until then bytes that are written over in place look like a touch; the kernel
   * refuses that (ETXTBSY) as long as an Envoy runs them.
   */
  settle(): Promise<void> {
    const settled = this.turn.then(() => this.hashAllHeld());
    this.turn = settled;
    return settled;
  }

  close(): void {
    for (const content of this.known) release(content);
  }

  private async lookNow(path: string): Promise<Look> {
    const unusable = (why: "missing" | "not_executable" | "unreadable", text: string): Look => {
      return { kind: "unusable", why, problem: `use ${path} as Envoy's binary: ${text}` };
    };
    let file: Deno.FsFile | undefined;
    try {
      const info = await Deno.stat(path);
      if (info.isDirectory) return unusable("not_executable", "is a directory, expected a file");
      if (!info.isFile) return unusable("not_executable", "is not a regular file");
      const mode = info.mode ?? 0o111;
      if ((mode & 0o111) === 0) {
        return unusable("not_executable", `is not executable (mode 0${(mode & 0o7777).toString(8)})`);
      }
      const seen = this.byStat(statKey(info));
      if (seen !== undefined) return { kind: "usable", digest: seen.digest };
      file = await Deno.open(path);
      const opened = await file.stat();
      const header = new Uint8Array(ELF_HEADER_BYTES);
      const whole = elfSize(header.subarray(0, await file.read(header) ?? 0));
      if (opened.size === 0) return unusable("not_executable", "is empty");
      if (opened.size < whole) {
        return unusable("not_executable", `is cut short: ${opened.size} of at least ${whole} bytes`);
      }
      const content = await this.contentOf(file, opened);
      if (content.held === file) file = undefined;
      return { kind: "usable", digest: content.digest };
    } catch (error) {
      return unusable(isMissing(error) ? "missing" : "unreadable", reason(error));
    } finally {
      file?.close();
    }
  }

  private async contentOf(file: Deno.FsFile, info: Deno.FileInfo): Promise<Known> {
    const stat = statKey(info);
    const mtimeMs = info.mtime?.getTime();
    const isRacy = mtimeMs === undefined || Math.abs(this.wallMs() - mtimeMs) < RACY_MS;
    const stats = new Set(isRacy ? [] : [stat]);
    if (!isRacy && !this.known.some(({ size }) => size === info.size)) {
      return await this.remember({ digest: `stat:${sha256(stat).slice(0, 16)}`, size: info.size, stats, held: file });
    }
    const digest = await this.hash(file);
    for (const other of this.known) {
      if (other.size !== info.size) continue;
      other.sha256 ??= await this.hashHeld(other);
      if (other.sha256 !== digest) continue;
      for (const known of stats) other.stats.add(known);
      return other;
    }
    return await this.remember({ digest, size: info.size, stats, sha256: digest });
  }

  /** Of all contents at most the newest is held open: a replaced binary would keep its disk space. */
  private async remember(content: Known): Promise<Known> {
    await this.hashAllHeld();
    this.known.push(content);
    for (const oldest of this.known.splice(0, this.known.length - MAX_KNOWN)) release(oldest);
    return content;
  }

  private byStat(stat: string): Known | undefined {
    return this.known.find(({ stats }) => stats.has(stat));
  }

  private async hashAllHeld(): Promise<void> {
    for (const content of this.known) if (content.held !== undefined) content.sha256 = await this.hashHeld(content);
  }

  /** The held content's sha256; where it can't be read any more, its name, which is no other's. */
  private async hashHeld(content: Known): Promise<string> {
    if (content.held === undefined) return content.digest;
    try {
      return await this.hash(content.held);
    } catch {
      return content.digest;
    } finally {
      release(content);
    }
  }

  private async hash(file: Deno.FsFile): Promise<string> {
    this.hashed++;
    await file.seek(0, Deno.SeekMode.Start);
    const hash = createHash("sha256");
    // Small enough that signals and timers are never kept waiting for a millisecond.
    const buffer = new Uint8Array(262_144);
    for (let count = await file.read(buffer); count !== null; count = await file.read(buffer)) {
      hash.update(buffer.subarray(0, count));
    }
    return hash.digest("hex");
  }
}

function release(content: Known): void {
  content.held?.close();
  delete content.held;
}
