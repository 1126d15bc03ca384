import assert from "node:assert/strict";
import { isNoExec, preloadEnv, writeLibrary } from "../../../lib/death_signal/preload.ts";
import { tempDir } from "../../support/tempdir.ts";

const MOUNTS = [
  "21 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw",
  "22 21 0:20 / /run rw,nosuid,noexec shared:2 - tmpfs tmpfs rw",
  "23 22 0:21 / /run/epochd rw,nosuid shared:3 - tmpfs tmpfs rw",
  "24 21 0:22 / /mnt rw shared:4 - tmpfs tmpfs rw",
  "25 21 0:23 / /mnt rw,noexec shared:5 - tmpfs tmpfs rw",
].join("\n");

Deno.test("isNoExec + by the nearest mount above, the last of one place", () => {
  assert.equal(isNoExec("/run", MOUNTS), true);
  assert.equal(isNoExec("/run/other/state", MOUNTS), true);
  assert.equal(isNoExec("/run/epochd/state", MOUNTS), false);
  assert.equal(isNoExec("/runner", MOUNTS), false);
  assert.equal(isNoExec("/mnt/x", MOUNTS), true);
  assert.equal(isNoExec("/usr", ""), false);
});

Deno.test("writeLibrary + into the first directory that lets programs run, whole, replaced without a gap; nowhere is no failure", async () => {
  await using dir = tempDir();
  const mounts = `1 0 0:1 / / rw - ext4 x rw\n2 1 0:2 / ${dir.path}/noexec rw,noexec - tmpfs x rw`;
  for (const name of ["noexec", "good"]) Deno.mkdirSync(dir.at(name));
  const places = [dir.at("absent"), dir.at("noexec"), dir.at("good")];
  const path = writeLibrary(places, mounts);
  assert.equal(path, dir.at("good", "libepochd-death-signal.so"));
  assert.deepEqual([...Deno.readFileSync(path!).subarray(0, 4)], [0x7f, 0x45, 0x4c, 0x46]);
  assert.equal(writeLibrary(places, mounts), path);
  assert.deepEqual([...Deno.readDirSync(dir.at("good"))].length, 1);
  assert.equal(writeLibrary([dir.at("absent")], mounts), undefined);
});

Deno.test("preloadEnv + beside what is preloaded already, nothing without a library", () => {
  assert.deepEqual(preloadEnv("/x.so", undefined), { LD_PRELOAD: "/x.so" });
  assert.deepEqual(preloadEnv("/x.so", "/other.so"), { LD_PRELOAD: "/x.so:/other.so" });
  assert.deepEqual(preloadEnv(undefined, "/other.so"), {});
});
