import { deepStrictEqual, match, strictEqual } from "node:assert/strict";
import { FileReadyMarker, parseMarker } from "../../../lib/adapters/ready_marker.ts";
import { tempDir } from "../../support/tempdir.ts";
import { pause } from "../../support/until.ts";

const names = (path: string) => [...Deno.readDirSync(path)].map(({ name }) => name);

Deno.test("FileReadyMarker: writes time, epoch and pid, whole, and leaves nothing else", async () => {
  await using dir = tempDir();
  const path = dir.at("ready");
  const marker = new FileReadyMarker(path, { wallMs: () => 1_700_000_000_123, pid: 42 });
  strictEqual(await marker.write(3), undefined);
  strictEqual(Deno.readTextFileSync(path), "1700000000123 3 42\n");
  deepStrictEqual(names(dir.path), ["ready"]);
});

Deno.test("FileReadyMarker: a reader never sees half a marker", async () => {
  await using dir = tempDir();
  const path = dir.at("ready");
  const marker = new FileReadyMarker(path);
  await marker.write(0);
  let writing = true;
  const writes = (async () => {
    for (let epoch = 0; epoch < 300; epoch++) await marker.write(epoch);
    writing = false;
  })();
  let reads = 0;
  while (writing) {
    const text = await Deno.readTextFile(path);
    strictEqual(parseMarker(text) !== undefined, true, JSON.stringify(text));
    reads++;
  }
  await writes;
  strictEqual(reads > 10, true, `${reads}`);
});

Deno.test("FileReadyMarker: what was asked last is what remains", async () => {
  await using dir = tempDir();
  const marker = new FileReadyMarker(dir.at("ready"));
  const asked = [marker.write(1), marker.remove(), marker.write(2), marker.write(3)];
  deepStrictEqual(await Promise.all(asked), [undefined, undefined, undefined, undefined]);
  strictEqual(parseMarker(Deno.readTextFileSync(dir.at("ready")))?.epoch, 3);
  await Promise.all([marker.write(4), marker.remove()]);
  deepStrictEqual(names(dir.path), []);
});

Deno.test("FileReadyMarker: removes its own and no other supervisor's", async () => {
  await using dir = tempDir();
  const path = dir.at("ready");
  const [ours, theirs] = [new FileReadyMarker(path, { pid: 42 }), new FileReadyMarker(path, { pid: 43 })];
  strictEqual(await ours.remove(), undefined);
  await theirs.write(1);
  strictEqual(await ours.remove(), undefined);
  deepStrictEqual(names(dir.path), ["ready"]);
  strictEqual(await theirs.remove(), undefined);
  deepStrictEqual(names(dir.path), []);
});

Deno.test("FileReadyMarker: at the start another run's marker goes, whatever is in it", async () => {
  await using dir = tempDir();
  const marker = new FileReadyMarker(dir.at("ready"));
  strictEqual(await marker.removeStale(), undefined);
  for (const text of ["1700000000123 3 42\n", "nonsense", ""]) {
    dir.write("ready", text);
    strictEqual(await marker.removeStale(), undefined);
    deepStrictEqual(names(dir.path), []);
  }
});

Deno.test("FileReadyMarker: at the start a marker that a living supervisor keeps fresh stays, and is a problem", async () => {
  await using dir = tempDir();
  const path = dir.at("ready");
  const main = "setTimeout(() => {}, 60_000);";
  await using program = tempDir();
  const args = ["run", "--quiet", "--no-config", program.write("epochd.js", main)];
  const other = new Deno.Command(Deno.execPath(), { args, stdin: "null" }).spawn();
  const stranger = new Deno.Command("sleep", { args: ["60"] }).spawn();
  const { pid } = other;
  // Its start and the marker are told apart by hundredths of a second.
  await pause(300);
  const write = (ageMs: number) => dir.write("ready", `${Date.now() - ageMs} 3 ${pid}\n`);
  const marker = new FileReadyMarker(path);
  const problem = `remove the old ready marker ${path}: it is held by pid ${pid}, a supervisor that keeps it fresh: ` +
    "give another --ready-marker";
  const isGone = async (one: FileReadyMarker) => await one.removeStale() === undefined && names(dir.path).length === 0;
  write(0);
  strictEqual(await marker.removeStale(), problem);
  deepStrictEqual(names(dir.path), ["ready"]);
  strictEqual(await isGone(new FileReadyMarker(path, { isPodLocal: true })), true, "pod-local");
  write(0);
  strictEqual(await isGone(new FileReadyMarker(path, { pid })), true, "this process' own");
  write(11_000);
  strictEqual(await isGone(marker), true, "not fresh");
  write(5_000);
  strictEqual(await isGone(marker), true, "of before the process began: its pid was another's");
  write(0);
  dir.write("ready", `${Date.now()} 3 ${stranger.pid}\n`);
  strictEqual(await isGone(marker), true, "a pid that is no supervisor's here");
  write(0);
  for (const child of [other, stranger]) {
    child.kill("SIGKILL");
    await child.status;
  }
  strictEqual(await isGone(marker), true, "of a process that has ended");
});

Deno.test("FileReadyMarker: refuses a symbolic link and a directory, and touches neither", async () => {
  await using dir = tempDir();
  const target = dir.write("target", "precious");
  Deno.symlinkSync(target, dir.at("link"));
  Deno.symlinkSync(dir.at("nowhere"), dir.at("dangling"));
  Deno.mkdirSync(dir.at("directory"));
  const kinds = { link: "a symbolic link", dangling: "a symbolic link", directory: "a directory" };
  for (const [name, kind] of Object.entries(kinds)) {
    const marker = new FileReadyMarker(dir.at(name));
    const problem = `ready marker ${dir.at(name)}: it is ${kind}, expected a file or nothing`;
    strictEqual(await marker.write(1), `write ${problem}`);
    strictEqual(await marker.remove(), `remove ${problem}`);
    strictEqual(await marker.removeStale(), `remove the old ${problem}`);
  }
  strictEqual(Deno.readTextFileSync(target), "precious");
  deepStrictEqual(names(dir.path).sort(), ["dangling", "directory", "link", "target"]);
});

Deno.test("FileReadyMarker: a link that somebody put in the temporary file's place is not followed", async () => {
  await using dir = tempDir();
  const target = dir.write("target", "precious");
  Deno.symlinkSync(target, dir.at("ready.42.tmp"));
  strictEqual(await new FileReadyMarker(dir.at("ready"), { pid: 42 }).write(1), undefined);
  strictEqual(Deno.readTextFileSync(target), "precious");
  strictEqual(Deno.lstatSync(dir.at("ready")).isFile, true);
});

Deno.test("FileReadyMarker: says what is wrong, and goes on when it is mended", async () => {
  await using dir = tempDir();
  const marker = new FileReadyMarker(dir.at("missing/ready"));
  match(await marker.write(1) ?? "", /^write ready marker .*\/missing\/ready: no such file or directory$/);
  strictEqual(await marker.remove(), undefined);
  Deno.mkdirSync(dir.at("missing"));
  strictEqual(await marker.write(1), undefined);
  const full = new FileReadyMarker("/proc/self/ready");
  match(await full.write(1) ?? "", /^write ready marker \/proc\/self\/ready: \S+/);
});

Deno.test("parseMarker: a whole marker or nothing", () => {
  deepStrictEqual(parseMarker("17 2 3\n"), { unixMs: 17, epoch: 2, pid: 3 });
  for (const text of ["", "17 2 3", "17 2\n", "17 2 3 4\n", "17 -2 3\n", "x 2 3\n", "17 2 3\n\n"]) {
    strictEqual(parseMarker(text), undefined, JSON.stringify(text));
  }
});
