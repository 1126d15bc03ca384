import { deepStrictEqual, match, strictEqual } from "node:assert/strict";
import { segmentFlags } from "../../support/base_ids.ts";
import { ENVOY_VERSIONS } from "../../support/envoys.ts";
import { fetchOnce } from "../../support/http_client.ts";
import { until } from "../../support/until.ts";
import { RealEnvoy } from "./real_envoy.ts";

for (const version of ENVOY_VERSIONS) {
  Deno.test(`SharedMemory, Envoy ${version}: a child that dies early poisons the segment, a repair lets the next one come up`, async () => {
    await using envoy = new RealEnvoy(version);
    await envoy.startLive(0);
    deepStrictEqual(await envoy.segment.repair(), { kind: "clean" });
    const broken = envoy.dir.write("broken.yaml", "admin: {address");
    const dead = envoy.start(1, { plan: { bootstrapPath: broken } });
    strictEqual((await dead.exit).code !== 0, true);
    strictEqual(segmentFlags(envoy.baseId) & 1n, 1n);
    const look = await envoy.segment.look();
    strictEqual(look.kind === "present" && look.initializing, true);
    strictEqual((await envoy.start(1).exit).code !== 0, true, "a poisoned segment let an epoch in");
    deepStrictEqual(await envoy.segment.repair(), { kind: "cleared" });
    strictEqual(segmentFlags(envoy.baseId), 0n);
    await envoy.startLive(1);
    strictEqual((await fetchOnce({ port: envoy.listenPort }, { path: "/direct" })).status, 200);
  });

  Deno.test(`SharedMemory, Envoy ${version}: vitals of a serving, a stopped, a superseded and a dead epoch`, async () => {
    await using envoy = new RealEnvoy(version);
    const first = await envoy.startLive(0);
    const alive = async (pid: number, epoch: number) => (await envoy.segment.vitals(pid, epoch)).alive;
    strictEqual(await alive(first.pid, 0), true);
    strictEqual(await alive(first.pid, 1), false);
    Deno.kill(first.pid, "SIGSTOP");
    const stopped = `process ${first.pid} is stopped`;
    await until("it is stopped", async () => (await envoy.segment.vitals(first.pid, 0)).detail === stopped);
    strictEqual(await alive(first.pid, 0), false);
    Deno.kill(first.pid, "SIGCONT");
    const second = await envoy.startLive(1);
    strictEqual(await alive(second.pid, 1), true);
    await first.exit;
    strictEqual(await alive(first.pid, 0), false);
    strictEqual(await alive(second.pid, 1), true);
    second.signal("SIGKILL");
    await second.exit;
    strictEqual(await alive(second.pid, 1), false);
  });

  Deno.test(`SharedMemory, Envoy ${version}: a living epoch holds its base id, what it leaves behind doesn't`, async () => {
    await using envoy = new RealEnvoy(version);
    const child = await envoy.startLive(0);
    const obstacle = await envoy.segment.startObstacle();
    strictEqual(obstacle?.name, "base_id_held");
    match(obstacle.detail, new RegExp(`sockets ${envoy.baseId * 10}\\), held by process ${child.pid}; `));
    child.signal("SIGKILL");
    await child.exit;
    strictEqual(await envoy.segment.startObstacle(), undefined);
    await envoy.startLive(0);
  });
}
