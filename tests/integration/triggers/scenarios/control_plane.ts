// Owns: handoffs while the control plane is away, slow, silent or short of resources (a real ADS server over gRPC).
// Must not: try a control plane that was never there (line 3 does).

import assert from "node:assert/strict";
import { stats } from "../../../support/admin.ts";
import { ENVOY_VERSIONS, envoyPath } from "../../../support/envoys.ts";
import { fetchOnce } from "../../../support/http_client.ts";
import { freePort } from "../../../support/ports.ts";
import { tempDir } from "../../../support/tempdir.ts";
import { until } from "../../../support/until.ts";
import type { Scenario } from "../../faults/scenario.ts";
import type { Scene } from "../../faults/scene.ts";
import { serveManaged } from "../control_plane.ts";
import { fullBacklog } from "../full_backlog.ts";

/** The successor has what the predecessor had; nothing was lost on the way. */
async function serves(scene: Scene, epoch: number): Promise<void> {
  await scene.event("handoff_done", (event) => event.to === epoch, 0);
  await scene.unharmed(epoch);
  assert.equal(scene.count("successor_has_fewer"), 0);
}

export const scenarios: readonly Scenario[] = [
  ...ENVOY_VERSIONS.map((version): Scenario => ({
    line: 19,
    name: `Envoy ${version}, control plane down: the handoff is held back, and goes on when it returns`,
    async run(stage) {
      const { scene, xds } = await serveManaged(stage, { envoyPath: envoyPath(version) });
      await scene.hup();
      await serves(scene, 1);
      assert.equal(scene.count("control_plane_awaited"), 0, "with a control plane nothing waits");
      await xds.stop();
      const since = scene.mark();
      scene.epochd.signal("SIGHUP");
      const awaited = await scene.event("control_plane_awaited", undefined, since);
      assert.deepEqual([awaited.epoch, awaited.boundMs], [1, 30_000]);
      assert.equal((await scene.shown()).step, "awaiting_control_plane");
      assert.equal(scene.count("epoch_spawned", since), 0);
      await xds.start();
      await scene.event("handoff_live", undefined, since);
      await serves(scene, 2);
      return "held back, then handed over with everything";
    },
  })),
  {
    line: 19,
    name: "control plane down beyond the bound: refused with the reason, served on, tried again by itself",
    async run(stage) {
      const extraArguments = ["--control-plane-wait", "1s"];
      const { scene, xds } = await serveManaged(stage, { extraArguments });
      await xds.stop();
      const asked = await scene.epochd.command("restart", "--wait=live", "--json");
      assert.equal(asked.code, 1);
      assert.equal(JSON.parse(asked.stdout).refusal, "control_plane_away");
      assert.match(asked.stderr, /disconnected from its control plane/);
      const failed = await scene.event("handoff_failed", undefined, 0);
      assert.equal(failed.refusal, "control_plane_away");
      await scene.event("retry_planned", undefined, 0);
      await scene.goesOn();
      assert.equal(scene.count("epoch_spawned"), 1);
      await xds.start();
      await scene.event("handoff_live", undefined, 0, 60_000);
      await serves(scene, 1);
      return "refused (control_plane_away), handed over later";
    },
  },
  {
    line: 19,
    name: "control plane down, --force: the handoff goes on, and what the successor lacks is reported at once",
    // That is what --force is for: the successor has no dynamic listener.
    mayFail: ["refused", "reset", "closed_early", "bad_status"],
    async run(stage) {
      const { scene, xds, dynamic } = await serveManaged(stage, { initialFetchTimeoutMs: 1_000 });
      await xds.stop();
      const since = scene.mark();
      const forced = scene.epochd.command("restart", "--wait=live", "--force");
      assert.equal((await forced).code, 0);
      const told = await scene.event("successor_has_fewer", undefined, since);
      // Listeners: the static one and the dynamic one. Clusters: upstream, xds, and three dynamic ones.
      assert.deepEqual([told.listeners, told.clusters], [[2, 1], [5, 2]]);
      assert.equal(told.level, "warn");
      assert.equal(scene.count("control_plane_awaited"), 0);
      await dynamic.stop();
      await scene.event("handoff_done", undefined, since);
      await scene.unharmed(1);
      return "went on as asked, 2 to 1 listeners and 5 to 2 clusters told";
    },
  },
  {
    line: 19,
    name: "control plane down, --force joins a handoff that waits already: it goes on by the next one",
    mayFail: ["refused", "reset", "closed_early", "bad_status"],
    async run(stage) {
      const { scene, xds, dynamic } = await serveManaged(stage, {
        initialFetchTimeoutMs: 1_000,
        extraArguments: ["--control-plane-wait", "3s"],
      });
      await dynamic.stop();
      await xds.stop();
      scene.epochd.signal("SIGHUP");
      await scene.event("control_plane_awaited", undefined, 0);
      const forced = await scene.epochd.command("restart", "--wait=live", "--force");
      assert.equal(forced.code, 0, forced.stderr);
      await scene.event("handoff_done", undefined, 0);
      await scene.unharmed(1);
      return "forced";
    },
  },
  {
    line: 19,
    name: "control plane slow: the successor takes as long, the serving epoch serves meanwhile",
    async run(stage) {
      const { scene, xds } = await serveManaged(stage);
      xds.pace({ delayMs: 1_500 });
      const live = await scene.hup();
      assert.ok(Number(live.tookMs) > 3_000, "listeners and routes took 1.5 s each");
      await serves(scene, 1);
      return "slow, and whole";
    },
  },
  {
    line: 19,
    name: "control plane silent, no initial_fetch_timeout: the successor is given up, then the next one is whole",
    async run(stage) {
      const { scene, xds } = await serveManaged(stage, {
        initialFetchTimeoutMs: 0,
        extraArguments: ["--live-timeout", "2s"],
      });
      xds.pace("silent");
      const failed = await scene.hup("handoff_failed");
      assert.equal(failed.refusal, "live_timeout");
      xds.pace({ delayMs: 0 });
      await scene.event("handoff_live", undefined, 0);
      await until("nothing waits any more", async () => {
        const { phase, epochs } = await scene.shown();
        return phase === "serving" && epochs.length === 1;
      });
      assert.equal(scene.count("successor_has_fewer"), 0);
      await scene.goesOn();
      return "given up (live_timeout), then whole";
    },
  },
  {
    line: 19,
    name: "control plane silent, initial_fetch_timeout passes: a successor that is LIVE with fewer is reported at once",
    // Nothing can be done about it by then; the timeout in the bootstrap chose it.
    mayFail: ["refused", "reset", "closed_early", "bad_status"],
    async run(stage) {
      const { scene, xds, dynamic, snapshot } = await serveManaged(stage, { initialFetchTimeoutMs: 500 });
      xds.pace("silent");
      const since = scene.mark();
      await scene.hup();
      const told = await scene.event("successor_has_fewer", undefined, since);
      assert.deepEqual([told.listeners, told.clusters], [[2, 1], [5, 2]]);
      await dynamic.stop();
      xds.pace({ delayMs: 0 });
      await until("the control plane's listener is back", async () => {
        return (await fetchOnce({ port: snapshot.listenPorts[0]! }, { path: "/" })).status === 200;
      });
      return "told: 2 to 1 listeners, 5 to 2 clusters";
    },
  },
  {
    line: 19,
    name: "control plane's host drops connections: Envoy calls itself connected while it tries, and is not believed",
    async run(stage) {
      const { scene, xds } = await serveManaged(stage, { extraArguments: ["--control-plane-wait", "6s"] });
      await xds.stop();
      await using _host = await fullBacklog(xds.port);
      await until("Envoy calls itself connected", async () => {
        const found = await stats({ port: scene.adminPort }, "^control_plane.connected_state$");
        return found.get("control_plane.connected_state") === 1;
      });
      const since = scene.mark();
      scene.epochd.signal("SIGHUP");
      const failed = await scene.event("handoff_failed", undefined, since);
      assert.equal(failed.refusal, "control_plane_away");
      assert.equal(scene.count("epoch_spawned"), 1);
      return "refused (control_plane_away)";
    },
  },
  {
    line: 19,
    name: "without a control plane over gRPC (REST, files): never held back",
    async run(stage) {
      const directory = stage.use(tempDir());
      const none = JSON.stringify({ resources: [] });
      const files = {
        kind: "filesystem",
        ldsPath: directory.write("lds.json", none),
        cdsPath: directory.write("cds.json", none),
      } as const;
      // Nobody is there: Envoy starts without when the timeout is over, and goes on asking.
      const rest = { kind: "rest", port: freePort(), initialFetchTimeoutMs: 300 } as const;
      for (const xds of [files, rest]) {
        await Promise.all(ENVOY_VERSIONS.map(async (version) => {
          const traffic = { requestsPerSecond: 100 };
          const scene = await stage.serve({ envoyPath: envoyPath(version), bootstrap: { xds }, traffic });
          await scene.hup();
          await serves(scene, 1);
          assert.equal(scene.count("control_plane_awaited"), 0);
          await scene.traffic.stop();
        }));
      }
      return "handed over at once, by all three versions";
    },
  },
];
