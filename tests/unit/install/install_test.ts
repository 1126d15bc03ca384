// Owns: what an installation leaves behind, on a real directory with small files. Must not: run what is installed.
import assert from "node:assert/strict";
import { sha256 } from "../../../lib/adapters/content.ts";
import { install } from "../../../lib/install/install.ts";
import { formatManifest, type Manifest, manifestName, programFiles } from "../../../lib/install/manifest.ts";
import { type TempDir, tempDir } from "../../support/tempdir.ts";

const NAMES = [...programFiles, manifestName];

function writeSource(directory: TempDir, release: string): string {
  const texts = programFiles.map((name): [string, string] => [name, `${name} of ${release}`]);
  for (const [name, text] of texts) directory.write(`${release}/${name}`, text);
  const manifest = Object.fromEntries(texts.map(([name, text]) => [name, sha256(text)])) as Manifest;
  directory.write(`${release}/${manifestName}`, formatManifest(manifest));
  return directory.at(release);
}

function actions(installation: Awaited<ReturnType<typeof install>>): string {
  return installation.kind === "failed" ? installation.problem : installation.files.map(({ action }) => action).join();
}

const listed = (path: string) => Array.from(Deno.readDirSync(path), ({ name }) => name).sort();
const modeOf = (path: string) => (Deno.statSync(path).mode! & 0o7777).toString(8);

Deno.test("an installation copies every file with its mode", async () => {
  await using directory = tempDir();
  const source = writeSource(directory, "first");
  const target = directory.at("some/where");
  assert.equal(actions(await install(source, target)), NAMES.map(() => "installed").join());
  assert.deepEqual(listed(target), [...NAMES].sort());
  for (const name of NAMES) {
    assert.equal(Deno.readTextFileSync(`${target}/${name}`), Deno.readTextFileSync(`${source}/${name}`));
    assert.equal(modeOf(`${target}/${name}`), name.startsWith("epochd") ? "755" : "644");
  }
});

Deno.test("the modes are right whatever the umask is", async () => {
  await using directory = tempDir();
  const source = writeSource(directory, "first");
  const before = Deno.umask(0o077);
  try {
    await install(source, directory.at("to"));
  } finally {
    Deno.umask(before);
  }
  assert.equal(modeOf(directory.at("to/epochd")), "755");
});

Deno.test("the same again leaves every file untouched", async () => {
  await using directory = tempDir();
  const source = writeSource(directory, "first");
  const target = directory.at("to");
  await install(source, target);
  const before = NAMES.map((name) => Deno.statSync(`${target}/${name}`));
  assert.equal(actions(await install(source, target)), NAMES.map(() => "current").join());
  const after = NAMES.map((name) => Deno.statSync(`${target}/${name}`));
  assert.deepEqual(after.map(({ ino, mtime }) => [ino, mtime]), before.map(({ ino, mtime }) => [ino, mtime]));
});

Deno.test("another version replaces by rename: who has the old file open keeps it", async () => {
  await using directory = tempDir();
  const target = directory.at("to");
  await install(writeSource(directory, "first"), target);
  using running = Deno.openSync(`${target}/epochd`);
  assert.equal(actions(await install(writeSource(directory, "second"), target)), NAMES.map(() => "replaced").join());
  const old = new Uint8Array(100);
  assert.equal(new TextDecoder().decode(old.subarray(0, running.readSync(old)!)), "epochd of first");
  assert.equal(Deno.readTextFileSync(`${target}/epochd`), "epochd of second");
});

Deno.test("a damaged file and a wrong mode are put right, the rest is left alone", async () => {
  await using directory = tempDir();
  const source = writeSource(directory, "first");
  const target = directory.at("to");
  await install(source, target);
  Deno.writeTextFileSync(`${target}/epochd-probe`, "cut");
  Deno.chmodSync(`${target}/epochd`, 0o644);
  const wanted = NAMES.map((name) => ["epochd-probe", "epochd"].includes(name) ? "replaced" : "current");
  assert.equal(actions(await install(source, target)), wanted.join());
  assert.equal(modeOf(`${target}/epochd`), "755");
});

Deno.test("a link in the place of a file is replaced, what it points to is not written", async () => {
  await using directory = tempDir();
  const target = directory.at("to");
  const elsewhere = directory.write("elsewhere", "mine");
  Deno.mkdirSync(target);
  Deno.symlinkSync(elsewhere, `${target}/epochd`);
  await install(writeSource(directory, "first"), target);
  assert.equal(Deno.readTextFileSync(elsewhere), "mine");
  assert.equal(Deno.lstatSync(`${target}/epochd`).isFile, true);
});

for (const name of programFiles) {
  Deno.test(`a source without ${name} installs nothing and names it`, async () => {
    await using directory = tempDir();
    const source = writeSource(directory, "first");
    Deno.removeSync(`${source}/${name}`);
    const problem = actions(await install(source, directory.at("to")));
    assert.equal(problem, `read ${source}/${name}: it does not exist, expected it beside ${source}/SHA256SUMS`);
    assert.throws(() => Deno.statSync(directory.at("to")), Deno.errors.NotFound);
  });

  Deno.test(`a source whose ${name} is cut short installs nothing and names it`, async () => {
    await using directory = tempDir();
    const source = writeSource(directory, "second");
    const target = directory.at("to");
    await install(writeSource(directory, "first"), target);
    Deno.truncateSync(`${source}/${name}`, 4);
    const problem = actions(await install(source, target));
    assert.ok(problem.startsWith(`read ${source}/${name}: it is cut short or altered: 4 bytes with sha256 `), problem);
    assert.deepEqual(listed(target), [...NAMES].sort());
    assert.equal(Deno.readTextFileSync(`${target}/epochd`), "epochd of first");
  });
}

Deno.test("a source without its list, or with a broken one, is refused", async () => {
  await using directory = tempDir();
  const source = writeSource(directory, "first");
  const list = `${source}/${manifestName}`;
  const whole = Deno.readTextFileSync(list);
  const cases: [text: string | undefined, problem: string][] = [
    [undefined, `read ${list}: no such file or directory`],
    ["", `read ${list}: it does not name libgcc_s.so.1`],
    [whole.split("\n").slice(0, programFiles.length - 1).join("\n"), `read ${list}: it does not name epochd`],
    ["what\n", `read ${list}: expected lines of sha256sum, found "what"`],
  ];
  for (const [text, problem] of cases) {
    if (text === undefined) Deno.removeSync(list);
    else Deno.writeTextFileSync(list, text);
    assert.equal(actions(await install(source, directory.at("to"))), problem);
  }
});

Deno.test("what can't be written is refused with its path, and what is there stays", async () => {
  await using directory = tempDir();
  const source = writeSource(directory, "first");
  const file = directory.write("file", "");
  assert.equal(actions(await install(source, file)), `install into ${file}: it is not a directory`);
  assert.equal(actions(await install(source, `${file}/below`)), `create ${file}/below: not a directory`);
  const target = directory.at("to");
  Deno.mkdirSync(`${target}/epochd-probe`, { recursive: true });
  assert.equal(actions(await install(source, target)), `install ${target}/epochd-probe: a directory is in its place`);
  assert.deepEqual(listed(target), ["epochd-probe"]);
});

Deno.test("what a killed installation left is removed, other files are not", async () => {
  await using directory = tempDir();
  const target = directory.at("to");
  directory.write("to/epochd.epochd-install.tmp", "half");
  directory.write("to/notes.tmp", "someone's");
  await install(writeSource(directory, "first"), target);
  assert.deepEqual(listed(target), [...NAMES, "notes.tmp"].sort());
});

Deno.test("two installations at once end with whole files of one of them", async () => {
  await using directory = tempDir();
  const target = directory.at("to");
  const sources = ["first", "second"].map((release) => writeSource(directory, release));
  const installations = await Promise.all([...sources, ...sources].map((source) => install(source, target)));
  for (const installation of installations) assert.equal(installation.kind, "installed", actions(installation));
  assert.deepEqual(listed(target), [...NAMES].sort());
  const texts = programFiles.map((name) => Deno.readTextFileSync(`${target}/${name}`).split(" of ")[1]);
  assert.equal(new Set(texts).size, 1, texts.join());
});
