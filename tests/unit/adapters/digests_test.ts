import { match, notStrictEqual, strictEqual } from "node:assert/strict";
import { BinaryDigests } from "../../../lib/adapters/digests.ts";
import { type TempDir, tempDir } from "../../support/tempdir.ts";

/** As if every file had been written an hour ago. */
const later = () => Date.now() + 3_600_000;

function binary(dir: TempDir, name: string, text: string): string {
  const path = dir.write(name, text);
  Deno.chmodSync(path, 0o755);
  return path;
}

async function digestOf(digests: BinaryDigests, path: string): Promise<string> {
  const look = await digests.look(path);
  if (look.kind === "unusable") throw new Error(look.problem);
  return look.digest;
}

async function using(test: (digests: BinaryDigests, dir: TempDir) => Promise<void>, wallMs = later): Promise<void> {
  await using dir = tempDir();
  const digests = new BinaryDigests(wallMs);
  try {
    await test(digests, dir);
  } finally {
    digests.close();
  }
}

Deno.test("BinaryDigests: the first binary is never hashed while it stays as it is", () =>
  using(async (digests, dir) => {
    const path = binary(dir, "envoy", "#!one");
    const first = await digestOf(digests, path);
    match(first, /^stat:[0-9a-f]{16}$/);
    strictEqual(await digestOf(digests, path), first);
    strictEqual(digests.isStill(path, first), true);
    strictEqual(digests.hashed, 0);
  }));

Deno.test("BinaryDigests: touch, copy and reinstall of the same bytes keep the digest", () =>
  using(async (digests, dir) => {
    const path = binary(dir, "envoy", "#!one");
    const first = await digestOf(digests, path);
    Deno.utimeSync(path, 1000, 1000);
    strictEqual(digests.isStill(path, first), false);
    strictEqual(await digestOf(digests, path), first);
    strictEqual(digests.isStill(path, first), true);
    Deno.renameSync(binary(dir, "new", "#!one"), path);
    strictEqual(await digestOf(digests, path), first);
    const hashed = digests.hashed;
    strictEqual(await digestOf(digests, path), first);
    strictEqual(digests.hashed, hashed, "an unchanged file was hashed again");
  }));

Deno.test("BinaryDigests: other bytes of the same length are another binary, and the first's return is noticed", () =>
  using(async (digests, dir) => {
    const path = binary(dir, "envoy", "#!one");
    const first = await digestOf(digests, path);
    Deno.renameSync(binary(dir, "new", "#!two"), path);
    const second = await digestOf(digests, path);
    notStrictEqual(second, first);
    Deno.renameSync(binary(dir, "new", "#!one"), path);
    strictEqual(await digestOf(digests, path), first);
  }));

Deno.test("BinaryDigests: a replaced first binary is still known when its bytes return", () =>
  using(async (digests, dir) => {
    const path = binary(dir, "envoy", "#!one");
    const first = await digestOf(digests, path);
    Deno.removeSync(path);
    const second = await digestOf(digests, binary(dir, "envoy", "#!longer"));
    notStrictEqual(second, first);
    Deno.removeSync(path);
    strictEqual(await digestOf(digests, binary(dir, "envoy", "#!one")), first);
  }));

Deno.test("BinaryDigests: bytes written over in place are another binary", () =>
  using(async (digests, dir) => {
    const path = binary(dir, "envoy", "#!one");
    Deno.utimeSync(path, 1000, 1000);
    const first = await digestOf(digests, path);
    await digests.settle();
    strictEqual(digests.isStill(path, first), true);
    binary(dir, "envoy", "#!two");
    notStrictEqual(await digestOf(digests, path), first);
  }));

Deno.test("BinaryDigests: a file written this moment is told by its bytes, not by its stat", () =>
  using(async (digests, dir) => {
    const path = binary(dir, "envoy", "#!one");
    const first = await digestOf(digests, path);
    match(first, /^[0-9a-f]{64}$/);
    strictEqual(digests.isStill(path, first), false);
  }, Date.now));

Deno.test("BinaryDigests: looks at the same time hash a content once", () =>
  using(async (digests, dir) => {
    const path = binary(dir, "envoy", "#!one");
    await digestOf(digests, path);
    const other = binary(dir, "other", "#!two");
    const [one, two] = await Promise.all([digestOf(digests, other), digestOf(digests, other)]);
    strictEqual(one, two);
    strictEqual(digests.hashed, 2, "the first binary and the other, once each");
  }));

Deno.test("BinaryDigests: says what is wrong with a path", () =>
  using(async (digests, dir) => {
    const why = async (path: string) => {
      const look = await digests.look(path);
      return look.kind === "unusable"
        ? `${look.why}: ${look.problem.slice(look.problem.indexOf("binary: ") + 8)}`
        : "usable";
    };
    strictEqual(await why(dir.at("no")), "missing: no such file or directory");
    strictEqual(await why(dir.path), "not_executable: is a directory, expected a file");
    strictEqual(await why(dir.write("plain", "x")), "not_executable: is not executable (mode 0644)");
    strictEqual(await why(binary(dir, "empty", "")), "not_executable: is empty");
    const cut = dir.at("cut");
    const head = new Uint8Array(100_000);
    using deno = Deno.openSync(Deno.execPath());
    deno.readSync(head);
    Deno.writeFileSync(cut, head, { mode: 0o755 });
    match(await why(cut), /^not_executable: is cut short: 100000 of at least \d+ bytes$/);
  }));

Deno.test("BinaryDigests: holds at most one file open", () =>
  using(async (digests, dir) => {
    const open = () =>
      [...Deno.readDirSync("/proc/self/fd")].filter(({ name }) => {
        try {
          return Deno.readLinkSync(`/proc/self/fd/${name}`).startsWith(dir.path);
        } catch {
          return false;
        }
      }).length;
    for (let i = 1; i <= 5; i++) await digestOf(digests, binary(dir, `envoy${i}`, `#!${"x".repeat(i)}`));
    strictEqual(open(), 1);
    digests.close();
    strictEqual(open(), 0);
  }));
