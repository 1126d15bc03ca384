import { deepStrictEqual, match, strictEqual } from "node:assert/strict";
import { sha256 } from "../../../lib/adapters/content.ts";
import { Snapshots } from "../../../lib/adapters/snapshots.ts";
import { type TempDir, tempDir } from "../../support/tempdir.ts";

const bytesOf = (text: string) => new TextEncoder().encode(text);
const files = (dir: TempDir) => [...Deno.readDirSync(dir.at("bootstrap"))].map(({ name }) => name).sort();

async function take(snapshots: Snapshots, text: string, original = "/etc/envoy/envoy.yaml"): Promise<string> {
  const taken = await snapshots.take(sha256(text), original, bytesOf(text));
  if (taken.kind === "failed") throw new Error(taken.problem);
  return taken.path;
}

Deno.test("Snapshots: a copy named by its digest, with the extension, for this user alone", async () => {
  await using dir = tempDir();
  const path = await take(new Snapshots(dir.path), "admin: {}");
  strictEqual(path, dir.at("bootstrap", `${sha256("admin: {}")}.yaml`));
  strictEqual(Deno.readTextFileSync(path), "admin: {}");
  strictEqual((Deno.statSync(path).mode ?? 0) & 0o777, 0o600);
  strictEqual((Deno.statSync(dir.at("bootstrap")).mode ?? 0) & 0o777, 0o700);
  deepStrictEqual(files(dir), [`${sha256("admin: {}")}.yaml`]);
});

Deno.test("Snapshots: the extension is the original's, since Envoy goes by it", async () => {
  await using dir = tempDir();
  const snapshots = new Snapshots(dir.path);
  match(await take(snapshots, "a", "/x/envoy.json"), /[0-9a-f]{64}\.json$/);
  match(await take(snapshots, "b", "/x/envoy.pb_text"), /[0-9a-f]{64}\.pb_text$/);
  match(await take(snapshots, "c", "/x.y/envoy"), /[0-9a-f]{64}$/);
});

Deno.test("Snapshots: the same content is written once, a damaged copy again", async () => {
  await using dir = tempDir();
  const snapshots = new Snapshots(dir.path);
  const path = await take(snapshots, "content");
  const inode = Deno.statSync(path).ino;
  strictEqual(await take(snapshots, "content"), path);
  strictEqual(Deno.statSync(path).ino, inode);
  for (const damage of ["con", "CONTENT", ""]) {
    Deno.writeTextFileSync(path, damage);
    await take(snapshots, "content");
    strictEqual(Deno.readTextFileSync(path), "content");
  }
});

Deno.test("Snapshots: two takes of one content at the same time", async () => {
  await using dir = tempDir();
  const snapshots = new Snapshots(dir.path);
  const [one, two] = await Promise.all([take(snapshots, "content"), take(snapshots, "content")]);
  strictEqual(one, two);
  deepStrictEqual(files(dir).length, 1);
});

Deno.test("Snapshots: prune keeps what may be started again and what is being written", async () => {
  await using dir = tempDir();
  const snapshots = new Snapshots(dir.path);
  await snapshots.prune([]);
  for (const text of ["a", "b", "c", "d", "e"]) await take(snapshots, text);
  dir.write("bootstrap/x.yaml.1.tmp", "half");
  dir.write("bootstrap/y.yaml.1.tmp", "left by a crash");
  Deno.utimeSync(dir.at("bootstrap/y.yaml.1.tmp"), 1000, 1000);
  await snapshots.prune([sha256("b"), sha256("unknown")]);
  const kept = [..."bde"].map((text) => `${sha256(text)}.yaml`);
  deepStrictEqual(files(dir), [...kept, "x.yaml.1.tmp"].sort());
});

Deno.test("Snapshots: a copy that is taken while others are pruned stays", async () => {
  await using dir = tempDir();
  const snapshots = new Snapshots(dir.path);
  for (let round = 0; round < 50; round++) {
    const back = await take(snapshots, "back");
    await take(snapshots, "x");
    await take(snapshots, "y");
    // "back" is not kept by name, and comes back at the moment of the prune.
    const [, path] = await Promise.all([snapshots.prune([]), take(snapshots, "back")]);
    strictEqual(path, back);
    strictEqual(Deno.readTextFileSync(path), "back");
  }
});

Deno.test("Snapshots: says why it can't write, and leaves nothing behind", async () => {
  await using dir = tempDir();
  dir.write("bootstrap", "a file in the way");
  const taken = await new Snapshots(dir.path).take(sha256("a"), "a.yaml", bytesOf("a"));
  strictEqual(taken.kind, "failed");
  if (taken.kind === "failed") {
    match(taken.problem, /^write the bootstrap's snapshot .*\.yaml: (file exists|not a directory)$/);
  }
});
