// Owns: telling equal from other content of files, as cheaply as their size allows. Must not: watch, or judge what they hold.

import { createHash } from "node:crypto";

/** A file's state as stat tells it: equal texts are equal content, unless the file is written right now. */
export function statKey(info: Deno.FileInfo): string {
  return [info.dev, info.ino, info.size, info.mtime?.getTime(), info.ctime?.getTime()].join("-");
}

export type Read =
  | { readonly kind: "read"; readonly bytes: Uint8Array<ArrayBuffer>; readonly digest: string }
  | { readonly kind: "unusable"; readonly why: "missing" | "unreadable" | "empty"; readonly problem: string };

/** More is no bootstrap; Envoy keeps its whole bootstrap in memory several times. */
const MAX_BYTES = 268_435_456;

/** The whole of a small file and its sha256. */
export async function readContent(path: string): Promise<Read> {
  try {
    // Before the open: opening a FIFO would wait for a writer.
    const wrong = notAFile(await Deno.stat(path));
    if (wrong !== undefined) return { kind: "unusable", why: "unreadable", problem: `read ${path}: ${wrong}` };
    const bytes = await Deno.readFile(path);
    if (bytes.length === 0) return { kind: "unusable", why: "empty", problem: `read ${path}: the file is empty` };
    return { kind: "read", bytes, digest: sha256(bytes) };
  } catch (error) {
    const missing = error instanceof Deno.errors.NotFound || error instanceof Deno.errors.NotADirectory;
    return { kind: "unusable", why: missing ? "missing" : "unreadable", problem: `read ${path}: ${reason(error)}` };
  }
}

export function sha256(content: Uint8Array | string): string {
  return createHash("sha256").update(content).digest("hex");
}

/** An error of the operating system without the call that Deno puts before it. */
export function reason(error: unknown): string {
  const text = error instanceof Error ? error.message : String(error);
  return /([A-Z][^:]*)\(os error \d+\)/.exec(text)?.[1]?.trim().toLowerCase() ?? text;
}

function notAFile(info: Deno.FileInfo): string | undefined {
  if (info.isDirectory) return "is a directory, expected a file";
  if (!info.isFile) return "is not a regular file";
  return info.size > MAX_BYTES ? `has ${info.size} bytes, more than ${MAX_BYTES}` : undefined;
}

export type Look =
  | { readonly kind: "usable"; readonly digest: string }
  | { readonly kind: "unusable"; readonly why: "missing" | "not_executable" | "unreadable"; readonly problem: string };

/** One content of a binary that was seen, whatever files have had it. */
interface Known {
  readonly digest: string;
  readonly size: number;
  readonly stats: Set<string>;
  sha256?: string;
  /** Keeps the content readable until it must be hashed, even when its file is replaced. */
  held?: { readonly file: Deno.FsFile; readonly mtime: number | undefined };
}

/**
 * Digests of large files, by name: equal content always gets the name that it had first. The first binary is named by its stat and
 * hashed only when another file of its size shows up, so that a start never waits for the hash of 107 MB (70 to 250 ms).
 */
export class BinaryDigests {
  private readonly known: Known[] = [];
  private turn: Promise<unknown> = Promise.resolve();
  /** Files hashed so far. */
  hashed = 0;

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

  close(): void {
    for (const content of this.known) release(content);
  }

  private async lookNow(path: string): Promise<Look> {
    try {
      const info = await Deno.stat(path);
      if (!info.isFile) return unusable("not_executable", `${path} is ${info.isDirectory ? "a directory" : "not a regular file"}, expected Envoy's binary`);
      if (info.size === 0) return unusable("not_executable", `${path} is empty, expected Envoy's binary`);
      if (((info.mode ?? 0o111) & 0o111) === 0) return unusable("not_executable", `${path} is not executable (mode ${((info.mode ?? 0) & 0o7777).toString(8)})`);
      return { kind: "usable", digest: await this.digestOf(path, info) };
    } catch (error) {
      const missing = error instanceof Deno.errors.NotFound || error instanceof Deno.errors.NotADirectory;
      return unusable(missing ? "missing" : "unreadable", `${path}: ${reason(error)}`);
    }
  }

  private async digestOf(path: string, info: Deno.FileInfo): Promise<string> {
    const stat = statKey(info);
    const seen = this.byStat(stat);
    if (seen !== undefined) return seen.digest;
    const fresh: Known = { digest: `stat-${stat}`, size: info.size, stats: new Set([stat]) };
    const racy = isRacy(info);
    if (racy || this.known.some(({ size }) => size === info.size)) {
      fresh.sha256 = await this.hashPath(path);
      for (const other of this.known) {
        if (other.size !== info.size) continue;
        other.sha256 ??= await this.hashHeld(other);
        if (other.sha256 !== fresh.sha256) continue;
        if (!racy) other.stats.add(stat);
        return other.digest;
      }
      if (racy) fresh.stats.clear();
      this.known.push({ ...fresh, digest: fresh.sha256 });
      return fresh.sha256;
    }
    fresh.held = { file: await Deno.open(path), mtime: info.mtime?.getTime() };
    this.known.push(fresh);
    return fresh.digest;
  }

  private byStat(stat: string): Known | undefined {
    return this.known.find(({ stats }) => stats.has(stat));
  }

  private async hashPath(path: string): Promise<string> {
    using file = await Deno.open(path);
    return await this.hash(file);
  }

  /** The held content's sha256, or a text equal to none when it was written over in place. */
  private async hashHeld(content: Known): Promise<string> {
    const { held } = content;
    if (held === undefined) return content.digest;
    const now = await held.file.stat();
    const digest = now.size === content.size && now.mtime?.getTime() === held.mtime ? await this.hash(held.file) : `gone-${content.digest}`;
    release(content);
    return digest;
  }

  private async hash(file: Deno.FsFile): Promise<string> {
    this.hashed++;
    const hash = createHash("sha256");
    const buffer = new Uint8Array(262_144);
    for (let count = await file.read(buffer); count !== null; count = await file.read(buffer)) hash.update(buffer.subarray(0, count));
    return hash.digest("hex");
  }
}

function unusable(why: "missing" | "not_executable" | "unreadable", problem: string): Look {
  return { kind: "unusable", why, problem };
}

/** Changed so recently that a further change might leave the stat as it is: Deno tells ctime in whole seconds. */
function isRacy(info: Deno.FileInfo): boolean {
  const changed = info.ctime?.getTime();
  return changed === undefined || changed === null || Math.abs(Date.now() - changed) < 2000;
}

function release(content: Known): void {
  content.held?.file.close();
  delete content.held;
}
