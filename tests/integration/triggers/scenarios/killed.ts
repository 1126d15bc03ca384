// Owns: a supervisor that was killed, and the next one on the same state: nothing of the past is believed.
// Must not: kill an Envoy of its own accord.

import assert from "node:assert/strict";
import { freePort } from "../../../support/ports.ts";
import { isAlive } from "../../../support/procfs.ts";
import { tempDir } from "../../../support/tempdir.ts";
import { until, within } from "../../../support/until.ts";
import { blackHole } from "../../../support/xds.ts";
import type { Scenario } from "../../faults/scenario.ts";
import type { Scene } from "../../faults/scene.ts";
import { childHeldBack, serveManaged } from "../control_plane.ts";

/** Traffic must be gone by then: its Envoys follow it. */
async function killed(scene: Scene): Promise<void> {
  scene.epochd.signal("SIGKILL");
  await scene.epochd.exit;
}

/** What the killed one could not take away; older than a socket that is being bound right now. */
function leftovers(scene: Scene): string[] {
  const run = scene.epochd.apiSocket.replace(/\/[^/]*$/, "");
  const sockets = [...Deno.readDirSync(run)].map(({ name }) => `${run}/${name}`).filter((path) =>
    /api-\d+\.sock$/.test(path)
  );
  const minuteAgo = new Date(Date.now() - 60_000);
  for (const path of sockets) Deno.utimeSync(path, minuteAgo, minuteAgo);
  return sockets;
}

export const scenarios: readonly Scenario[] = [
  {
    line: 14,
    name:
      "kill -9 of epochd: its Envoy ends, and the next one finds marker and socket stale and is Ready only by its own",
    async run(stage) {
      const directory = stage.use(tempDir());
      const first = await stage.serve({ directory });
      await first.unharmed(0);
      await first.traffic.stop();
      const envoy = first.pidOf(0);
      await killed(first);
      assert.equal(first.hasMarker(), true, "the case needs a marker of the past");
      const sockets = leftovers(first);
      assert.equal(sockets.length, 1);

      // Held before LIVE, so that there is time to look: what makes a pod Ready now could only be the past.
      const silent = stage.use(blackHole(freePort()));
      const xds = { kind: "ads", port: silent.port, initialFetchTimeoutMs: 0 } as const;
      const { baseId } = first.epochd;
      const second = stage.prepare({ directory, baseId, bootstrap: { xds } });
      await second.event("stale_marker_removed", undefined, 0);
      await second.event("epoch_progress", undefined, 0);
      assert.equal(second.hasMarker(), false);
      assert.equal(isAlive(envoy), false);
      await second.event("stale_socket_removed", (event) => event.path === sockets[0], 0);
      await second.event("api_listening", undefined, 0);
      assert.equal((await second.shown()).ready, false);
      second.epochd.signal("SIGTERM");
      assert.equal((await within("its end", second.epochd.exit)).code, 0);

      const third = await stage.serve({ directory, baseId });
      await third.unharmed(0);
      assert.equal(await third.goodChange(), 1);
      return "never Ready by the past, then served afresh";
    },
  },
  {
    line: 14,
    name: "kill -9 of epochd in the middle of a handoff: both Envoys end, the next one starts afresh at once",
    async run(stage) {
      const managed = await serveManaged(stage, { initialFetchTimeoutMs: 0 });
      const { scene, xds, dynamic } = managed;
      await childHeldBack(managed);
      await Promise.all([scene.traffic.stop(), dynamic.stop()]);
      const envoys = [scene.pidOf(0), scene.pidOf(1)];
      await killed(scene);
      xds.pace({ delayMs: 0 });
      const { baseId } = scene.epochd;
      const next = await stage.serve({ baseId, bootstrap: { xds: { kind: "ads", port: xds.port } } });
      assert.deepEqual(envoys.map(isAlive), [false, false]);
      await next.unharmed(0);
      assert.equal(await next.goodChange(), 1);
      return "served afresh, the flag of the dead child was no obstacle";
    },
  },
  {
    line: 14,
    name: "kill -9 of epochd while the predecessor drains: both Envoys end, the next one starts afresh at once",
    async run(stage) {
      const scene = await stage.serve({ drainTimeMs: 30_000, parentShutdownTimeMs: 60_000 });
      await scene.hup();
      await scene.traffic.stop();
      const envoys = [scene.pidOf(0), scene.pidOf(1)];
      await killed(scene);
      const next = await stage.serve({ baseId: scene.epochd.baseId });
      assert.deepEqual(envoys.map(isAlive), [false, false]);
      await next.unharmed(0);
      return "served afresh";
    },
  },
  {
    line: 14,
    name: "an Envoy of the killed epochd that does not end: the next one waits, bounded, refuses and says who holds it",
    async run(stage) {
      const scene = await stage.serve();
      await scene.traffic.stop();
      const envoy = scene.pidOf(0);
      Deno.kill(envoy, "SIGSTOP");
      try {
        await killed(scene);
        const { baseId } = scene.epochd;
        const refused = stage.prepare({ baseId });
        const { code } = await within("its end", refused.epochd.exit, 30_000);
        assert.equal(code, 3);
        const why = await refused.event("preflight_refused", undefined, 0);
        assert.equal(why.refusal, "base_id_held");
        assert.match(String(why.detail), new RegExp(`held by process ${envoy}\\b`));
        assert.equal(refused.count("epoch_spawned"), 0);
        assert.equal(refused.hasMarker(), false);
      } finally {
        // It has had its SIGTERM and follows it now.
        Deno.kill(envoy, "SIGCONT");
      }
      await until("it has ended", () => !isAlive(envoy));
      const next = await stage.serve({ baseId: scene.epochd.baseId });
      await next.unharmed(0);
      return "exit 3 with its pid; served when it was gone";
    },
  },
  {
    line: 14,
    name: "a state directory with leftovers of a crash in it: half a snapshot, a stranger's file; served all the same",
    async run(stage) {
      const directory = stage.use(tempDir());
      const first = await stage.serve({ directory });
      await first.traffic.stop();
      await killed(first);
      const bootstraps = `${first.epochd.stateDir}/bootstrap`;
      const snapshot = [...Deno.readDirSync(bootstraps)].find(({ name }) => name.endsWith(".yaml"))?.name ?? "none";
      Deno.truncateSync(`${bootstraps}/${snapshot}`, 100);
      Deno.writeTextFileSync(`${bootstraps}/${snapshot}.1.0.tmp`, "half");
      Deno.writeTextFileSync(`${bootstraps}/${"0".repeat(64)}.yaml`, "of long ago");
      const next = await stage.serve({ directory, baseId: first.epochd.baseId });
      await next.unharmed(0);
      assert.equal(await next.goodChange(), 1);
      return "served, the leftovers were no obstacle";
    },
  },
];
