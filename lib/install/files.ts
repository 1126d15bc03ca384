// Owns: whole files as an installer sees them: hashed as a stream, written, synced and read back. Must not: know which.

import { createHash } from "node:crypto";

const CHUNK_BYTES = 1_048_576;

/** Undefined where there is no such file. */
export async function digestOf(path: string): Promise<string | undefined> {
  try {
    using file = await Deno.open(path);
    const hash = createHash("sha256");
    const buffer = new Uint8Array(CHUNK_BYTES);
    for (let count = await file.read(buffer); count !== null; count = await file.read(buffer)) {
      hash.update(buffer.subarray(0, count));
    }
    return hash.digest("hex");
  } catch (error) {
    if (error instanceof Deno.errors.NotFound) return undefined;
    throw error;
  }
}

/** A new file with the bytes of another, on disk when this returns. */
export async function copyToNew(from: string, to: string, mode: number): Promise<void> {
  using source = await Deno.open(from);
  using target = await Deno.open(to, { write: true, createNew: true, mode });
  const buffer = new Uint8Array(CHUNK_BYTES);
  for (let count = await source.read(buffer); count !== null; count = await source.read(buffer)) {
    for (let sent = 0; sent < count;) sent += await target.write(buffer.subarray(sent, count));
  }
  // The mode of open() is subject to the umask.
  await Deno.chmod(to, mode);
  await target.sync();
}

/** A rename is on disk when its directory is. */
export async function syncDirectory(path: string): Promise<void> {
  using directory = await Deno.open(path);
  await directory.sync();
}
