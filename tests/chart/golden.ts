// Owns: comparing a text with the one on record; UPDATE=1 records it anew. Must not: know what it is.
import assert from "node:assert/strict";

export async function assertGolden(path: string, actual: string): Promise<void> {
  if (Deno.env.get("UPDATE") === "1") {
    await Deno.writeTextFile(path, actual);
    return;
  }
  const recorded = await Deno.readTextFile(path).catch(() => "");
  assert.equal(actual, recorded, `${path} differs: look at it, then record it with UPDATE=1`);
}
