import { match, ok, strictEqual } from "node:assert/strict";
import { KeptBinaries } from "../../../lib/adapters/kept_binaries.ts";
import { type TempDir, tempDir } from "../../support/tempdir.ts";

function binary(dir: TempDir, name: string, says: string): string {
  const path = dir.write(name, `#!/bin/sh\necho ${says}\n`);
  Deno.chmodSync(path, 0o755);
  return path;
}

function run(path: string | undefined): string {
  ok(path !== undefined, "nothing is kept");
  return new TextDecoder().decode(new Deno.Command(path).outputSync().stdout).trim();
}

/** Descriptors of files in this directory: other tests run in this process too. */
function open(dir: TempDir): number {
  return [...Deno.readDirSync("/proc/self/fd")].filter(({ name }) => {
    try {
      return Deno.readLinkSync(`/proc/self/fd/${name}`).startsWith(dir.path);
    } catch {
      return false;
    }
  }).length;
}

const always = () => true;
const never = () => false;

Deno.test("KeptBinaries: runs what was kept although its file was replaced, and then removed", async () => {
  await using dir = tempDir();
  const kept = new KeptBinaries(always);
  const path = binary(dir, "envoy", "old");
  strictEqual(kept.find("d1"), undefined);
  strictEqual(kept.keep("d1", path, Deno.pid), undefined);
  Deno.renameSync(binary(dir, "envoy.new", "new"), path);
  strictEqual(run(kept.find("d1")), "old");
  Deno.removeSync(path);
  strictEqual(run(kept.find("d1")), "old");
  kept.prune([]);
});

Deno.test("KeptBinaries: prune lets go of others, and closes them", async () => {
  await using dir = tempDir();
  const kept = new KeptBinaries(always);
  const before = open(dir);
  for (const digest of ["d1", "d2", "d3"]) kept.keep(digest, binary(dir, digest, digest), Deno.pid);
  strictEqual(open(dir), before + 3);
  kept.prune(["d2"]);
  strictEqual(open(dir), before + 1);
  strictEqual(kept.find("d1"), undefined);
  strictEqual(run(kept.find("d2")), "d2");
  kept.prune([]);
  strictEqual(open(dir), before);
});

Deno.test("KeptBinaries: the same content is kept once", async () => {
  await using dir = tempDir();
  const kept = new KeptBinaries(always);
  const path = binary(dir, "envoy", "old");
  const before = open(dir);
  for (let round = 0; round < 3; round++) strictEqual(kept.keep("d1", path, Deno.pid), undefined);
  strictEqual(open(dir), before + 1);
  kept.prune([]);
});

Deno.test("KeptBinaries: the living image where the file is another one by now", async () => {
  await using dir = tempDir();
  const kept = new KeptBinaries(never);
  const path = binary(dir, "envoy", "new");
  strictEqual(kept.keep("d1", path, Deno.pid), undefined);
  const found = kept.find("d1");
  strictEqual(Deno.statSync(found ?? "").ino, Deno.statSync(Deno.execPath()).ino);
  kept.prune([]);
});

Deno.test("KeptBinaries: what was written over in place is not what was kept", async () => {
  await using dir = tempDir();
  const kept = new KeptBinaries(always);
  const path = binary(dir, "envoy", "old");
  kept.keep("d1", path, Deno.pid);
  Deno.writeTextFileSync(path, "#!/bin/sh\necho something else\n");
  strictEqual(kept.find("d1"), undefined);
  kept.prune([]);
});

Deno.test("KeptBinaries: says why it can't", async () => {
  await using dir = tempDir();
  const problem = new KeptBinaries(always).keep("d1", dir.at("none"), Deno.pid);
  match(problem ?? "", /keep the executable .*none for a rollback: .*no such file/);
});
