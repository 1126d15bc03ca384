// Owns: what real Envoys do that the handling of failed successors is built on, on each version. Must not: start epochd.

import assert from "node:assert/strict";
import { serverInfo } from "../../support/admin.ts";
import { freeBaseId, removeSegment } from "../../support/base_ids.ts";
import { writeBootstrap } from "../../support/bootstrap.ts";
import { ENVOY_VERSIONS, type EnvoyVersion, spawnEnvoy } from "../../support/envoys.ts";
import { fetchOnce } from "../../support/http_client.ts";
import { freePorts } from "../../support/ports.ts";
import { tempDir } from "../../support/tempdir.ts";
import { until, within } from "../../support/until.ts";
import { blackHole } from "../../support/xds.ts";

/** A parent that serves and a child that waits for xDS for ever, which gets `signal`. */
async function signalInitialisingChild(version: EnvoyVersion, signal: Deno.Signal) {
  await using scratch = tempDir();
  const [listenPort, adminPort, holePort] = freePorts(3) as [number, number, number];
  await using _hole = blackHole(holePort);
  const baseId = freeBaseId();
  const base = { listenPort, adminPort };
  const admin = { port: adminPort };
  const good = writeBootstrap(scratch.at("good.yaml"), base);
  const stuck = writeBootstrap(scratch.at("stuck.yaml"), {
    ...base,
    xds: { kind: "ads", port: holePort, initialFetchTimeoutMs: 0 },
  });
  await using parent = spawnEnvoy({ version, baseId, bootstrapPath: good, parentShutdownTimeS: 60 });
  await parent.untilLive(admin);
  await using child = spawnEnvoy({ version, baseId, bootstrapPath: stuck, epoch: 1, parentShutdownTimeS: 60 });
  await until("the child has the admin", async () => (await serverInfo(admin)).epoch === 1);
  let parentExit: number | undefined;
  const parentEnded = parent.exit.then(({ code }) => parentExit = code);
  child.kill(signal);
  await child.exit;
  return {
    /** Resolves when the parent has ended too. */
    parentEnded: () => within("the end of the parent", parentEnded),
    answers: async () => (await fetchOnce({ port: listenPort }, { path: "/direct" })).status,
    parentExit: () => parentExit,
    async [Symbol.asyncDispose]() {
      await parent[Symbol.asyncDispose]();
      removeSegment(baseId);
    },
  };
}

for (const version of ENVOY_VERSIONS) {
  Deno.test(`Envoy ${version}: SIGTERM to an initialising child ends the serving parent with it`, async () => {
    await using scene = await signalInitialisingChild(version, "SIGTERM");
    assert.equal(await scene.parentEnded(), 0);
    await assert.rejects(scene.answers(), /refused/);
  });
}
