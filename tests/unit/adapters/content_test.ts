import { match, notStrictEqual, strictEqual } from "node:assert/strict";
import { readContent, reason, sha256, statKey } from "../../../lib/adapters/content.ts";
import { tempDir } from "../../support/tempdir.ts";

Deno.test("readContent: the bytes and their sha256", async () => {
  await using dir = tempDir();
  const read = await readContent(dir.write("a", "abc"));
  if (read.kind !== "read") throw new Error(read.problem);
  strictEqual(read.digest, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  strictEqual(new TextDecoder().decode(read.bytes), "abc");
  strictEqual(sha256("abc"), read.digest);
});

Deno.test("readContent: tells missing, directory, empty and special files apart", async () => {
  await using dir = tempDir();
  const why = async (path: string) => {
    const read = await readContent(path);
    return read.kind === "unusable" ? `${read.why}: ${read.problem}` : "read";
  };
  strictEqual(await why(dir.at("no")), `missing: read ${dir.at("no")}: no such file or directory`);
  strictEqual(await why(dir.at("a")), `missing: read ${dir.at("a")}: no such file or directory`);
  const file = dir.write("file", "x");
  strictEqual(await why(`${file}/below`), `missing: read ${file}/below: not a directory`);
  strictEqual(await why(dir.path), `unreadable: read ${dir.path}: is a directory, expected a file`);
  strictEqual(await why(dir.write("empty", "")), `empty: read ${dir.at("empty")}: is empty`);
  const fifo = dir.at("fifo");
  await new Deno.Command("mkfifo", { args: [fifo] }).output();
  strictEqual(await why(fifo), `unreadable: read ${fifo}: is not a regular file`);
  Deno.symlinkSync(dir.at("loop"), dir.at("loop"));
  match(await why(dir.at("loop")), /^unreadable: .*too many levels of symbolic links/);
});

Deno.test("statKey: another mode is another state, also within the second of the one before", async () => {
  await using dir = tempDir();
  const path = dir.write("file", "x");
  const before = statKey(Deno.statSync(path));
  strictEqual(statKey(Deno.statSync(path)), before);
  Deno.chmodSync(path, 0o600);
  notStrictEqual(statKey(Deno.statSync(path)), before);
});

Deno.test("reason: the operating system's words alone", async () => {
  const error = await Deno.stat("/nowhere/at/all").catch((error) => error);
  strictEqual(reason(error), "no such file or directory");
  strictEqual(reason(new Error("plain: words")), "plain: words");
  strictEqual(reason("text"), "text");
});
