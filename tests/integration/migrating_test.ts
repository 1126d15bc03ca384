/** The move that docs/migrating.md promises: epochd joins an Envoy that another supervisor started, and nobody notices. */
import assert from "node:assert/strict";
import { freeBaseId } from "../support/base_ids.ts";
import { writeBootstrap } from "../support/bootstrap.ts";
import { envoyPath, spawnEnvoy } from "../support/envoys.ts";
import { startEpochd } from "../support/epochd.ts";
import { freePorts } from "../support/ports.ts";
import { tempDir } from "../support/tempdir.ts";
import { startTraffic } from "../support/traffic.ts";
import { startUpstream } from "../support/upstream.ts";

Deno.test("epochd takes over from an Envoy of hot-restarter.py, which ends with 0", async () => {
  await using directory = tempDir();
  const [adminPort, listenPort, upstreamPort] = freePorts(3) as [number, number, number];
  const bootstrapPath = writeBootstrap(directory.at("envoy.yaml"), { adminPort, listenPort, upstreamPort });
  const baseId = freeBaseId();
  await using _upstream = startUpstream(upstreamPort);
  // What the script forks and execs, and waits for.
  await using envoy = spawnEnvoy({ bootstrapPath, baseId, version: "1.39.3" });
  await envoy.untilLive({ port: adminPort });

  await using traffic = startTraffic({ port: listenPort, requestsPerSecond: 300 });
  const held = traffic.hold({ chunks: 40, everyMs: 50 });
  await held.opened;
  await using epochd = startEpochd({
    envoyPath: envoyPath(),
    bootstrapPath,
    baseId,
    directory,
    extraArguments: ["--cross-pod"],
  });
  await epochd.waitForEvent("epoch_live", (event) => event.epoch === 1);
  assert.equal((await held.outcome).kind, "complete");
  assert.equal((await envoy.exit).code, 0);
  await epochd.waitForEvent("ready_changed", (event) => event.ready === true);

  // From now on it is epochd's as any other.
  epochd.signal("SIGHUP");
  await epochd.waitForEvent("handoff_done");
  const report = await traffic.stop();
  assert.equal(report.failed, 0, JSON.stringify(report.failures));
  assert.deepEqual(report.epochs, [0, 1, 2]);
});
