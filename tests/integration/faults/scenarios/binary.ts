// Owns: line 7 of issue 4: executables that preflight must refuse. Must not: hold those that run and then die.

import assert from "node:assert/strict";
import { envoyPath } from "../../../support/envoys.ts";
import { fakeEnvoy } from "../../../support/fake_envoy.ts";
import { tempDir } from "../../../support/tempdir.ts";
import { until } from "../../../support/until.ts";
import type { Scene } from "../scene.ts";
import type { Scenario } from "../scenario.ts";
import type { Stage } from "../stage.ts";

const WATCH = ["--watch-binary"];

/** Epoch 0 of a copy of a real Envoy, whose file the scenario may replace. */
async function serveCopy(
  stage: Stage,
  extraArguments: readonly string[] = WATCH,
): Promise<{ scene: Scene; path: string }> {
  const directory = stage.use(tempDir());
  const path = directory.at("envoy");
  place(path, (draft) => Deno.copyFileSync(envoyPath("1.39.3"), draft));
  return { scene: await stage.serve({ envoyPath: path, directory, extraArguments }), path };
}

/** As a careful operator does it: a new file, then a rename. */
function place(path: string, make: (draft: string) => void): void {
  make(`${path}.new`);
  Deno.renameSync(`${path}.new`, path);
}

function placeText(path: string, text: string, mode = 0o755): void {
  place(path, (draft) => {
    Deno.writeTextFileSync(draft, text);
    Deno.chmodSync(draft, mode);
  });
}

/** The header of the real one, with another machine in it, and enough of the rest. */
function foreignBinary(): Uint8Array {
  const bytes = Deno.readFileSync(envoyPath());
  // e_machine 183: aarch64.
  bytes.set([183, 0], 18);
  return bytes;
}

interface Bad {
  readonly what: string;
  readonly place: (path: string, scene: Scene) => void;
  readonly refusal: string;
  readonly says: RegExp;
  /** Where the watch takes it for something that may still get better: a person asks. */
  readonly asked?: true;
}

const BAD: readonly Bad[] = [
  {
    what: "that is not there",
    place: (path) => Deno.removeSync(path),
    refusal: "binary_missing",
    says: /no such file/,
    asked: true,
  },
  {
    what: "that is not executable",
    place: (path) => Deno.chmodSync(path, 0o644),
    refusal: "binary_not_executable",
    says: /not executable \(mode 0644\)/,
    asked: true,
  },
  {
    what: "that is a directory",
    place: (path) => {
      Deno.removeSync(path);
      Deno.mkdirSync(path);
    },
    refusal: "binary_not_executable",
    says: /is a directory/,
    asked: true,
  },
  {
    what: "that is empty",
    place: (path) => placeText(path, ""),
    refusal: "binary_not_executable",
    says: /empty/,
    asked: true,
  },
  {
    what: "that is cut short",
    place: (path) =>
      place(path, (draft) => {
        Deno.copyFileSync(envoyPath(), draft);
        Deno.truncateSync(draft, 50_000_000);
      }),
    refusal: "binary_not_executable",
    says: /cut short/,
    asked: true,
  },
  {
    what: "of another architecture",
    place: (path) =>
      place(path, (draft) => {
        Deno.writeFileSync(draft, foreignBinary(), { mode: 0o755 });
      }),
    refusal: "binary_wrong_architecture",
    says: /built for aarch64/,
  },
  {
    what: "that is text",
    place: (path) => placeText(path, "no program\n"),
    refusal: "binary_wrong_architecture",
    says: /not an ELF executable/,
  },
  {
    what: "that is a script of another program",
    place: (path) => placeText(path, "#!/bin/sh\necho usage: not Envoy >&2\nexit 64\n"),
    refusal: "spawn_failed",
    says: /ended with 64 and said usage: not Envoy/,
  },
  {
    what: "whose interpreter is not there",
    place: (path) => placeText(path, "#!/no/such/interpreter\n"),
    refusal: "spawn_failed",
    says: /interpreter/,
  },
  {
    what: "that ends without a word",
    place: (path) => placeText(path, "#!/bin/sh\nexit 0\n"),
    refusal: "spawn_failed",
    says: /said nothing/,
  },
  {
    what: "that is killed when it is asked (too little memory)",
    place: (path) => placeText(path, "#!/bin/sh\nkill -9 $$\n"),
    refusal: "spawn_failed",
    says: /ended with 137/,
  },
  {
    what: "of another hot restart version",
    place: (path, scene) => {
      const { path: fake } = fakeEnvoy(scene.directory.path, { hotRestartVersion: "12.104" }, "fake");
      placeText(path, `#!/bin/sh\nexec '${fake}' "$@"\n`);
    },
    refusal: "hot_restart_version_differs",
    says: /12\.104.*11\.104/,
  },
  {
    what: "that hangs when it is asked",
    place: (path) => placeText(path, "#!/bin/sh\nexec sleep 600\n"),
    refusal: "binary_hangs",
    says: /did not end within 5000 ms/,
  },
];

const refusals: readonly Scenario[] = BAD.map(({ what, place: placeBad, refusal, says, asked }) => ({
  line: 7,
  name: `executable ${what}: ${refusal}, nothing is forked, the next good one goes through`,
  async run(stage) {
    const { scene, path } = await serveCopy(stage);
    const since = scene.mark();
    placeBad(path, scene);
    if (asked === true) {
      await scene.event("content_unusable", undefined, since);
      const { code, stderr } = await scene.epochd.command("restart", "--wait");
      assert.equal(code, 1);
      assert.match(stderr, says);
    }
    const failed = await scene.event("handoff_failed", undefined, since);
    assert.equal(failed.refusal, refusal);
    assert.match(String(failed.detail), says);
    await scene.unharmed(0);
    assert.equal(scene.count("epoch_spawned"), 1);
    const good = scene.mark();
    await Deno.remove(path).catch(() => {});
    place(path, (draft) => Deno.copyFileSync(envoyPath("1.40.0"), draft));
    const live = await scene.event("epoch_live", undefined, good);
    assert.match(String(live.version), /1\.40\.0/);
    await scene.unharmed(1);
    return "refused in preflight, epoch 0 served on, then epoch 1 of the good one";
  },
}));

export const scenarios: readonly Scenario[] = [...refusals, {
  line: 7,
  name: "executable replaced while a handoff to the one before is under way: it follows as the next epoch",
  async run(stage) {
    const { scene, path } = await serveCopy(stage);
    const since = scene.mark();
    const replaced = scene.event("preflight_passed", undefined, since).then(() => {
      place(path, (draft) => Deno.copyFileSync(envoyPath("1.38.3"), draft));
    });
    place(path, (draft) => Deno.copyFileSync(envoyPath("1.40.0"), draft));
    await replaced;
    await scene.event("epoch_live", ({ version }) => /1\.38\.3/.test(String(version)), since, 40_000);
    const { epochs } = await until("the last one serves alone", async () => {
      const shown = await scene.shown();
      return shown.phase === "serving" && shown.epochs.length === 1 && shown;
    });
    assert.equal(epochs[0]?.version, "1.38.3");
    await scene.unharmed(epochs[0]?.epoch ?? 0);
    return `epoch ${epochs[0]?.epoch} runs what was put there last`;
  },
}, {
  line: 7,
  name:
    "executable replaced by garbage, not watched: the next handoff is refused, a bootstrap change is refused, then healed",
  async run(stage) {
    const { scene, path } = await serveCopy(stage, []);
    placeText(path, "no program\n");
    const since = scene.mark();
    assert.equal((await scene.hup("handoff_failed")).refusal, "binary_wrong_architecture");
    scene.write({ generation: "waits" });
    const failed = await scene.event("handoff_failed", ({ handoff }) => handoff === 2, since);
    assert.equal(failed.refusal, "binary_wrong_architecture");
    await scene.unharmed(0);
    place(path, (draft) => Deno.copyFileSync(envoyPath("1.40.0"), draft));
    const live = await scene.hup();
    await scene.event("handoff_done", ({ handoff }) => handoff === live.handoff, since);
    assert.ok(scene.traffic.snapshot().generations.includes("waits"));
    await scene.unharmed(1);
    return "both refused, epoch 0 served on";
  },
}, {
  line: 7,
  name: "executable replaced by garbage, newest killed while its predecessor drains: revived from the living image",
  mayFail: ["refused", "reset", "closed_early"],
  async run(stage) {
    const { scene, path } = await serveCopy(stage, []);
    await scene.hup();
    placeText(path, "no program\n");
    const since = scene.mark();
    Deno.kill(scene.pidOf(1), "SIGKILL");
    const { version } = await scene.event("epoch_live", undefined, since);
    assert.match(String(version), /1\.39\.3/);
    await scene.unharmed(1);
    return "epoch 1 again, from /proc/PID/exe of epoch 0";
  },
}];
