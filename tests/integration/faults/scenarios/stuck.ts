// Owns: line 3 of issue 4: successors that are slow or never LIVE. Must not: hold those that die by themselves.

import assert from "node:assert/strict";
import { freePort } from "../../../support/ports.ts";
import { blackHole } from "../../../support/xds.ts";
import type { Scenario } from "../scenario.ts";

const ONE_TRY = ["--retry-limit", "0", "--live-timeout", "2s"];

export const scenarios: readonly Scenario[] = [{
  line: 3,
  name: "xDS that never answers: given up at live_timeout with its progress shown, ended, repaired",
  async run(stage) {
    const hole = stage.use(blackHole(freePort()));
    const scene = await stage.serve({ extraArguments: ONE_TRY });
    const since = scene.mark();
    scene.write({ xds: { kind: "ads", port: hole.port, initialFetchTimeoutMs: 0 } });
    const shown = await scene.event("epoch_progress", undefined, since);
    assert.match(String(shown.state), /INITIALIZING/);
    const failed = await scene.event("handoff_failed", undefined, since);
    assert.equal(failed.refusal, "live_timeout");
    assert.match(String(failed.detail), /2 s: its admin said (PRE_)?INITIALIZING/);
    const live = await scene.event("handoff_live", undefined, since);
    assert.deepEqual([live.from, live.to], [0, 1]);
    await scene.unharmed(1);
    assert.equal(await scene.goodChange(), 2);
    return "given up after 2 s, a new epoch of the last good bootstrap took over";
  },
}, {
  line: 3,
  name: "xDS that never answers, on_lost_admin keep: epoch 0 serves without its admin",
  async run(stage) {
    const hole = stage.use(blackHole(freePort()));
    const scene = await stage.serve({ extraArguments: [...ONE_TRY, "--on-lost-admin", "keep"] });
    const since = scene.mark();
    scene.write({ xds: { kind: "ads", port: hole.port, initialFetchTimeoutMs: 0 } });
    await scene.event("handoff_failed", undefined, since);
    await scene.unharmed(0);
    assert.equal(await scene.goodChange(), 1);
    return "given up after 2 s, epoch 0 served on";
  },
}, {
  line: 3,
  name: "xDS that never answers, initial_fetch_timeout below live_timeout: slow is not stuck",
  async run(stage) {
    const hole = stage.use(blackHole(freePort()));
    const scene = await stage.serve({ extraArguments: ["--live-timeout", "20s"] });
    const since = scene.mark();
    scene.write({ xds: { kind: "ads", port: hole.port, initialFetchTimeoutMs: 1_500 }, generation: "slow" });
    const live = await scene.event("handoff_live", undefined, since);
    assert.ok(scene.count("epoch_progress", since) > 0);
    assert.equal(live.to, 1);
    await scene.unharmed(1);
    return "LIVE after Envoy's own timeouts, with its progress shown";
  },
}, {
  line: 3,
  name: "control plane whose port nobody listens on: given up at live_timeout",
  async run(stage) {
    const scene = await stage.serve({ extraArguments: ONE_TRY });
    const since = scene.mark();
    scene.write({ xds: { kind: "ads", port: freePort(), initialFetchTimeoutMs: 0 } });
    assert.equal((await scene.event("handoff_failed", undefined, since)).refusal, "live_timeout");
    await scene.event("handoff_live", undefined, since);
    await scene.unharmed(1);
    assert.equal(await scene.goodChange(), 2);
    return "given up after 2 s, a new epoch of the last good bootstrap took over";
  },
}, {
  line: 3,
  name: "child stopped (SIGSTOP) before it is LIVE: is killed, the next change goes through",
  async run(stage) {
    const hole = stage.use(blackHole(freePort()));
    const scene = await stage.serve({ extraArguments: ONE_TRY });
    const since = scene.mark();
    scene.write({ xds: { kind: "ads", port: hole.port, initialFetchTimeoutMs: 0 } });
    await scene.event("epoch_progress", undefined, since);
    Deno.kill(scene.pidOf(1), "SIGSTOP");
    assert.equal((await scene.event("handoff_failed", undefined, since)).refusal, "live_timeout");
    const exited = await scene.event("epoch_exited", ({ role }) => role === "child", since);
    assert.equal(exited.exitSignal, "SIGKILL");
    await scene.event("handoff_live", undefined, since);
    await scene.unharmed(1);
    assert.equal(await scene.goodChange(), 2);
    return "killed, then as above";
  },
}];
