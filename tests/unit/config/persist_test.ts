import assert from "node:assert/strict";
import { sha256 } from "../../../lib/adapters/content.ts";
import { replaceConfigFile } from "../../../lib/config/persist.ts";
import { type TempDir, tempDir } from "../../support/tempdir.ts";

function names(dir: TempDir): string[] {
  return [...Deno.readDirSync(dir.path)].map(({ name }) => name).sort();
}

Deno.test("replaceConfigFile keeps mode and owner, and leaves nothing beside the file", async () => {
  await using dir = tempDir();
  const path = dir.write("epochd.yaml", "old");
  Deno.chmodSync(path, 0o640);
  if (Deno.uid() === 0) Deno.chownSync(path, 1234, 4321);
  const { uid, gid, ino } = Deno.statSync(path);
  const done = await replaceConfigFile(path, "new", sha256("old"));
  assert.deepEqual(done, { kind: "written", digest: sha256("new") });
  assert.equal(Deno.readTextFileSync(path), "new");
  const after = Deno.statSync(path);
  assert.deepEqual([after.mode! & 0o7777, after.uid, after.gid], [0o640, uid, gid]);
  assert.notEqual(after.ino, ino, "it must be a new file, put in place by a rename");
  assert.deepEqual(names(dir), ["epochd.yaml"]);
});

Deno.test("replaceConfigFile refuses to write over an edit of somebody else", async () => {
  await using dir = tempDir();
  const path = dir.write("epochd.yaml", "edited");
  const done = await replaceConfigFile(path, "new", sha256("old"));
  assert.ok(done.kind === "refused" && done.name === "config_file_changed", JSON.stringify(done));
  assert.match(done.detail, /epochd\.yaml was edited since epochd read it: reload it first/);
  assert.equal(Deno.readTextFileSync(path), "edited");
  assert.deepEqual(names(dir), ["epochd.yaml"]);
});

Deno.test("replaceConfigFile follows a link and leaves it one", async () => {
  await using dir = tempDir();
  dir.write("real.yaml", "old");
  Deno.symlinkSync("real.yaml", dir.at("epochd.yaml"));
  assert.equal((await replaceConfigFile(dir.at("epochd.yaml"), "new", sha256("old"))).kind, "written");
  assert.equal(Deno.readLinkSync(dir.at("epochd.yaml")), "real.yaml");
  assert.equal(Deno.readTextFileSync(dir.at("real.yaml")), "new");
});

Deno.test("replaceConfigFile says that a file is read-only, for root too, and what to do", async () => {
  await using dir = tempDir();
  const path = dir.write("epochd.yaml", "old");
  Deno.chmodSync(path, 0o444);
  for (const [file, why] of [[path, /it is read-only \(mode 0444\)/], [dir.at("none.yaml"), /no such file/]] as const) {
    const done = await replaceConfigFile(file, "new", sha256("old"));
    assert.ok(done.kind === "refused" && done.name === "config_read_only", JSON.stringify(done));
    assert.match(done.detail, why);
    assert.match(done.detail, /with persist=false the change applies until epochd ends/);
  }
  assert.equal(Deno.readTextFileSync(path), "old");
});
