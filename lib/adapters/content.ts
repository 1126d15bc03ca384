// Owns: reading a small file whole and naming its content. Must not: watch, or judge what it holds.

import { createHash } from "node:crypto";

export type Read =
  | { readonly kind: "read"; readonly bytes: Uint8Array<ArrayBuffer>; readonly digest: string }
  | { readonly kind: "unusable"; readonly why: "missing" | "unreadable" | "empty"; readonly problem: string };

/** More is no bootstrap; Envoy keeps its whole bootstrap in memory several times. */
const MAX_BYTES = 268_435_456;

export async function readContent(path: string): Promise<Read> {
  const unusable = (why: "missing" | "unreadable" | "empty", text: string): Read => {
    return { kind: "unusable", why, problem: `read ${path}: ${text}` };
  };
  try {
    const info = await Deno.stat(path);
    if (info.isDirectory) return unusable("unreadable", "is a directory, expected a file");
    // Before the open: opening a FIFO would wait for a writer.
    if (!info.isFile) return unusable("unreadable", "is not a regular file");
    if (info.size > MAX_BYTES) return unusable("unreadable", `has ${info.size} bytes, more than ${MAX_BYTES}`);
    const bytes = await Deno.readFile(path);
    if (bytes.length === 0) return unusable("empty", "is empty");
    return { kind: "read", bytes, digest: sha256(bytes) };
  } catch (error) {
    return unusable(isMissing(error) ? "missing" : "unreadable", reason(error));
  }
}

export function sha256(content: Uint8Array | string): string {
  return createHash("sha256").update(content).digest("hex");
}

/**
 * A file's state as stat tells it: equal texts are equal content, unless the file is written right now. Deno's ctime has whole
 * seconds only (2.9.8), so that a chmod shows in the mode.
 */
export function statKey(info: Deno.FileInfo): string {
  return [info.dev, info.ino, info.mode, info.size, info.mtime?.getTime(), info.ctime?.getTime()].join("-");
}

export function isMissing(error: unknown): boolean {
  return error instanceof Deno.errors.NotFound || error instanceof Deno.errors.NotADirectory;
}

/** An error of the operating system without the call and the path that Deno puts around it. */
export function reason(error: unknown): string {
  const text = error instanceof Error ? error.message : String(error);
  return /([A-Z][^:]*) \(os error \d+\)/.exec(text)?.[1]?.toLowerCase() ?? text;
}
