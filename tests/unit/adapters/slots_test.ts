import { deepStrictEqual, ok, strictEqual } from "node:assert/strict";
import { createHash } from "node:crypto";
import { BinarySlots, type SlotRules } from "../../../lib/adapters/slots.ts";
import type { Upload } from "../../../lib/runtime/binaries.ts";
import { SlotPlace } from "../../../lib/adapters/slot_place.ts";
import { temporaryFor } from "../../../lib/adapters/temporary.ts";
import { smallFileSystem } from "../../integration/faults/small_file_system.ts";
import { signer } from "../../support/minisign.ts";
import { type TempDir, tempDir } from "../../support/tempdir.ts";

const bytes = (text: string) => new TextEncoder().encode(text);
const sha256 = (content: Uint8Array) => createHash("sha256").update(content).digest("hex");

function upload(content: Uint8Array, more: Partial<Upload> = {}): Upload {
  return {
    pieces: (async function* () {
      for (let at = 0; at < content.length; at += 3) yield content.subarray(at, at + 3);
    })(),
    ...more,
  };
}

function slotsIn(directory: TempDir, more: Partial<SlotRules> = {}): BinarySlots {
  return new BinarySlots(directory.at("slots"), () => ({
    publicKeys: [],
    maxBytes: 1000,
    installed: "/usr/bin/envoy",
    ...more,
  }));
}

async function put(slots: BinarySlots, text: string, more: Partial<Upload> = {}): Promise<string> {
  const received = await slots.receive(upload(bytes(text), more));
  if (received.kind === "refused") throw new Error(received.refusal.detail);
  strictEqual(await slots.adopt(received, "1.0"), undefined);
  return received.digest;
}

function names(directory: TempDir): readonly string[] {
  return [...Deno.readDirSync(directory.at("slots/envoy"))].map(({ name }) => name).filter((name) => name !== ".lock")
    .sort();
}

async function prepared(directory: TempDir, more: Partial<SlotRules> = {}): Promise<BinarySlots> {
  const slots = slotsIn(directory, more);
  deepStrictEqual(await slots.prepare(), { mended: [] });
  return slots;
}

Deno.test("slots: what was received lies under its digest, with its modes, and runs once `current` names it", async () => {
  await using directory = tempDir();
  const slots = await prepared(directory);
  deepStrictEqual(await slots.executable(), { kind: "found", path: "/usr/bin/envoy" });
  const digest = await put(slots, "one");
  strictEqual(digest, sha256(bytes("one")));
  const path = directory.at(`slots/envoy/${digest}/envoy`);
  strictEqual(Deno.readTextFileSync(path), "one");
  strictEqual(Deno.statSync(path).mode! & 0o7777, 0o755);
  strictEqual(Deno.statSync(directory.at(`slots/envoy/${digest}`)).mode! & 0o7777, 0o755);
  await slots.switchTo(digest);
  deepStrictEqual(await slots.executable(), { kind: "found", path });
  deepStrictEqual(names(directory), [digest, "current", "trial.json"].sort());
  await slots.accept();
  deepStrictEqual(names(directory), [digest, "current"].sort());
});

Deno.test("slots: previous is what current was, and going back restores both", async () => {
  await using directory = tempDir();
  const slots = await prepared(directory);
  const [one, two] = [await put(slots, "one"), await put(slots, "two")];
  await slots.switchTo(one);
  deepStrictEqual(await slots.links(), { current: one });
  await slots.accept();
  const trial = await slots.switchTo(two);
  deepStrictEqual(await slots.links(), { current: two, previous: one });
  ok("before" in trial);
  strictEqual(await slots.goBack(trial), true);
  deepStrictEqual(await slots.links(), { current: one });
  const installed = await slots.switchTo(undefined);
  deepStrictEqual(await slots.links(), { previous: one });
  ok("before" in installed);
  await slots.goBack(installed);
  deepStrictEqual(await slots.links(), { current: one });
});

Deno.test("slots: what somebody else put in place meanwhile is left alone by going back", async () => {
  await using directory = tempDir();
  const slots = await prepared(directory);
  const [one, two, three] = [await put(slots, "one"), await put(slots, "two"), await put(slots, "three")];
  await slots.switchTo(one);
  await slots.accept();
  const trial = await slots.switchTo(two);
  Deno.removeSync(directory.at("slots/envoy/current"));
  Deno.symlinkSync(three, directory.at("slots/envoy/current"));
  ok("before" in trial);
  strictEqual(await slots.goBack(trial), false);
  strictEqual((await slots.links()).current, three);
});

Deno.test("slots: a wrong size, digest, signature, one too large or a broken stream leaves nothing behind", async () => {
  await using directory = tempDir();
  const [mine, other] = [signer(), signer()];
  const unsigned = await prepared(directory);
  const signed = await prepared(directory, { publicKeys: [mine.publicKey] });
  const content = bytes("content");
  const cases: readonly (readonly [string, BinarySlots, Upload])[] = [
    ["size_differs", unsigned, upload(content, { sizeBytes: 6 })],
    ["size_differs", unsigned, upload(content, { sizeBytes: 8 })],
    ["size_differs", unsigned, upload(bytes(""))],
    ["digest_differs", unsigned, upload(content, { sha256: sha256(bytes("other")) })],
    ["binary_too_large", unsigned, upload(new Uint8Array(1001))],
    ["binary_too_large", unsigned, upload(content, { sizeBytes: 1001 })],
    ["signature_missing", signed, upload(content)],
    ["signature_invalid", signed, upload(content, { signature: "hello" })],
    ["signature_invalid", signed, upload(content, { signature: other.sign(content) })],
    ["signature_invalid", signed, upload(content, { signature: mine.sign(bytes("other")) })],
    ["upload_broken", unsigned, {
      pieces: (async function* () {
        yield content;
        throw new Error("the client has gone");
      })(),
    }],
  ];
  for (const [name, slots, asked] of cases) {
    const received = await slots.receive(asked);
    strictEqual(received.kind === "refused" ? received.refusal.name : received.kind, name);
    deepStrictEqual(names(directory), [], name);
  }
  const good = await signed.receive(upload(content, { signature: mine.sign(content, { legacy: true }) }));
  strictEqual(good.kind, "received");
});

Deno.test("slots: with a public key nothing unsigned, and nothing whose signature was swapped, is named to be run", async () => {
  await using directory = tempDir();
  const mine = signer();
  const slots = await prepared(directory, { publicKeys: [mine.publicKey] });
  const good = await put(slots, "good", { signature: mine.sign(bytes("good")) });
  await slots.switchTo(good);
  strictEqual((await slots.executable()).kind, "found");
  const signature = directory.at(`slots/envoy/${good}/envoy.minisig`);
  const text = Deno.readTextFileSync(signature);
  Deno.removeSync(signature);
  const later = slotsIn(directory, { publicKeys: [mine.publicKey] });
  strictEqual((await later.verify(good))?.name, "signature_missing");
  Deno.writeTextFileSync(signature, mine.sign(bytes("bad")));
  strictEqual((await later.verify(good))?.name, "signature_invalid");
  Deno.removeSync(signature);
  Deno.symlinkSync("/etc/passwd", signature);
  strictEqual((await later.verify(good))?.name, "slot_unsafe");
  Deno.removeSync(signature);
  Deno.writeTextFileSync(signature, text);
  strictEqual(await later.verify(good), undefined);
});

Deno.test("slots: a signature that is larger than one that is read again is refused, and leaves no slot", async () => {
  await using directory = tempDir();
  const mine = signer();
  for (const publicKeys of [[mine.publicKey], []]) {
    const slots = await prepared(directory, { publicKeys });
    const content = bytes("binary");
    const signature = mine.sign(content, { comment: "y".repeat(5_000) });
    const received = await slots.receive(upload(content, { signature }));
    strictEqual(received.kind === "refused" && received.refusal.name, "signature_invalid");
    deepStrictEqual(names(directory), []);
  }
});

Deno.test("slots: a link that leads elsewhere is refused, not followed", async () => {
  await using directory = tempDir();
  const slots = await prepared(directory);
  const current = directory.at("slots/envoy/current");
  Deno.mkdirSync(directory.at("evil"));
  Deno.writeTextFileSync(directory.at("evil/envoy"), "evil", { mode: 0o755 });
  for (const target of ["../../evil", directory.at("evil"), "..", `${"a".repeat(63)}`, `${"A".repeat(64)}`]) {
    Deno.symlinkSync(target, current);
    const found = await slots.executable();
    strictEqual(found.kind === "refused" ? found.refusal.name : found.path, "slot_unsafe", target);
    Deno.removeSync(current);
  }
  const digest = "a".repeat(64);
  Deno.symlinkSync(directory.at("evil"), directory.at(`slots/envoy/${digest}`));
  strictEqual((await slots.verify(digest))?.name, "slot_unsafe");
});

Deno.test("slots: content under another digest, others' write permission, setuid and a strange owner are refused by name", async () => {
  await using directory = tempDir();
  const slots = await prepared(directory);
  const digest = await put(slots, "one");
  const path = directory.at(`slots/envoy/${digest}/envoy`);
  const verdict = async () => (await slotsIn(directory).verify(digest))?.name;
  strictEqual(await verdict(), undefined);
  Deno.writeTextFileSync(path, "two");
  strictEqual(await verdict(), "digest_differs");
  Deno.writeTextFileSync(path, "one");
  for (const mode of [0o775, 0o757, 0o4755, 0o2755]) {
    Deno.chmodSync(path, mode);
    strictEqual(await verdict(), "slot_unsafe", mode.toString(8));
  }
  Deno.chmodSync(path, 0o755);
  for (const where of ["slots", "slots/envoy", `slots/envoy/${digest}`]) {
    Deno.chmodSync(directory.at(where), 0o777);
    strictEqual(await verdict(), where.length > 12 ? "slot_unsafe" : "slots_unsafe", where);
    Deno.chmodSync(directory.at(where), 0o755);
  }
  if (Deno.uid() !== 0) return;
  Deno.chownSync(path, 12345, 12345);
  strictEqual(await verdict(), "slot_unsafe");
  Deno.chownSync(path, 0, 0);
  strictEqual(await verdict(), undefined);
});

Deno.test("slots: prepare refuses a directory that others may write to, and one that is a file", async () => {
  await using directory = tempDir();
  Deno.mkdirSync(directory.at("slots"));
  Deno.chmodSync(directory.at("slots"), 0o777);
  const unsafe = await slotsIn(directory).prepare();
  ok("problem" in unsafe && unsafe.problem.includes("others may write to it"), JSON.stringify(unsafe));
  Deno.removeSync(directory.at("slots"), { recursive: true });
  Deno.writeTextFileSync(directory.at("slots"), "");
  ok("problem" in await slotsIn(directory).prepare());
});

Deno.test("slots: a volume that anybody may write to is trusted as a parent in a pod alone", async (t) => {
  await using directory = tempDir();
  await using stack = new AsyncDisposableStack();
  const disk = smallFileSystem(stack);
  await t.step({
    name: "an emptyDir",
    ignore: disk === undefined,
    async fn() {
      Deno.chmodSync(disk!.path, 0o777);
      const path = `${disk!.path}/slots`;
      const [pod, node] = [true, false].map((inPod) => new SlotPlace(path, Deno.uid(), inPod));
      Deno.mkdirSync(`${path}/envoy`, { recursive: true });
      strictEqual(await pod!.problem(), undefined);
      strictEqual((await node!.problem())?.name, "slots_unsafe");
      Deno.chmodSync(path, 0o777);
      strictEqual((await pod!.problem())?.name, "slots_unsafe");
    },
  });
  Deno.mkdirSync(directory.at("open/slots/envoy"), { recursive: true });
  Deno.chmodSync(directory.at("open"), 0o777);
  strictEqual((await new SlotPlace(directory.at("open/slots"), Deno.uid(), true).problem())?.name, "slots_unsafe");
});

Deno.test("slots: prepare removes remains, undoes a switch that had not proved itself, and mends dangling links", async () => {
  await using directory = tempDir();
  const slots = await prepared(directory);
  const [one, two] = [await put(slots, "one"), await put(slots, "two")];
  await slots.switchTo(one);
  await slots.accept();
  await slots.switchTo(two);
  Deno.mkdirSync(directory.at("slots/envoy/.incoming-x"));
  Deno.writeTextFileSync(directory.at("slots/envoy/.incoming-x/envoy"), "half");
  Deno.symlinkSync(two, directory.at("slots/envoy/current.0123abcd.tmp"));
  const mended = await slotsIn(directory).prepare();
  ok("mended" in mended);
  strictEqual(mended.mended.length, 3, mended.mended.join("\n"));
  deepStrictEqual(names(directory), ["current", one, two].sort());
  deepStrictEqual(await slots.links(), { current: one });
  await slots.switchTo(two);
  await slots.accept();
  Deno.removeSync(directory.at(`slots/envoy/${two}`), { recursive: true });
  ok("mended" in await slotsIn(directory).prepare());
  deepStrictEqual(await slots.links(), { current: one });
  Deno.writeTextFileSync(directory.at(`slots/envoy/${one}/envoy`), "rotten");
  ok("mended" in await slotsIn(directory).prepare());
  deepStrictEqual(await slots.links(), {});
  deepStrictEqual(await slotsIn(directory).prepare(), { mended: [] });
});

Deno.test("slots: a switch that was killed between any two of its steps is undone whole", async () => {
  await using directory = tempDir();
  const slots = await prepared(directory);
  const [zero, one, two] = [await put(slots, "zero"), await put(slots, "one"), await put(slots, "two")];
  for (const digest of [zero, one]) {
    await slots.switchTo(digest);
    await slots.accept();
  }
  const before = { current: one, previous: zero };
  const link = (name: string, digest: string) => {
    Deno.removeSync(directory.at(`slots/envoy/${name}`));
    Deno.symlinkSync(digest, directory.at(`slots/envoy/${name}`));
  };
  const steps = [
    () => Deno.writeTextFileSync(directory.at("slots/envoy/trial.json"), JSON.stringify({ digest: two, before })),
    () => link("previous", one),
    () => link("current", two),
    // And on the way back.
    () => link("current", one),
  ];
  for (let count = 1; count <= steps.length; count++) {
    for (const step of steps.slice(0, count)) step();
    ok("mended" in await slotsIn(directory).prepare());
    deepStrictEqual(await slots.links(), before, `after ${count} steps`);
    deepStrictEqual(names(directory).filter((name) => name.includes(".")), []);
  }
});

Deno.test("slots: a kill in the middle of a second switch goes back to what had proved itself, not to what was on trial", async () => {
  await using directory = tempDir();
  const slots = await prepared(directory);
  const [zero, one, two] = [await put(slots, "zero"), await put(slots, "one"), await put(slots, "two")];
  await slots.switchTo(zero);
  await slots.accept();
  for (const second of [two, zero, undefined]) {
    await slots.switchTo(one);
    await slots.switchTo(second);
    ok("mended" in await slotsIn(directory).prepare());
    deepStrictEqual(await slots.links(), { current: zero }, second);
    deepStrictEqual(names(directory).filter((name) => name.includes(".")), []);
  }
  // While it runs, the failure of the second goes back to what serves.
  await slots.switchTo(one);
  const trial = await slots.switchTo(two);
  ok("before" in trial && await slots.goBack(trial));
  deepStrictEqual(await slots.links(), { current: one, previous: zero });
});

Deno.test("slots: a record that says nothing about what was before changes nothing", async () => {
  await using directory = tempDir();
  const slots = await prepared(directory);
  for (const digest of [await put(slots, "one"), await put(slots, "two")]) {
    await slots.switchTo(digest);
    await slots.accept();
  }
  await slots.switchTo(undefined);
  await slots.accept();
  const before = await slots.links();
  for (const text of ["null", "[]", "{}", '{"before":null}', '{"before":"one"}', '{"before":[]}', "{", ""]) {
    Deno.writeTextFileSync(directory.at("slots/envoy/trial.json"), text);
    deepStrictEqual(await slotsIn(directory).prepare(), { mended: [] }, text);
    deepStrictEqual(await slots.links(), before, text);
  }
});

Deno.test("slots: a switch that can't be written leaves links and record of the trial that goes on as they were", async () => {
  await using directory = tempDir();
  const slots = await prepared(directory);
  const [one, two] = [await put(slots, "one"), await put(slots, "two")];
  // Wherever it is stopped: what can't be replaced is a directory with something in it.
  for (const name of ["trial.json", "previous", "current"]) {
    await slots.switchTo(one);
    const before = await slots.links();
    const record = () => JSON.parse(Deno.readTextFileSync(directory.at("slots/envoy/trial.json")));
    const trial = record();
    const obstacle = temporaryFor(directory.at("slots/envoy", name));
    Deno.mkdirSync(`${obstacle}/full`, { recursive: true });
    const switched = await slots.switchTo(two);
    Deno.removeSync(obstacle, { recursive: true });
    deepStrictEqual("name" in switched && switched.name, "slots_unwritable", name);
    deepStrictEqual(await slots.links(), before, name);
    deepStrictEqual(record(), trial, name);
    strictEqual(await slots.goBack(trial), true);
  }
});

Deno.test("slots: pruning keeps current, previous, what runs, and the three newest", async () => {
  await using directory = tempDir();
  const slots = await prepared(directory);
  const digests: string[] = [];
  for (let at = 0; at < 8; at++) {
    const digest = await put(slots, `binary ${at}`);
    Deno.utimeSync(directory.at(`slots/envoy/${digest}/envoy`), at + 1, at + 1);
    digests.push(digest);
  }
  for (const digest of [digests[0]!, digests[1]!]) {
    await slots.switchTo(digest);
    await slots.accept();
  }
  await slots.prune([slots.pathOf(digests[3])]);
  const listed = await slots.list(slots.pathOf(digests[3]));
  deepStrictEqual(listed.map(({ digest }) => digests.indexOf(digest)), [7, 6, 5, 3, 1, 0]);
  deepStrictEqual(listed.filter(({ running }) => running).map(({ digest }) => digest), [digests[3]]);
  deepStrictEqual(names(directory).length, 6 + 2);
});

Deno.test("slots: the same content twice is one slot; one that has rotted is replaced", async () => {
  await using directory = tempDir();
  const slots = await prepared(directory);
  const digest = await put(slots, "one");
  const path = directory.at(`slots/envoy/${digest}/envoy`);
  const before = Deno.statSync(path).ino;
  await put(slots, "one");
  strictEqual(Deno.statSync(path).ino, before);
  Deno.writeTextFileSync(path, "rotten");
  await put(slots, "one");
  strictEqual(Deno.readTextFileSync(path), "one");
  deepStrictEqual(names(directory), [digest]);
});

Deno.test("slots: while one supervisor has a switch on trial, another one neither mends it nor begins its own", async () => {
  await using directory = tempDir();
  const slots = await prepared(directory);
  const digest = await put(slots, "one");
  strictEqual(await slots.take(), undefined);
  await slots.switchTo(digest);
  const other = slotsIn(directory);
  deepStrictEqual(await other.prepare(), { mended: [] });
  strictEqual((await other.links()).current, digest);
  ok((await other.take())?.startsWith("another supervisor holds"));
  slots.release();
  strictEqual(await other.take(), undefined);
  other.release();
});

Deno.test("slots: where only others may write, what is there runs, and nothing is mended or switched", async () => {
  await using directory = tempDir();
  const slots = await prepared(directory);
  const digest = await put(slots, "one");
  await slots.switchTo(digest);
  // As root may write everywhere: a lock that can't be opened.
  Deno.removeSync(directory.at("slots/envoy/.lock"));
  Deno.mkdirSync(directory.at("slots/envoy/.lock"));
  const later = slotsIn(directory);
  deepStrictEqual(await later.prepare(), { mended: [] });
  strictEqual((await later.executable()).kind, "found");
  ok((await later.take())?.startsWith("open "));
});
