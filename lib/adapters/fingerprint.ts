// Owns: telling builds of one executable apart by a glance, across file systems, without reading 107 MB.
// Must not: be taken for a digest: who changes bytes in the middle of a file by hand is not noticed.

import { createHash } from "node:crypto";

const GLANCE = 65_536;

/** Size, headers, and the end with its section headers and symbols, which differ in every build; undefined where it can't be read. */
export async function fingerprint(path: string): Promise<string | undefined> {
  try {
    using file = await Deno.open(path);
    const { size } = await file.stat();
    const hash = createHash("sha256").update(String(size));
    const bytes = new Uint8Array(GLANCE);
    for (const at of [0, Math.max(0, size - GLANCE)]) {
      await file.seek(at, Deno.SeekMode.Start);
      for (let left = GLANCE; left > 0;) {
        const count = await file.read(bytes.subarray(0, left));
        if (count === null) break;
        hash.update(bytes.subarray(0, count));
        left -= count;
      }
    }
    return hash.digest("hex");
  } catch {
    return undefined;
  }
}
