// Owns: what happens to the bootstrap and around it, and whether that is a reason for a restart.
// Must not: try contents that Envoy refuses (line 1 does).

import assert from "node:assert/strict";
import { epochdCommand } from "../../../support/epochd.ts";
import { pause, until } from "../../../support/until.ts";
import type { Scenario } from "../../faults/scenario.ts";
import type { Scene } from "../../faults/scene.ts";
import { bySomebodyWhomModesBind } from "../program.ts";
import { tempDir } from "../../../support/tempdir.ts";

/** The only handoff there was is that of a good change: nothing before it was a reason. */
async function assertNoRestartSoFar(scene: Scene): Promise<void> {
  await scene.unharmed(0);
  assert.equal(await scene.goodChange(), 1);
  assert.equal(scene.count("handoff_began"), 1);
}

interface Loss {
  readonly what: string;
  readonly take: (path: string) => void;
  readonly give: (path: string, text: string) => void;
  readonly problem: RegExp;
  readonly refusal: string;
}

const putBack = (path: string, text: string) => {
  Deno.writeTextFileSync(`${path}.new`, text);
  Deno.renameSync(`${path}.new`, path);
};

const losses: readonly Loss[] = [
  {
    what: "deleted",
    take: (path) => Deno.removeSync(path),
    give: putBack,
    problem: /no such file/,
    refusal: "bootstrap_missing",
  },
  {
    what: "replaced by a directory",
    take: (path) => {
      Deno.removeSync(path);
      Deno.mkdirSync(path);
    },
    give: (path, text) => {
      Deno.removeSync(path);
      putBack(path, text);
    },
    problem: /is a directory, expected a file/,
    refusal: "bootstrap_unreadable",
  },
  {
    what: "made unreadable",
    take: (path) => Deno.chmodSync(path, 0),
    give: (path) => Deno.chmodSync(path, 0o644),
    problem: /permission denied/,
    refusal: "bootstrap_unreadable",
  },
  {
    what: "truncated to nothing",
    take: (path) => Deno.truncateSync(path),
    give: (path, text) => Deno.writeTextFileSync(path, text),
    problem: /is empty/,
    refusal: "bootstrap_invalid",
  },
  {
    what: "replaced by a link that leads nowhere",
    take: (path) => {
      Deno.removeSync(path);
      Deno.symlinkSync("nowhere/envoy.yaml", path);
    },
    give: putBack,
    problem: /no such file/,
    refusal: "bootstrap_missing",
  },
];

/** As kubelet writes a ConfigMap: a new directory, and one link that is swapped. */
function configMap(directory: string) {
  let version = 0;
  Deno.mkdirSync(directory);
  return (text: string) => {
    const name = `..version_${++version}`;
    Deno.mkdirSync(`${directory}/${name}`);
    Deno.writeTextFileSync(`${directory}/${name}/envoy.yaml`, text);
    Deno.symlinkSync(name, `${directory}/..data_tmp`);
    Deno.renameSync(`${directory}/..data_tmp`, `${directory}/..data`);
    if (version === 1) Deno.symlinkSync("..data/envoy.yaml", `${directory}/envoy.yaml`);
    else Deno.removeSync(`${directory}/..version_${version - 1}`, { recursive: true });
  };
}

export const scenarios: readonly Scenario[] = [
  {
    line: 11,
    name: "unrelated files, touches, modes, the same content again: no restart",
    async run(stage) {
      const scene = await stage.serve();
      const path = scene.bootstrapPath;
      const text = Deno.readTextFileSync(path);
      for (const name of ["other.yaml", ".envoy.yaml.swp", "envoy.yaml~", "4913"]) {
        Deno.writeTextFileSync(scene.directory.at(name), "unrelated\n");
        Deno.removeSync(scene.directory.at(name));
      }
      Deno.utimeSync(path, new Date(), new Date());
      Deno.chmodSync(path, 0o600);
      Deno.writeTextFileSync(path, text);
      scene.writeText(text);
      await assertNoRestartSoFar(scene);
      return "no restart, and the next change was seen";
    },
  },
  {
    line: 11,
    name: "an edit that is reverted within the debounce: no restart, and the log says so",
    async run(stage) {
      const scene = await stage.serve({ extraArguments: ["--debounce", "2s"] });
      const since = scene.mark();
      const text = Deno.readTextFileSync(scene.bootstrapPath);
      scene.write({ generation: "soon gone" });
      await scene.event("content_changed", undefined, since);
      scene.writeText(text);
      const dropped = await scene.event("trigger_dropped", undefined, since);
      assert.equal(dropped.refusal, "unchanged");
      await assertNoRestartSoFar(scene);
      assert.equal(scene.traffic.snapshot().generations.includes("soon gone"), false);
      return "dropped as unchanged";
    },
  },
  {
    line: 11,
    name: "a ConfigMap's ..data link is swapped: same content no restart, other content one",
    async run(stage) {
      const directory = stage.use(tempDir());
      const mounted = directory.at("mounted");
      const publish = configMap(mounted);
      // Made before epochd starts, from the ports that the scene will have: the flag names the link in the mount.
      const scene = stage.prepare({ directory, extraArguments: ["--envoy-config", `${mounted}/envoy.yaml`] });
      publish(scene.text());
      await scene.event("epoch_live", undefined, 0);
      scene.traffic = stage.load(scene.listenPort);
      publish(scene.text());
      publish(scene.text());
      await scene.unharmed(0);
      const since = scene.mark();
      publish(scene.text({ generation: "second" }));
      await scene.event("handoff_done", undefined, since);
      await scene.unharmed(1);
      assert.equal(scene.count("handoff_began"), 1);
      assert.ok(scene.traffic.snapshot().generations.includes("second"));
      return "one handoff, for the other content";
    },
  },
  {
    line: 11,
    name: "a write every 100 ms for 10 s: a restart by the maximum wait of 5 s, and the last content in the end",
    async run(stage) {
      const scene = await stage.serve();
      const since = scene.mark();
      for (let write = 0; write < 100; write++) {
        scene.write({ generation: `write-${write}` });
        await pause(100);
      }
      const first = await scene.event("content_changed", undefined, since);
      const began = await scene.event("handoff_began", undefined, since);
      const waitedMs = began.receivedAtMs - first.receivedAtMs;
      assert.ok(waitedMs > 2_000 && waitedMs < 8_000, `the first handoff began after ${waitedMs} ms`);
      await until("the last content", () => scene.traffic.snapshot().generations.at(-1) === "write-99");
      const { epoch } = await scene.event("epoch_live", undefined, since);
      assert.equal(epoch, 1);
      assert.equal(scene.count("handoff_failed"), 0);
      const handoffs = scene.count("handoff_began");
      assert.ok(handoffs <= 4, `${handoffs} handoffs`);
      await scene.unharmed(handoffs);
      return `${handoffs} handoffs for 100 writes, the last content serves`;
    },
  },
  {
    line: 11,
    name: "writes in place that are never whole for long: half contents are refused at worst, the last one serves",
    async run(stage) {
      const scene = await stage.serve({ extraArguments: ["--debounce", "100ms"] });
      const since = scene.mark();
      for (let write = 0; write < 20; write++) {
        const text = scene.text({ generation: `write-${write}` });
        const half = Math.floor(text.length / 2);
        Deno.writeTextFileSync(scene.bootstrapPath, text.slice(0, half));
        await pause(150);
        Deno.writeTextFileSync(scene.bootstrapPath, text.slice(half), { append: true });
        await pause(write % 2 === 0 ? 150 : 0);
      }
      await until("the last content runs alone", async () => {
        const { stdout } = await scene.epochd.command("status", "--json");
        const { watch, epochs } = JSON.parse(stdout).services.envoy;
        return epochs.length === 1 && epochs[0].bootstrapDigest === watch[0].content;
      });
      const failed = scene.epochd.log.events.slice(since).filter(({ event }) => event === "handoff_failed");
      for (const { refusal } of failed) {
        assert.ok(["bootstrap_invalid", "admin_address_missing", "unchanged", "refused_before"].includes(`${refusal}`));
      }
      await scene.unharmed(scene.count("handoff_live"));
      assert.equal(scene.traffic.snapshot().generations.at(-1), "write-19");
      return `${failed.length} half contents refused, the last content serves`;
    },
  },
  ...losses.map((loss): Scenario => ({
    line: 11,
    name:
      `the bootstrap is ${loss.what}: told, SIGHUP is refused, the old epoch serves, and all is well when it returns`,
    async run(stage) {
      const program = loss.what === "made unreadable" ? bySomebodyWhomModesBind() : epochdCommand();
      const scene = await stage.serve({ program });
      const text = Deno.readTextFileSync(scene.bootstrapPath);
      const since = scene.mark();
      loss.take(scene.bootstrapPath);
      const told = await scene.event("content_unusable", undefined, since);
      assert.match(String(told.problem), loss.problem);
      const refused = await scene.hup("handoff_failed");
      assert.equal(refused.refusal, loss.refusal);
      await scene.unharmed(0);
      const back = scene.mark();
      loss.give(scene.bootstrapPath, text);
      await scene.event("content_back", undefined, back);
      assert.equal(scene.count("epoch_spawned"), 1, "the same content is no reason for a restart");
      assert.equal(await scene.goodChange(), 1);
      return `told (${loss.refusal}), recovered`;
    },
  })),
  {
    line: 11,
    name: "the bootstrap is deleted and comes back otherwise: a handoff to what it is now",
    async run(stage) {
      const scene = await stage.serve();
      const since = scene.mark();
      Deno.removeSync(scene.bootstrapPath);
      await scene.event("content_unusable", undefined, since);
      assert.equal(await scene.goodChange(), 1);
      assert.equal(scene.count("content_back", since), 0, "it is not what already runs");
      assert.equal(scene.count("content_changed", since), 1);
      return "one handoff to the new content";
    },
  },
];
