// Owns: a ready marker that can't be written, and paths that must not be. Must not: mount anything outside its own directory.

import assert from "node:assert/strict";
import { epochdCommand } from "../../../support/epochd.ts";
import { type TempDir, tempDir } from "../../../support/tempdir.ts";
import { until, within } from "../../../support/until.ts";
import type { Scenario } from "../../faults/scenario.ts";
import type { Scene } from "../../faults/scene.ts";
import type { Stage } from "../../faults/stage.ts";
import { probe } from "../probe.ts";
import { canRun, isRoot, mustRun } from "../program.ts";

/** A file system of `size` bytes in a directory of the scenario, gone with it. */
async function mounted(stage: Stage, directory: TempDir, size: string) {
  const path = directory.at("mounted");
  Deno.mkdirSync(path);
  await mustRun("mount", "-t", "tmpfs", "-o", `size=${size},mode=0755`, "epochd-test", path);
  stage.use({ [Symbol.asyncDispose]: () => mustRun("umount", "--lazy", path) });
  return { path, remount: (mode: "ro" | "rw") => mustRun("mount", "-o", `remount,${mode}`, path) };
}

/** Not Ready for anybody who asks, while requests are answered; then Ready again. */
async function lostAndBack(scene: Scene, marker: string, why: RegExp, giveBack: () => unknown): Promise<void> {
  const failed = await scene.event("marker_failed", undefined, 0);
  assert.match(String(failed.problem), why);
  assert.equal(failed.level, "error");
  await until("the probe says no", async () => (await probe(marker)).code === 1);
  const { ready, note } = await scene.shown();
  assert.equal(ready, false);
  assert.match(note ?? "", why);
  assert.deepEqual(lastReady(scene), false, "the log claims Ready");
  await scene.goesOn();
  const since = scene.mark();
  await giveBack();
  await scene.event("marker_back", undefined, since);
  assert.equal((await probe(marker)).code, 0);
  assert.equal((await scene.shown()).ready, true);
  assert.equal(lastReady(scene), true);
  assert.equal(scene.count("marker_failed"), 1, "told once, not every two seconds");
}

function lastReady(scene: Scene): unknown {
  return scene.epochd.log.events.findLast(({ event }) => event === "ready_changed")?.ready;
}

const canMount = isRoot && await canRun("unshare", "--mount", "mount", "-t", "tmpfs", "none", "/mnt");

const withMounts: readonly Scenario[] = [
  {
    line: 15,
    name: "the marker's file system becomes read-only: told, not Ready, tried until it is back; exit 0 all the same",
    async run(stage) {
      const directory = stage.use(tempDir());
      const { path, remount } = await mounted(stage, directory, "1m");
      const marker = `${path}/ready`;
      const scene = await stage.serve({ directory, extraArguments: ["--ready-marker", marker] });
      await until("the marker", () => Deno.statSync(marker).isFile);
      assert.equal((await probe(marker)).code, 0);
      await remount("ro");
      await lostAndBack(scene, marker, /read-only file system/, () => remount("rw"));
      await remount("ro");
      await scene.traffic.stop();
      scene.epochd.signal("SIGTERM");
      assert.equal((await within("its end", scene.epochd.exit)).code, 0);
      await until("what is left is too old for the probe", async () => (await probe(marker)).code === 1);
      return "not Ready until it could be written again";
    },
  },
  {
    line: 15,
    name: "the marker's file system is read-only from the start: served, never Ready",
    async run(stage) {
      const directory = stage.use(tempDir());
      const { path, remount } = await mounted(stage, directory, "1m");
      await remount("ro");
      const marker = `${path}/ready`;
      const scene = await stage.serve({ directory, extraArguments: ["--ready-marker", marker] });
      await lostAndBack(scene, marker, /read-only file system/, () => remount("rw"));
      return "served, and Ready when it could be written";
    },
  },
  {
    line: 15,
    name: "a marker of the past that can't be removed: refused with exit code 2, rather than Ready by what is not so",
    async run(stage) {
      const directory = stage.use(tempDir());
      const { path, remount } = await mounted(stage, directory, "1m");
      const marker = `${path}/ready`;
      Deno.writeTextFileSync(marker, `${Date.now()} 3 42\n`);
      await remount("ro");
      const scene = stage.prepare({ directory, extraArguments: ["--ready-marker", marker] });
      assert.equal((await within("its end", scene.epochd.exit)).code, 2);
      const refused = await scene.event("start_refused", undefined, 0);
      assert.match(String(refused.problem), /read-only file system/);
      assert.equal(scene.count("epoch_spawned"), 0);
      return "exit 2";
    },
  },
  {
    line: 15,
    name: "the marker's disk is full: told, not Ready by a marker that is too old, tried until there is room",
    async run(stage) {
      const directory = stage.use(tempDir());
      const { path } = await mounted(stage, directory, "16k");
      const marker = `${path}/ready`;
      const scene = await stage.serve({ directory, extraArguments: ["--ready-marker", marker] });
      await until("the marker", () => Deno.statSync(marker).isFile);
      const filler = `${path}/filler`;
      assert.throws(() => Deno.writeFileSync(filler, new Uint8Array(1_000_000)));
      await lostAndBack(scene, marker, /no space left on device/, () => Deno.removeSync(filler));
      assert.deepEqual([...Deno.readDirSync(path)].map(({ name }) => name), ["ready"], "half written files are left");
      return "not Ready until there was room";
    },
  },
];

interface Squatter {
  readonly what: string;
  readonly put: (path: string, directory: TempDir) => void;
  readonly take: (path: string) => void;
  readonly why: RegExp;
}

const squatters: readonly Squatter[] = [
  {
    what: "a symbolic link",
    put: (path, directory) => {
      directory.write("victim", "precious\n");
      Deno.symlinkSync(directory.at("victim"), path);
    },
    take: (path) => Deno.removeSync(path),
    why: /it is a symbolic link, expected a file or nothing/,
  },
  {
    what: "a directory",
    put: (path) => Deno.mkdirSync(path),
    take: (path) => Deno.removeSync(path),
    why: /it is a directory, expected a file or nothing/,
  },
];

export const scenarios: readonly Scenario[] = [
  {
    line: 15,
    name: "the marker's directory is missing: told, served, never Ready without it, Ready when it is there",
    async run(stage) {
      const directory = stage.use(tempDir());
      const marker = directory.at("missing", "ready");
      const scene = await stage.serve({ directory, extraArguments: ["--ready-marker", marker] });
      await lostAndBack(scene, marker, /no such file or directory/, () => Deno.mkdirSync(directory.at("missing")));
      await scene.hup();
      await scene.event("handoff_done", undefined, 0);
      return "not Ready until the directory was there";
    },
  },
  ...squatters.map(({ what, put, why }): Scenario => ({
    line: 15,
    name: `the marker's path is ${what} at the start: refused with exit code 2, nothing is started or touched`,
    async run(stage) {
      const directory = stage.use(tempDir());
      const marker = directory.at("ready");
      put(marker, directory);
      const scene = stage.prepare({ directory, extraArguments: ["--ready-marker", marker], program: epochdCommand() });
      assert.equal((await within("its end", scene.epochd.exit)).code, 2);
      const refused = await scene.event("start_refused", undefined, 0);
      assert.match(String(refused.problem), why);
      assert.ok(String(refused.problem).includes(marker));
      assert.equal(scene.count("epoch_spawned"), 0);
      assertUntouched(directory);
      return "exit 2";
    },
  })),
  ...squatters.map(({ what, put, take, why }): Scenario => ({
    line: 15,
    name: `the marker is replaced by ${what} while it runs: told, not Ready by epochd's word, nothing is overwritten`,
    async run(stage) {
      const directory = stage.use(tempDir());
      const marker = directory.at("ready");
      const scene = await stage.serve({ directory, extraArguments: ["--ready-marker", marker] });
      await until("the marker", () => Deno.statSync(marker).isFile);
      // The next refresh may come in between: then what is there is removed once more.
      await until("it is replaced", () => {
        Deno.removeSync(marker);
        put(marker, directory);
        return true;
      });
      const failed = await scene.event("marker_failed", undefined, 0);
      assert.match(String(failed.problem), why);
      assert.equal((await scene.shown()).ready, false);
      assertUntouched(directory);
      const since = scene.mark();
      take(marker);
      await scene.event("marker_back", undefined, since);
      assert.equal((await probe(marker)).code, 0);
      await scene.goesOn();
      return "nothing was overwritten, Ready when it was gone";
    },
  })),
  ...(canMount ? withMounts : []),
];

function assertUntouched(directory: TempDir): void {
  let text = "precious\n";
  try {
    text = Deno.readTextFileSync(directory.at("victim"));
  } catch { /* A case without one. */ }
  assert.equal(text, "precious\n");
}
