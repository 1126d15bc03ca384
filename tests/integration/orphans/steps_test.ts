// Owns: a supervisor that is killed at each step of a start, a handoff and a stop, on a real Envoy.

import assert from "node:assert/strict";
import { segmentFlags } from "../../support/base_ids.ts";
import { runEpochd } from "../../support/epochd.ts";
import { isAlive, processFacts } from "../../support/procfs.ts";
import { freePorts } from "../../support/ports.ts";
import { until, within } from "../../support/until.ts";
import { blackHole } from "../../support/xds.ts";
import { assertUnhurt } from "../scene.ts";
import { unit } from "./unit.ts";

for (
  const fact of [
    "handoff_began",
    "preflight_passed",
    "epoch_spawned",
    "epoch_live",
    "handoff_live",
    "handoff_done",
  ]
) {
  Deno.test(`kill -9 of epochd at ${fact} of a handoff + no request fails, the next one takes over and a stop ends all`, async () => {
    await using here = await unit();
    const epochd = await here.serving();
    const traffic = here.node.traffic();
    const since = epochd.log.mark();
    epochd.signal("SIGHUP");
    await epochd.log.waitFor(fact, { since, timeoutMs: 30_000 });
    await epochd.kill();
    const next = await here.serving();
    await next.event("ready_changed", ({ ready }) => ready === true);
    assertUnhurt(await traffic.stop());
    assert.equal(segmentFlags(here.node.baseId), 0n);
    assert.equal(await next.stop(), 0);
    assert.deepEqual([...here.envoys()], []);
  });
}

for (const fact of ["supervisor_started", "start_began", "epoch_spawned", "epoch_live"]) {
  Deno.test(`kill -9 of epochd at ${fact} of the first start + one Envoy at a time, the next one serves`, async () => {
    await using here = await unit();
    const first = await here.start();
    await first.event(fact);
    await first.kill();
    const second = await here.serving();
    await second.event("ready_changed", ({ ready }) => ready === true);
    await until("one Envoy", () => here.envoys().size === 1);
    assert.equal(await second.stop(), 0);
    assert.deepEqual([...here.envoys()], []);
  });
}

Deno.test("an orphan that never gets LIVE + what serves is not harmed, the stuck one is killed after live_timeout, and the next handoff works", async () => {
  await using here = await unit();
  const [xdsPort] = freePorts(1) as [number];
  await using _hole = blackHole(xdsPort);
  const stuck = here.node.bootstrap("stuck", { xds: { kind: "ads", port: xdsPort, initialFetchTimeoutMs: 0 } });
  const first = await here.serving();
  const traffic = here.node.traffic();
  const serves = here.envoys().get(0)!;
  await first.kill();
  const second = await here.start({ bootstrapPath: stuck });
  const { pid } = await second.event("epoch_spawned") as unknown as { pid: number };
  await second.event("epoch_progress");
  await second.kill();
  assert.ok(isAlive(pid), "the stuck one has outlived its supervisor");
  const third = await here.serving({ flags: ["--live-timeout", "2s"] });
  assert.deepEqual(third.said("orphan_ending").map(({ epoch, signal, why }) => [epoch, signal, why]).slice(0, 1), [
    [1, "SIGKILL", "not_live"],
  ]);
  assert.ok(!isAlive(pid));
  // Ended by its successor's protocol, not by anybody's signal.
  await until("epoch 0 has ended", () => !isAlive(serves));
  await third.event("ready_changed", ({ ready }) => ready === true);
  assertUnhurt(await traffic.stop());
  assert.equal(await third.stop(), 0);
  assert.deepEqual([...here.envoys()], []);
});

Deno.test("kill -9 in the middle of a stop + the next one serves again", async () => {
  await using here = await unit();
  const first = await here.serving({ flags: ["--drain-time", "20s", "--parent-shutdown-time", "25s"] });
  const traffic = here.node.traffic({ newConnectionClients: 0 });
  first.signal("SIGTERM");
  await first.event("drain_began");
  await first.kill();
  await here.serving();
  assertUnhurt(await traffic.stop());
});

Deno.test("an orphan that ends while nobody supervises + the next one starts with epoch 0", async () => {
  await using here = await unit();
  const first = await here.serving();
  await first.kill();
  Deno.kill(here.envoys().get(0)!, "SIGKILL");
  await until("it is gone", () => here.envoys().size === 0);
  const second = await here.serving();
  assert.deepEqual(second.said("epoch_live").map(({ epoch }) => epoch), [0]);
});

Deno.test("a stop of a supervisor that has not taken over yet + the orphans are drained and ended, exit 0", async () => {
  await using here = await unit();
  const first = await here.serving({ flags: ["--parent-shutdown-time", "30s"] });
  first.signal("SIGHUP");
  await first.event("handoff_live");
  await first.kill();
  assert.equal(here.envoys().size, 2);
  // Waits for the older of the two.
  const second = await here.start();
  await second.event("predecessor_sought");
  assert.equal(await second.stop(), 0);
  assert.deepEqual(second.said("orphan_ending").map(({ epoch, signal, why }) => [epoch, signal, why]), [
    [1, "SIGTERM", "stop"],
  ]);
  await until("nobody is left", () => here.envoys().size === 0);
});

Deno.test("records of another boot + ignored", async () => {
  await using here = await unit();
  const first = await here.serving();
  assert.equal(await first.stop(), 0);
  const path = `${here.node.stateDir}/launched-0`;
  const [, , at, ...rest] = Deno.readTextFileSync(path).trim().split(" ");
  // A living process that is no Envoy of ours, by a record that an earlier boot has left.
  const start = Deno.readTextFileSync("/proc/self/stat").split(") ")[1]!.split(" ")[19];
  const words = [...rest.slice(0, 3), "another-boot/1"];
  Deno.writeTextFileSync(path, `${Deno.pid} ${start} ${at} ${words.join(" ")}\n`);
  const second = await here.serving();
  assert.deepEqual(second.said("orphan_awaited", "orphan_ending"), []);
  assert.equal(await second.stop(), 0);
});

Deno.test("the second supervisor is killed after it took over from one that lives + that one takes over from its Envoy, no request fails", async () => {
  await using here = await unit();
  const first = await here.serving();
  const traffic = here.node.traffic();
  const second = await here.start({ flags: ["--ready-marker", here.node.directory.at("run/other")] });
  await second.event("epoch_live");
  await second.kill();
  await first.event("successor_attached");
  await first.event("epoch_live", ({ epoch }) => epoch === 2);
  await first.event("ready_changed", ({ ready, epoch }) => ready === true && epoch === 2);
  assertUnhurt(await traffic.stop());
  assert.equal(await first.stop(), 0);
  assert.deepEqual([...here.envoys()], []);
});

Deno.test("the second supervisor is killed while its Envoy never gets LIVE + the one that lives ends that and serves on", async () => {
  await using here = await unit();
  const [xdsPort] = freePorts(1) as [number];
  await using _hole = blackHole(xdsPort);
  const stuck = here.node.bootstrap("stuck", { xds: { kind: "ads", port: xdsPort, initialFetchTimeoutMs: 0 } });
  const first = await here.serving({ flags: ["--live-timeout", "3s"] });
  const traffic = here.node.traffic();
  const flags = ["--ready-marker", here.node.directory.at("run/other")];
  const second = await here.start({ bootstrapPath: stuck, flags });
  await second.event("epoch_progress");
  await second.kill();
  await first.event("orphan_ending", ({ epoch, why }) => epoch === 1 && why === "not_live");
  // The stuck one had taken the admin along.
  await first.event("handoff_done");
  assertUnhurt(await traffic.stop());
  assert.equal(await first.stop(), 0);
  assert.deepEqual([...here.envoys()], []);
});

Deno.test("an orphan that is stopped while it drains + woken, so that it does not hold its successor up", async () => {
  await using here = await unit();
  const first = await here.serving();
  await first.kill();
  const orphan = here.envoys().get(0)!;
  const second = await here.serving({ flags: ["--parent-shutdown-time", "20s"] });
  const traffic = here.node.traffic();
  Deno.kill(orphan, "SIGSTOP");
  await until("it is stopped", () => processFacts(orphan)?.state === "T");
  await until("it goes on", () => processFacts(orphan)?.state !== "T");
  assertUnhurt(await traffic.stop());
  assert.deepEqual(second.said("epoch_hung", "newest_died"), []);
});

Deno.test("an orphan, and a next supervisor with end that shares no base id + refused with 3 and the pid, the orphan is unharmed", async () => {
  await using here = await unit();
  const first = await here.serving();
  await first.kill();
  const traffic = here.node.traffic();
  const second = await here.start({ flags: ["--on-supervisor-death", "end"] });
  assert.equal((await within("its end", second.exit)).code, 3);
  const [refused] = second.said("preflight_refused");
  assert.equal(refused?.refusal, "base_id_held");
  assert.ok(String(refused?.detail).includes(String(here.envoys().get(0))), String(refused?.detail));
  assertUnhurt(await traffic.stop());
  const third = await here.serving();
  assert.equal(await third.stop(), 0);
  assert.deepEqual([...here.envoys()], []);
});

Deno.test("a drained restart + epoch 0 anew, launched as the one before, and a kill of epochd leaves it serving", async () => {
  await using here = await unit();
  const first = await here.serving();
  await until("its API", async () => (await runEpochd(["status", "--api-socket", first.apiSocket])).code === 0);
  const { code, stderr } = await runEpochd(["restart", "--drained", "--wait", "--api-socket", first.apiSocket]);
  assert.equal(code, 0, stderr);
  assert.deepEqual([...here.envoys().keys()], [0]);
  await first.kill();
  const traffic = here.node.traffic();
  const second = await here.serving();
  assertUnhurt(await traffic.stop());
  assert.deepEqual(second.said("epoch_live").map(({ epoch }) => epoch), [1]);
  assert.equal(await second.stop(), 0);
});
