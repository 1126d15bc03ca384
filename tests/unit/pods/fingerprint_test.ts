import assert from "node:assert/strict";
import { fingerprint } from "../../../lib/adapters/fingerprint.ts";
import { tempDir } from "../../support/tempdir.ts";

Deno.test("fingerprint + equal for equal content in another file; other for another size, head or end; none for what can't be read", async () => {
  await using dir = tempDir();
  const bytes = new Uint8Array(300_000).map((_, index) => index % 251);
  const write = (name: string, change: (bytes: Uint8Array<ArrayBuffer>) => void = () => {}, size = bytes.length) => {
    const copy = new Uint8Array(size);
    copy.set(bytes.subarray(0, size));
    change(copy);
    Deno.writeFileSync(dir.at(name), copy);
    return fingerprint(dir.at(name));
  };
  const first = await write("a");
  assert.match(first ?? "", /^[0-9a-f]{64}$/);
  assert.equal(await write("b"), first);
  assert.notEqual(await write("head", (copy) => void (copy[10] = 255)), first);
  assert.notEqual(await write("end", (copy) => void (copy[299_990] = 255)), first);
  assert.notEqual(await write("short", undefined, 299_999), first);
  assert.match(await write("tiny", undefined, 3) ?? "", /^[0-9a-f]{64}$/);
  assert.equal(await fingerprint(dir.at("absent")), undefined);
});
