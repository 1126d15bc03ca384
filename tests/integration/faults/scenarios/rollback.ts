// Owns: line 18 of issue 4: bootstraps and executables that serve and die soon. Must not: hold those that never serve.

import assert from "node:assert/strict";
import { envoyPath, type EnvoyVersion } from "../../../support/envoys.ts";
import { tempDir } from "../../../support/tempdir.ts";
import { until } from "../../../support/until.ts";
import { NOBODY_SERVES, type Scenario } from "../scenario.ts";
import type { Scene } from "../scene.ts";
import type { Stage } from "../stage.ts";

const ROLLBACK = ["--rollback", "on-crash-within 60s"];
const GAP = ["refused", "reset", "closed_early"] as const;

function install(version: EnvoyVersion, path: string): void {
  Deno.copyFileSync(envoyPath(version), `${path}.new`);
  Deno.renameSync(`${path}.new`, path);
}

/** Epoch 0 of 1.39.3, then epoch 1 of 1.40.0 in its place. */
async function upgraded(stage: Stage, extraArguments: readonly string[], options: { drained: boolean }) {
  const directory = stage.use(tempDir());
  const path = directory.at("envoy");
  install("1.39.3", path);
  const scene = await stage.serve({
    envoyPath: path,
    directory,
    extraArguments: [...extraArguments, "--watch-binary"],
    parentShutdownTimeMs: options.drained ? 2_000 : 8_000,
  });
  const since = scene.mark();
  install("1.40.0", path);
  const live = await scene.event("handoff_live", undefined, since);
  if (options.drained) await scene.event("handoff_done", ({ handoff }) => handoff === live.handoff, since);
  return { scene, path };
}

/** A change that is LIVE, and its epoch killed as a crash would. */
async function crashes(scene: Scene, options: { drained: boolean }): Promise<number> {
  const since = scene.mark();
  scene.write({ generation: "bad" });
  const live = await scene.event("handoff_live", undefined, since);
  await until("the bad one answers", () => scene.traffic.snapshot().generations.includes("bad"));
  if (options.drained) await scene.event("handoff_done", ({ handoff }) => handoff === live.handoff, since);
  const died = scene.mark();
  Deno.kill(scene.pidOf(Number(live.to)), "SIGKILL");
  return died;
}

/** What serves now, asked on a connection of its own. */
async function generation(scene: Scene): Promise<string> {
  const response = await fetch(`http://127.0.0.1:${scene.listenPort}/direct`, { headers: { connection: "close" } });
  await response.body?.cancel();
  return response.headers.get("x-generation") ?? "none";
}

async function rolledBack(scene: Scene, since: number): Promise<number> {
  assert.equal((await scene.event("newest_died", undefined, since)).answer, "rollback");
  const { refusedMs } = await scene.event("service_gap", undefined, since);
  assert.ok(Number(refusedMs) < 1_000, `refused for ${refusedMs} ms`);
  return Math.round(Number(refusedMs));
}

export const scenarios: readonly Scenario[] = [{
  line: 18,
  name:
    "bootstrap whose epoch dies soon, predecessor still there: the last good one as the same epoch, the bad one remembered",
  mayFail: GAP,
  async run(stage) {
    const scene = await stage.serve({ extraArguments: ROLLBACK, parentShutdownTimeMs: 8_000 });
    const held = scene.traffic.hold({ chunks: 50, everyMs: 100 });
    await held.opened;
    const since = await crashes(scene, { drained: false });
    const gap = await rolledBack(scene, since);
    assert.equal(await generation(scene), "first");
    assert.equal((await held.outcome).kind, "complete");
    const { refused } = await scene.unharmed(1);
    assert.equal(refused[0]?.refusal.name, "child_died");
    // Put back and made again: known, and not tried.
    const again = scene.mark();
    scene.write();
    await scene.event("content_changed", undefined, again);
    scene.write({ generation: "bad" });
    const failed = await scene.event("handoff_failed", undefined, again);
    assert.equal(failed.refusal, "refused_before");
    assert.equal(await scene.goodChange(), 2);
    return `epoch 1 of the last good bootstrap, connections refused for ${gap} ms`;
  },
}, {
  line: 18,
  name: "bootstrap whose epoch dies soon, predecessor gone: the last good one as epoch 0, whatever on_crash says",
  mayFail: NOBODY_SERVES,
  async run(stage) {
    const scene = await stage.serve({ extraArguments: ROLLBACK });
    const since = await crashes(scene, { drained: true });
    const gap = await rolledBack(scene, since);
    assert.equal(await generation(scene), "first");
    await scene.unharmed(0);
    assert.equal(await scene.goodChange(), 1);
    return `epoch 0 of the last good bootstrap, connections refused for ${gap} ms`;
  },
}, {
  line: 18,
  name: "bootstrap whose epoch dies after the time of rollback: on_crash decides",
  mayFail: NOBODY_SERVES,
  async run(stage) {
    const extraArguments = ["--rollback", "on-crash-within 1s", "--on-crash", "restart"];
    const scene = await stage.serve({ extraArguments });
    // The drain takes longer than the second.
    const since = await crashes(scene, { drained: true });
    assert.equal((await scene.event("newest_died", undefined, since)).answer, "restart");
    await scene.event("service_gap", undefined, since);
    assert.equal(await generation(scene), "bad");
    await scene.unharmed(0);
    return "the same bootstrap again, as epoch 0";
  },
}, {
  line: 18,
  name: "bootstrap whose epoch dies soon, rollback off: the same one again",
  mayFail: GAP,
  async run(stage) {
    const scene = await stage.serve({ parentShutdownTimeMs: 8_000 });
    const since = await crashes(scene, { drained: false });
    assert.equal((await scene.event("newest_died", undefined, since)).answer, "revival");
    await scene.event("service_gap", undefined, since);
    assert.equal(await generation(scene), "bad");
    return "the same bootstrap again, as epoch 1";
  },
}, {
  line: 18,
  name: "the last good bootstrap dies soon as well: no way back, on_crash decides",
  mayFail: NOBODY_SERVES,
  async run(stage) {
    const scene = await stage.serve({ extraArguments: ROLLBACK });
    const since = await crashes(scene, { drained: true });
    await rolledBack(scene, since);
    Deno.kill(scene.pidOf(0), "SIGKILL");
    assert.equal((await scene.event("newest_died", ({ answer }) => answer !== "rollback", since)).answer, "exit");
    assert.equal((await scene.epochd.exit).code, 1);
    return "exit 1";
  },
}, {
  line: 18,
  name: "executable that dies soon, predecessor still there: the last good one again",
  mayFail: GAP,
  async run(stage) {
    const { scene } = await upgraded(stage, ROLLBACK, { drained: false });
    const since = scene.mark();
    Deno.kill(scene.pidOf(1), "SIGKILL");
    const gap = await rolledBack(scene, since);
    const { version } = await scene.event("epoch_live", undefined, since);
    assert.match(String(version), /1\.39\.3/);
    await scene.unharmed(1);
    return `epoch 1 of 1.39.3, connections refused for ${gap} ms`;
  },
}, {
  line: 18,
  name: "executable that dies soon, predecessor and file gone: the last good one again, from where it was kept",
  mayFail: NOBODY_SERVES,
  async run(stage) {
    const { scene, path } = await upgraded(stage, ROLLBACK, { drained: true });
    const since = scene.mark();
    Deno.kill(scene.pidOf(1), "SIGKILL");
    const gap = await rolledBack(scene, since);
    const { version } = await scene.event("epoch_live", undefined, since);
    assert.match(String(version), /1\.39\.3/);
    await scene.unharmed(0);
    // Not tried again, and a handoff from the one that was kept works; so does the next executable.
    assert.equal(scene.count("handoff_began", since), 0);
    const next = scene.mark();
    install("1.38.3", path);
    const live = await scene.event("epoch_live", undefined, next);
    assert.match(String(live.version), /1\.38\.3/);
    await scene.unharmed(1);
    return `epoch 0 of 1.39.3, connections refused for ${gap} ms, then epoch 1 of 1.38.3`;
  },
}, {
  line: 18,
  name: "executables one after another: no more than the two that may be started are held open",
  async run(stage) {
    const { scene, path } = await upgraded(stage, ROLLBACK, { drained: true });
    for (const version of ["1.38.3", "1.39.3", "1.40.0"] as const) {
      const since = scene.mark();
      install(version, path);
      await scene.event("handoff_done", undefined, since);
    }
    const descriptors = `/proc/${scene.epochd.pid}/fd`;
    const held = [...Deno.readDirSync(descriptors)].map(({ name }) => {
      try {
        return Deno.readLinkSync(`${descriptors}/${name}`);
      } catch {
        return "";
      }
    }).filter((target) => target.replace(/ \(deleted\)$/, "").startsWith(path));
    assert.ok(held.length >= 2 && held.length <= 3, held.join(", "));
    await scene.unharmed(4);
    return `${held.length} descriptors after five executables`;
  },
}];
