import { deepStrictEqual, match, strictEqual } from "node:assert/strict";
import { prepareStateDir, readBootId } from "../../../lib/adapters/state_dir.ts";
import { tempDir } from "../../support/tempdir.ts";

const modeOf = (path: string) => ((Deno.statSync(path).mode ?? 0) & 0o777).toString(8);

Deno.test("prepareStateDir: makes it with its parents, for this user alone", async () => {
  await using dir = tempDir();
  const path = dir.at("run/epochd/state");
  strictEqual(await prepareStateDir(path), undefined);
  strictEqual(modeOf(path), "700");
  deepStrictEqual([...Deno.readDirSync(path)], []);
  strictEqual(await prepareStateDir(path), undefined);
});

Deno.test("prepareStateDir: a directory that others may write to is refused and left as it is, also through a link", async () => {
  await using dir = tempDir();
  const shared = dir.at("shared");
  Deno.mkdirSync(shared);
  Deno.chmodSync(shared, 0o1777);
  Deno.symlinkSync(shared, dir.at("link"));
  for (const path of [shared, dir.at("link")]) {
    const expected = `use state directory ${path}: has mode 1777, others may write to it: expected 0700`;
    strictEqual(await prepareStateDir(path), expected);
  }
  strictEqual(modeOf(shared), "777");
  deepStrictEqual([...Deno.readDirSync(shared)], []);
});

Deno.test("prepareStateDir: a directory that others may only read is used as it is", async () => {
  await using dir = tempDir();
  Deno.mkdirSync(dir.at("state"));
  Deno.chmodSync(dir.at("state"), 0o755);
  strictEqual(await prepareStateDir(dir.at("state")), undefined);
  strictEqual(modeOf(dir.at("state")), "755");
});

Deno.test("prepareStateDir: names what is in the way", async () => {
  await using dir = tempDir();
  const file = dir.write("file", "x");
  strictEqual(await prepareStateDir(file), `use state directory ${file}: is not a directory`);
  strictEqual(await prepareStateDir(`${file}/state`), `use state directory ${file}/state: not a directory`);
  match(await prepareStateDir("/proc/self/state") ?? "", /^use state directory \/proc\/self\/state: \S+/);
});

Deno.test("readBootId: this boot's, and nothing without /proc", async () => {
  await using dir = tempDir();
  match(await readBootId() ?? "", /^[0-9a-f-]{36}$/);
  strictEqual(await readBootId(dir.path), undefined);
});
