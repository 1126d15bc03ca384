// Owns: the life of `epochd run` on a real Envoy under traffic: handoffs, stops, signals, death.
import assert from "node:assert/strict";
import { serverInfo } from "../support/admin.ts";
import { fetchOnce } from "../support/http_client.ts";
import { isAlive } from "../support/procfs.ts";
import { until, within } from "../support/until.ts";
import {
  assertEndedByProtocol,
  assertUnhurt,
  envoyLinesOf,
  eventsOf,
  handoff,
  logRequests,
  scene,
  STREAM,
} from "./scene.ts";

Deno.test("SIGHUP under traffic: N+1 takes over, a held stream lives on, nothing failed, N ends by protocol", async () => {
  await using here = scene();
  const epochd = await here.start();
  const traffic = here.traffic();
  for (const number of [1, 2]) {
    const held = traffic.hold(STREAM);
    await held.opened;
    epochd.signal("SIGHUP");
    await handoff(epochd, number);
    assert.ok(held.received < STREAM.chunks, "the stream must be under way when the successor is LIVE");
    const { epoch, state } = await serverInfo(here.admin);
    assert.deepEqual({ epoch, state }, { epoch: number, state: "LIVE" });
    assert.deepEqual(await within("the stream", held.outcome), { kind: "complete", chunks: STREAM.chunks });
    await handoff(epochd, number, "done");
    assert.equal(epochd.envoyPids().length, 1);
  }
  const report = await traffic.stop();
  assertUnhurt(report);
  assert.deepEqual(report.epochs, [0, 1, 2]);
  epochd.signal("SIGTERM");
  assert.equal((await epochd.exit).code, 0);
  assertEndedByProtocol(epochd, [0, 1]);
});

Deno.test("SIGHUPs that come during a handoff wait for their turn and become one", async () => {
  await using here = scene();
  const epochd = await here.start({ drainTimeMs: 1_000, parentShutdownTimeMs: 2_000 });
  const traffic = here.traffic();
  epochd.signal("SIGHUP");
  await epochd.waitForEvent("epoch_spawned", ({ epoch }) => epoch === 1);
  for (let i = 1; i <= 3; i++) {
    epochd.signal("SIGHUP");
    await until(`signal ${i} is heard`, () => eventsOf(epochd, "signal_received").length === i + 1);
  }
  await handoff(epochd, 2, "done");
  assertUnhurt(await traffic.stop());
  epochd.signal("SIGTERM");
  assert.equal((await epochd.exit).code, 0);
  assert.deepEqual(eventsOf(epochd, "handoff_began").map(({ from, to }) => [from, to]), [[0, 1], [1, 2]]);
  assert.equal(eventsOf(epochd, "trigger_coalesced").length, 2);
  assertEndedByProtocol(epochd, [0, 1]);
});

for (const signal of ["SIGTERM", "SIGINT"] as const) {
  Deno.test(`${signal} drains: a stream that ends within the drain time is whole, exit code 0`, async () => {
    await using here = scene();
    const epochd = await here.start({ drainTimeMs: 10_000, parentShutdownTimeMs: 15_000 });
    const traffic = here.traffic();
    const held = traffic.hold({ chunks: 30, everyMs: 50 });
    await held.opened;
    epochd.signal(signal);
    await epochd.waitForEvent("drain_began");
    // Still accepted while it drains; the traffic is what keeps it from being quiet.
    assert.equal((await fetchOnce(here.listener, { path: "/direct" })).status, 200);
    assert.deepEqual(await held.outcome, { kind: "complete", chunks: 30 });
    assertUnhurt(await traffic.stop());
    const { code, signal: endedBy } = await within("its end", epochd.exit);
    assert.deepEqual({ code, endedBy }, { code: 0, endedBy: null });
    assert.deepEqual(epochd.envoyPids(), []);
    const [ended] = eventsOf(epochd, "drain_ended");
    assert.deepEqual([ended?.why, ended?.connections], ["quiet", 0]);
    assert.deepEqual(eventsOf(epochd, "ended").map(({ exitCode }) => exitCode), [0]);
  });
}

Deno.test("SIGTERM ends a stream that outlasts the drain time, and a second SIGTERM does so at once", async () => {
  for (const signals of [1, 2]) {
    await using here = scene();
    const drainTimeMs = signals === 1 ? 1_000 : 60_000;
    const epochd = await here.start({ drainTimeMs, parentShutdownTimeMs: drainTimeMs + 1_000 });
    const traffic = here.traffic({ newConnectionClients: 0, keepAliveClients: 0 });
    const held = traffic.hold({ chunks: 10_000, everyMs: 50 });
    await held.opened;
    epochd.signal("SIGTERM");
    await epochd.waitForEvent("drain_began");
    if (signals === 2) epochd.signal("SIGTERM");
    assert.equal((await within("its end", epochd.exit)).code, 0);
    assert.equal((await held.outcome).kind, "broken");
    const [ended] = eventsOf(epochd, "drain_ended");
    assert.equal(ended?.why, signals === 1 ? "time_over" : "asked_twice");
  }
});

Deno.test("SIGTERM while a predecessor drains: it ends by protocol, then the newest is drained, exit code 0", async () => {
  await using here = scene();
  const epochd = await here.start();
  const traffic = here.traffic();
  const held = traffic.hold(STREAM);
  await held.opened;
  epochd.signal("SIGHUP");
  await handoff(epochd, 1);
  epochd.signal("SIGTERM");
  await epochd.waitForEvent("drain_began");
  assertUnhurt(await traffic.stop());
  assert.equal((await within("its end", epochd.exit)).code, 0);
  assertEndedByProtocol(epochd, [0]);
  // The newest outlived its predecessor: it is what ends that one.
  const exits = eventsOf(epochd, "epoch_exited").map(({ epoch }) => epoch);
  assert.deepEqual(exits, [0, 1]);
});

Deno.test("SIGUSR1 goes to the newest epoch alone: a rotated access log is opened anew, also after a handoff", async () => {
  await using here = scene();
  const logPath = here.directory.at("access.log");
  here.edit({ change: logRequests({ path: logPath }) });
  const flags = ["--file-flush-interval-msec", "50"].flatMap((item) => ["--envoy-arg", item]);
  const epochd = await here.start({ extraArguments: flags });
  const rotate = async (rotation: number) => {
    await fetchOnce(here.listener, { path: `/direct/before-${rotation}` });
    await until("the access log is written", () => Deno.readTextFileSync(logPath).includes(`before-${rotation}`));
    Deno.renameSync(logPath, `${logPath}.${rotation}`);
    const mark = epochd.log.mark();
    epochd.signal("SIGUSR1");
    const { epochs } = await epochd.waitForEvent("logs_reopened", undefined, { since: mark });
    await until("the new access log", async () => {
      await fetchOnce(here.listener, { path: `/direct/after-${rotation}` });
      return Deno.readTextFileSync(logPath).includes(`after-${rotation}`);
    });
    return epochs;
  };
  assert.deepEqual(await rotate(1), [0]);
  const traffic = here.traffic({ newConnectionClients: 0, keepAliveClients: 0 });
  await traffic.hold(STREAM).opened;
  epochd.signal("SIGHUP");
  await handoff(epochd, 1);
  assert.deepEqual(await rotate(2), [1]);
  assert.deepEqual(eventsOf(epochd, "handoff_done"), [], "the predecessor must still drain");
  await handoff(epochd, 1, "done");
  // One line a signal, and the predecessor wrote none for the second.
  assert.deepEqual([0, 1].map((epoch) => envoyLinesOf(epochd, epoch).filter((line) => /SIGUSR1/.test(line)).length), [
    1,
    1,
  ]);
});

Deno.test("the newest epoch dies: exit code 1, no Envoy is left, no marker either", async () => {
  await using here = scene();
  const epochd = await here.start();
  await until("the marker", () => Deno.statSync(epochd.readyMarker).isFile);
  const [pid] = epochd.envoyPids();
  assert.ok(pid !== undefined);
  Deno.kill(pid, "SIGKILL");
  assert.equal((await within("its end", epochd.exit)).code, 1);
  assert.deepEqual(epochd.envoyPids(), []);
  const [died] = eventsOf(epochd, "newest_died");
  assert.deepEqual([died?.exitSignal, died?.answer, died?.epoch], ["SIGKILL", "exit", 0]);
  assert.throws(() => Deno.statSync(epochd.readyMarker), Deno.errors.NotFound);
});

Deno.test("kill -9 of epochd takes Envoy along, and a new epochd starts on the same base id at once", async () => {
  await using here = scene();
  const first = await here.start();
  const [pid] = first.envoyPids();
  assert.ok(pid !== undefined);
  first.signal("SIGKILL");
  await first.exit;
  const second = await here.start({ baseId: first.baseId });
  assert.equal(isAlive(pid), false);
  assert.equal((await serverInfo(here.admin)).epoch, 0);
  assert.notDeepEqual(second.envoyPids(), [pid]);
});
