// Owns: how a directory of the node is handed over. Must not: need root where the own user will do.
import assert from "node:assert/strict";
import { parseOwner, prepareHostDir } from "../../../lib/install/host_dir.ts";
import { tempDir } from "../../support/tempdir.ts";

const self = { uid: Deno.uid()!, gid: Deno.gid()! };
const root = Deno.uid() === 0;

Deno.test("an owner is two numbers", () => {
  assert.deepEqual(parseOwner("65532:101"), { uid: 65532, gid: 101 });
  for (const text of ["", "1", "a:b", "1:2:3", "-1:1", "4294967295:1", "99999999999:1", "1: 2"]) {
    assert.equal(parseOwner(text), undefined, text);
  }
});

Deno.test("a directory is made, closed to others, and left alone the second time", async () => {
  await using directory = tempDir();
  const path = directory.at("run/state");
  assert.deepEqual(await prepareHostDir(path, self), { kind: "prepared", path, changed: false });
  Deno.chmodSync(path, 0o755);
  assert.deepEqual(await prepareHostDir(path, self), { kind: "prepared", path, changed: true });
  assert.equal(Deno.statSync(path).mode! & 0o7777, 0o700);
  assert.deepEqual(await prepareHostDir(path, self), { kind: "prepared", path, changed: false });
});

Deno.test({
  name: "a directory gets another owner, what lies in it does not",
  ignore: !root,
  async fn() {
    await using directory = tempDir();
    const path = directory.at("state");
    directory.write("state/file", "x");
    assert.deepEqual(await prepareHostDir(path, { uid: 65532, gid: 101 }), { kind: "prepared", path, changed: true });
    const { uid, gid } = Deno.statSync(path);
    assert.deepEqual({ uid, gid, file: Deno.statSync(`${path}/file`).uid }, { uid: 65532, gid: 101, file: 0 });
  },
});

Deno.test("a link and a file are refused", async () => {
  await using directory = tempDir();
  Deno.mkdirSync(directory.at("real"));
  Deno.symlinkSync(directory.at("real"), directory.at("link"));
  const file = directory.write("file", "");
  const problemOf = async (path: string) => {
    const prepared = await prepareHostDir(path, self);
    return prepared.kind === "failed" ? prepared.problem : "none";
  };
  const link = directory.at("link");
  assert.equal(await problemOf(link), `prepare ${link}: it is a symbolic link, expected a directory`);
  assert.equal(await problemOf(file), `prepare ${file}: it is not a directory`);
});
