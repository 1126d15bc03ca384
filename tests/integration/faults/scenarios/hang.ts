// Owns: line 8 of issue 4: epochs that are stopped or answer nothing. Must not: hold children that are slow (stuck.ts).

import assert from "node:assert/strict";
import { fakeEnvoy } from "../../../support/fake_envoy.ts";
import { tempDir } from "../../../support/tempdir.ts";
import { until } from "../../../support/until.ts";
import { smallFileSystem } from "../small_file_system.ts";
import type { Scenario } from "../scenario.ts";
import type { Scene } from "../scene.ts";

const QUICK = ["--watchdog", "1s"];
const KILL = [...QUICK, "--on-hang", "kill"];

/** Stops the process; the result lets it go on. A scenario that fails does not leave it stopped. */
function stop(pid: number): Disposable & { goOn(): void } {
  Deno.kill(pid, "SIGSTOP");
  let isStopped = true;
  const goOn = () => {
    if (isStopped) Deno.kill(pid, "SIGCONT");
    isStopped = false;
  };
  const quietly = () => {
    try {
      goOn();
    } catch {
      // It was killed.
    }
  };
  return { goOn, [Symbol.dispose]: quietly };
}

/** Issue 4: noticed within the bound, which is counted from the first question that is not answered. */
async function noticed(scene: Scene, since: number, boundMs: number): Promise<number> {
  const stoppedAtMs = Date.now();
  const hung = await scene.event("epoch_hung", undefined, since);
  await scene.event("ready_changed", ({ ready }) => ready === false, since);
  await until("the marker is gone", () => !scene.hasMarker());
  const tookMs = hung.receivedAtMs - stoppedAtMs;
  // A question takes a second at most, and one is asked each third of the bound.
  assert.ok(tookMs < boundMs * 2 + 3_000, `noticed after ${tookMs} ms`);
  return Math.round(tookMs);
}

export const scenarios: readonly Scenario[] = [{
  line: 8,
  name: "newest stopped (SIGSTOP) with the default bound: noticed, Ready withdrawn, Ready again when it goes on",
  async run(stage) {
    const scene = await stage.serve();
    const since = scene.mark();
    const stopped = stage.use(stop(scene.pidOf(0)));
    const tookMs = await noticed(scene, since, 3_000);
    const { ready, note } = await scene.shown();
    assert.deepEqual([ready, note], [false, "newest epoch does not answer"]);
    const again = scene.mark();
    stopped.goOn();
    await scene.event("admin_back", undefined, again);
    await scene.event("ready_changed", (event) => event.ready === true, again);
    await scene.unharmed(0);
    assert.equal(await scene.goodChange(), 1);
    return `noticed after ${tookMs} ms, Ready again after SIGCONT, requests only waited`;
  },
}, {
  line: 8,
  name: "newest stopped (SIGSTOP), on_hang kill, on_crash restart: killed, epoch 0 in place",
  mayFail: ["refused", "reset", "closed_early", "timeout"],
  async run(stage) {
    const scene = await stage.serve({ extraArguments: [...KILL, "--on-crash", "restart"] });
    const since = scene.mark();
    stage.use(stop(scene.pidOf(0)));
    await noticed(scene, since, 1_000);
    assert.equal((await scene.event("newest_died", undefined, since)).exitSignal, "SIGKILL");
    await scene.event("epoch_live", undefined, since);
    await scene.unharmed(0);
    assert.equal(await scene.goodChange(), 1);
    return "killed, epoch 0 in place";
  },
}, {
  line: 8,
  name: "newest stopped (SIGSTOP) while its predecessor drains, on_hang kill: killed, the same epoch again",
  mayFail: ["refused", "reset", "closed_early", "timeout"],
  async run(stage) {
    const scene = await stage.serve({ parentShutdownTimeMs: 12_000, extraArguments: KILL });
    await scene.hup();
    const since = scene.mark();
    stage.use(stop(scene.pidOf(1)));
    await noticed(scene, since, 1_000);
    assert.equal((await scene.event("newest_died", undefined, since)).answer, "revival");
    assert.equal((await scene.event("epoch_live", undefined, since)).epoch, 1);
    await scene.unharmed(1);
    return "killed, epoch 1 again";
  },
}, {
  line: 8,
  name:
    "newest stopped (SIGSTOP), then a change and a SIGHUP: nothing is forked, they go through when it answers again",
  async run(stage) {
    const scene = await stage.serve({ extraArguments: QUICK });
    const since = scene.mark();
    const stopped = stage.use(stop(scene.pidOf(0)));
    await noticed(scene, since, 1_000);
    scene.write({ generation: "waits" });
    scene.epochd.signal("SIGHUP");
    await scene.event("trigger_deferred", ({ reason }) => reason === "hung", since);
    await scene.event("trigger_coalesced", undefined, since);
    assert.equal(scene.count("epoch_spawned"), 1);
    stopped.goOn();
    await scene.event("ready_changed", ({ ready }) => ready === true, since);
    assert.equal((await scene.event("handoff_live", undefined, since)).to, 1);
    await until("the change serves", () => scene.traffic.snapshot().generations.includes("waits"));
    await scene.unharmed(1);
    return "held back while it was stopped, then epoch 1 with the change";
  },
}, {
  line: 8,
  name: "serving epoch stopped (SIGSTOP) in the middle of a handoff: noticed, and the handoff goes on after SIGCONT",
  async run(stage) {
    const scene = await stage.serve({ extraArguments: QUICK });
    const since = scene.mark();
    let stopped: ReturnType<typeof stop> | undefined;
    scene.epochd.log.onEvent(({ event, epoch }) => {
      if (event === "epoch_spawned" && epoch === 1) stopped = stage.use(stop(scene.pidOf(0)));
    });
    scene.epochd.signal("SIGHUP");
    await noticed(scene, since, 1_000);
    stopped?.goOn();
    await scene.event("ready_changed", ({ ready }) => ready === true, since);
    await scene.event("handoff_live", undefined, since);
    await scene.unharmed(1);
    assert.equal(await scene.goodChange(), 2);
    return "not Ready while it was stopped, then epoch 1 serves";
  },
}, {
  line: 8,
  name:
    "predecessor stopped (SIGSTOP) while it drains: told to go on before its successor counts as hung, nothing fails",
  async run(stage) {
    const scene = await stage.serve({ parentShutdownTimeMs: 8_000, extraArguments: ["--on-hang", "kill"] });
    const live = await scene.hup();
    const since = scene.mark();
    stage.use(stop(scene.pidOf(0)));
    await scene.event("handoff_done", ({ handoff }) => handoff === live.handoff, since);
    assert.equal(scene.count("epoch_hung", since), 0);
    assert.equal(scene.count("predecessor_overdue", since), 0);
    await scene.unharmed(1);
    assert.equal(await scene.goodChange(), 2);
    return "sent SIGCONT, ended by protocol, epoch 1 serves";
  },
}, {
  line: 8,
  name: "predecessor stopped (SIGSTOP) for a moment while it drains: nothing fails",
  async run(stage) {
    const scene = await stage.serve({ parentShutdownTimeMs: 6_000 });
    const live = await scene.hup();
    const stopped = stage.use(stop(scene.pidOf(0)));
    // A flush of counters comes each second: the newest asks its stopped parent.
    await scene.goesOn(400);
    stopped.goOn();
    await scene.event("handoff_done", ({ handoff }) => handoff === live.handoff, 0);
    await scene.unharmed(1);
    return "epoch 1 serves on";
  },
}, {
  line: 8,
  name:
    "newest stopped (SIGSTOP) while the ready marker's disk is full: noticed all the same, and back when it goes on",
  async run(stage) {
    const disk = smallFileSystem(stage);
    if (disk === undefined) return "skipped: this user may not mount";
    const readyMarker = `${disk.path}/ready`;
    const scene = await stage.serve({ extraArguments: [...QUICK, "--ready-marker", readyMarker] });
    const full = scene.mark();
    disk.fill();
    await scene.event("marker_failed", undefined, full);
    const since = scene.mark();
    const stopped = stage.use(stop(scene.pidOf(0)));
    const hung = await scene.event("epoch_hung", undefined, since);
    assert.ok(Number(hung.silentMs) < 5_000, `noticed after ${hung.silentMs} ms`);
    stopped.goOn();
    await scene.event("admin_back", undefined, since);
    disk.empty();
    await scene.event("marker_back", undefined, since);
    await scene.goesOn();
    const live = await scene.hup();
    assert.equal(live.to, 1);
    return "noticed within its bound, the marker back when there was room";
  },
}, {
  line: 8,
  name: "admin that accepts and never answers (fake Envoy): noticed, Ready withdrawn, Ready again when it answers",
  async run(stage) {
    const fakes = stage.use(tempDir());
    const envoy = fakeEnvoy(fakes.path);
    const scene = stage.prepare({ envoyPath: envoy.path, extraArguments: QUICK });
    await scene.event("epoch_live", undefined, 0);
    const since = scene.mark();
    envoy.behave({ admin: "hang" });
    await noticed(scene, since, 1_000);
    const again = scene.mark();
    envoy.behave({ admin: "answer" });
    await scene.event("admin_back", undefined, again);
    await scene.event("ready_changed", ({ ready }) => ready === true, again);
    return "not Ready while it was silent";
  },
}];
