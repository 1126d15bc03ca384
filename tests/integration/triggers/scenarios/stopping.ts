// Owns: SIGTERM in each phase a service can be in: it ends within its bound with exit code 0, and leaves nothing behind.
// Must not: look at how open connections fare (draining.ts does).

import assert from "node:assert/strict";
import { freeBaseId, segmentFlags } from "../../../support/base_ids.ts";
import { bootstrapText } from "../../../support/bootstrap.ts";
import { envoyPath, spawnEnvoy } from "../../../support/envoys.ts";
import { freePort } from "../../../support/ports.ts";
import { isAlive, processesWithArgument } from "../../../support/procfs.ts";
import { tempDir } from "../../../support/tempdir.ts";
import { until, within } from "../../../support/until.ts";
import { blackHole } from "../../../support/xds.ts";
import { NOBODY_SERVES, type Scenario } from "../../faults/scenario.ts";
import type { Scene } from "../../faults/scene.ts";
import { childHeldBack, serveManaged } from "../control_plane.ts";
import { slowValidator } from "../slow_validator.ts";

/** Drain 1 s, an Envoy that has to be killed 5 s, a predecessor 2 s: more than their sum is no bound that was kept. */
const BOUND_MS = 15_000;

async function endsWell(scene: Scene, signals = 1): Promise<void> {
  const since = scene.mark();
  for (let sent = 1; sent <= signals; sent++) {
    scene.epochd.signal("SIGTERM");
    await scene.event("stop_asked", (event) => event.times === sent, since);
  }
  const { code } = await within("its end", scene.epochd.exit, BOUND_MS);
  assert.equal(code, 0);
  const { baseId } = scene.epochd;
  await until("no Envoy is left", () => processesWithArgument("--base-id", String(baseId)).length === 0);
  assert.equal(scene.hasMarker(), false, "the ready marker is left");
  assert.equal(scene.count("epoch_exited"), scene.count("epoch_spawned"), "every epoch was reaped");
  assert.equal(scene.count("bug"), 0);
}

/** Somebody serves until the drain: what is sent until then is answered. */
async function servesThenEndsWell(scene: Scene, ...more: readonly { stop(): Promise<unknown> }[]): Promise<void> {
  const since = scene.mark();
  scene.epochd.log.onEvent((event) => {
    if (event.event === "drain_began") { for (const traffic of [scene.traffic, ...more]) traffic.stop(); }
  });
  await endsWell(scene);
  assert.ok(scene.count("drain_began", since) > 0);
  assert.equal(segmentFlags(scene.epochd.baseId) & 1n, 0n, "INITIALIZING is set");
}

export const scenarios: readonly Scenario[] = [
  {
    line: 12,
    name: "SIGTERM while the base id is held by somebody's Envoy: ends with 0, that Envoy is not touched",
    async run(stage) {
      const baseId = freeBaseId();
      const directory = stage.use(tempDir());
      const foreign = stage.use(spawnEnvoy({
        baseId,
        bootstrapPath: directory.write(
          "foreign.yaml",
          bootstrapText({ listenPort: freePort(), adminPort: freePort() }),
        ),
      }));
      const scene = stage.prepare({ baseId });
      await scene.event("supervisor_started", undefined, 0);
      await until("its signal handlers", () => hears(scene.epochd.pid, 15));
      scene.epochd.signal("SIGTERM");
      assert.equal((await within("its end", scene.epochd.exit, BOUND_MS)).code, 0);
      assert.equal(scene.count("epoch_spawned"), 0);
      assert.equal(isAlive(foreign.pid), true);
      foreign.kill();
      await foreign.exit;
      return "exit 0, nothing was started";
    },
  },
  {
    line: 12,
    name: "SIGTERM while the first epoch initialises: it is ended, exit 0",
    async run(stage) {
      const silent = stage.use(blackHole(freePort()));
      const xds = { kind: "ads", port: silent.port, initialFetchTimeoutMs: 0 } as const;
      const scene = stage.prepare({ bootstrap: { xds } });
      await scene.event("epoch_progress", undefined, 0);
      await endsWell(scene);
      return "exit 0";
    },
  },
  {
    line: 12,
    name: "SIGTERM while a preflight is under way: the validator is ended, the serving epoch drains, exit 0",
    async run(stage) {
      const directory = stage.use(tempDir());
      const { envoy, validating } = slowValidator(directory, envoyPath());
      const scene = await stage.serve({ directory, envoyPath: envoy });
      scene.write({ generation: "slow" });
      const pid = await validating();
      await servesThenEndsWell(scene);
      assert.equal(isAlive(pid), false, "the validator lives on");
      assert.equal(scene.count("epoch_spawned"), 1);
      return "exit 0, the validator was ended";
    },
  },
  {
    line: 12,
    name: "SIGTERM while a successor initialises: it is ended first, the serving epoch drains after that, exit 0",
    async run(stage) {
      const managed = await serveManaged(stage, { initialFetchTimeoutMs: 0 });
      const { scene } = managed;
      await childHeldBack(managed);
      const since = scene.mark();
      await servesThenEndsWell(scene, managed.dynamic);
      const order = scene.epochd.log.events.slice(since)
        .filter(({ event }) => event === "epoch_ending" || event === "epoch_exited" || event === "drain_began")
        .map(({ event, role }) => `${event} ${role ?? ""}`.trim());
      assert.deepEqual(order, [
        "epoch_ending child",
        "epoch_exited child",
        "drain_began",
        "epoch_ending newest",
        "epoch_exited newest",
      ]);
      return "exit 0, in the order that cuts no protocol";
    },
  },
  {
    line: 12,
    name: "SIGTERM while the predecessor drains: it ends by protocol, exit 0",
    async run(stage) {
      const scene = await stage.serve();
      await scene.hup();
      await servesThenEndsWell(scene);
      const ending = scene.epochd.log.events.filter(({ event }) => event === "epoch_ending");
      assert.deepEqual(ending.map(({ epoch, role }) => [epoch, role]), [[1, "newest"]]);
      return "exit 0, the predecessor was never signalled";
    },
  },
  {
    line: 12,
    name: "SIGTERM in the pause before the next try of a failed handoff: no further try, exit 0",
    async run(stage) {
      const port = freePort();
      stage.use(Deno.listen({ hostname: "127.0.0.1", port }));
      const scene = await stage.serve();
      const since = scene.mark();
      scene.write({ extraListenPorts: [port] });
      await scene.event("retry_planned", undefined, since);
      await servesThenEndsWell(scene);
      return "exit 0";
    },
  },
  {
    line: 12,
    name: "SIGTERM in the pause after crashes: no further start, exit 0",
    mayFail: NOBODY_SERVES,
    async run(stage) {
      const scene = await stage.serve({ extraArguments: ["--on-crash", "restart"] });
      // Each pause is twice as long as the one before: the fourth leaves time enough for a signal.
      for (let crash = 1; crash <= 4; crash++) {
        const since = scene.mark();
        Deno.kill(scene.pidOf(0), "SIGKILL");
        if (crash > 1) await scene.event("restart_paused", undefined, since);
        if (crash < 4) await scene.event("epoch_live", undefined, since);
      }
      await scene.traffic.stop();
      await endsWell(scene);
      return "exit 0";
    },
  },
  {
    line: 12,
    name: "SIGTERM while a handoff waits for the control plane: the serving epoch drains, exit 0",
    async run(stage) {
      const { scene, xds, dynamic } = await serveManaged(stage);
      await xds.stop();
      const since = scene.mark();
      scene.epochd.signal("SIGHUP");
      await scene.event("control_plane_awaited", undefined, since);
      await servesThenEndsWell(scene, dynamic);
      assert.equal(scene.count("epoch_spawned"), 1);
      return "exit 0";
    },
  },
  {
    line: 12,
    name: "SIGTERM while an edit rests, or waits for its random delay: it is dropped, exit 0",
    async run(stage) {
      const resting = await stage.serve({ extraArguments: ["--debounce", "5s"] });
      const waiting = await stage.serve({ extraArguments: ["--jitter", "1h"] });
      for (const [scene, event] of [[resting, "content_changed"], [waiting, "trigger_deferred"]] as const) {
        const since = scene.mark();
        scene.write({ generation: "too late" });
        await scene.event(event, undefined, since);
        await servesThenEndsWell(scene);
        assert.equal(scene.count("epoch_spawned"), 1);
      }
      return "exit 0, the edit was dropped";
    },
  },
  {
    line: 12,
    name: "SIGTERM while it is already stopping, twice more: it ends at once, exit 0",
    mayFail: ["broken_stream"],
    async run(stage) {
      const scene = await stage.serve({ drainTimeMs: 60_000, parentShutdownTimeMs: 90_000 });
      await scene.traffic.stop();
      const held = stage.load(scene.listenPort, { newConnectionClients: 0, keepAliveClients: 0 });
      await held.hold({ chunks: 10_000, everyMs: 50 }).opened;
      await endsWell(scene, 2);
      const again = await stage.serve({ drainTimeMs: 60_000, parentShutdownTimeMs: 90_000 });
      await again.traffic.stop();
      await held.stop();
      // The third one finds an Envoy that was asked to end already, and may find nobody.
      again.epochd.signal("SIGTERM");
      again.epochd.signal("SIGINT");
      again.epochd.signal("SIGTERM");
      assert.equal((await within("its end", again.epochd.exit, BOUND_MS)).code, 0);
      assert.equal(again.hasMarker(), false);
      return "exit 0, without the drain";
    },
  },
];

/** Whether a process catches this signal. */
function hears(pid: number, signal: number): boolean {
  const mask = /^SigCgt:\s*([0-9a-f]+)/m.exec(Deno.readTextFileSync(`/proc/${pid}/status`))?.[1] ?? "0";
  return (BigInt(`0x${mask}`) >> BigInt(signal - 1) & 1n) === 1n;
}
