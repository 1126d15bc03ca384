// Owns: epochs that end, hang or talk nonsense in ways a real Envoy can't be made to.
import assert from "node:assert/strict";
import { until, within } from "../support/until.ts";
import { eventsOf, scene } from "./scene.ts";

Deno.test("a newest epoch that exits with 0 by itself has died all the same: exit code 1", async () => {
  await using here = scene({ dieAt: { moment: "after_live", code: 0, afterMs: 100 } });
  const epochd = here.start();
  assert.equal((await within("its end", epochd.exit)).code, 1);
  const [died] = eventsOf(epochd, "newest_died");
  assert.deepEqual([died?.exitCode, died?.answer], [0, "exit"]);
});

for (
  const [what, behaviours, said] of [
    ["is never LIVE", { liveAfterMs: "never" }, /its admin said \w+/],
    ["has an admin that never answers", { admin: "hang" }, /its admin never answered/],
    ["has an admin that nobody can reach", { admin: "refuse" }, /its admin never answered/],
    ["answers garbage on admin", { serverInfo: '{"state": "LIVE", "ver' }, /its admin never answered/],
    ["answers another epoch's identity", {
      serverInfo: JSON.stringify({ state: "LIVE", version: "0/1.40.0/", command_line_options: { restart_epoch: 5 } }),
    }, /its admin never answered/],
  ] as const
) {
  Deno.test(`a first epoch that ${what}: exit code 4 after the LIVE deadline, nothing is left`, async () => {
    await using here = scene(behaviours);
    const epochd = here.start({ extraArguments: ["--live-timeout", "1s"] });
    assert.equal((await within("its end", epochd.exit)).code, 4);
    const [ended] = eventsOf(epochd, "ended");
    assert.match(String(ended?.reason), /^live_timeout: epoch 0 not LIVE in 1 s: /);
    assert.match(String(ended?.reason), said);
    assert.deepEqual(epochd.envoyPids(), []);
    assert.deepEqual(eventsOf(epochd, "ready_changed"), []);
  });
}

Deno.test("a successor that is never LIVE is killed at its deadline, N serves on, the next try goes through", async () => {
  await using here = scene({ epochs: { 1: { liveAfterMs: "never" } } });
  const epochd = here.start({
    extraArguments: ["--live-timeout", "1s", "--on-lost-admin", "keep", "--retry-limit", "0"],
  });
  await epochd.waitForEvent("epoch_live");
  epochd.signal("SIGHUP");
  const failed = await epochd.waitForEvent("handoff_failed");
  assert.equal(failed.refusal, "live_timeout");
  assert.deepEqual(eventsOf(epochd, "epoch_ending").map(({ epoch, signal, role }) => ({ epoch, signal, role })), [
    { epoch: 1, signal: "SIGKILL", role: "child" },
  ]);
  assert.deepEqual(here.envoy.recordsOf("signal", 0), []);
  assert.deepEqual(eventsOf(epochd, "segment_repaired").map(({ cleared }) => cleared), [true]);
  here.envoy.behave({});
  epochd.signal("SIGHUP");
  await epochd.waitForEvent("handoff_done");
  assert.deepEqual(here.envoy.recordsOf("signal", 0), []);
  assert.equal(here.envoy.recordsOf("end", 0)[0]?.why, "ended by the successor");
  assert.deepEqual(eventsOf(epochd, "ready_changed").map(({ ready }) => ready), [true]);
});

for (
  const [what, behaviours] of [
    ["answers garbage", { serverInfo: "<html>not Envoy</html>" }],
    ["hangs", { admin: "hang" }],
    ["is another epoch's", {
      serverInfo: JSON.stringify({ state: "LIVE", version: "0/1.40.0/", command_line_options: { restart_epoch: 5 } }),
    }],
  ] as const
) {
  Deno.test(`a serving epoch whose admin ${what} is reported and not ready, not signalled, and ready again when it is back`, async () => {
    await using here = scene();
    const epochd = here.start({ extraArguments: ["--watchdog", "300ms"] });
    await epochd.waitForEvent("epoch_live");
    here.envoy.behave(behaviours);
    await epochd.waitForEvent("epoch_hung");
    await until("the marker is gone", () => !exists(epochd.readyMarker));
    here.envoy.behave({});
    await epochd.waitForEvent("admin_back");
    await until("the marker is back", () => exists(epochd.readyMarker));
    assert.deepEqual(here.envoy.recordsOf("signal"), []);
    assert.deepEqual(eventsOf(epochd, "ready_changed").map(({ ready }) => ready), [true, false, true]);
  });
}

Deno.test("--on-hang kill: a serving epoch that hangs is killed, exit code 1", async () => {
  await using here = scene();
  const epochd = here.start({ extraArguments: ["--watchdog", "300ms", "--on-hang", "kill"] });
  await epochd.waitForEvent("epoch_live");
  here.envoy.behave({ admin: "hang" });
  assert.equal((await within("its end", epochd.exit)).code, 1);
  const [died] = eventsOf(epochd, "newest_died");
  assert.equal(died?.exitSignal, "SIGKILL");
});

Deno.test("a predecessor that does not end by protocol is overdue, and killed only then", async () => {
  // SIGSTOP: it hears neither its child nor anybody else.
  await using here = scene();
  const epochd = here.start({ drainTimeMs: 1_000, parentShutdownTimeMs: 2_000 });
  await epochd.waitForEvent("epoch_live");
  const [pid = 0] = epochd.envoyPids();
  epochd.signal("SIGHUP");
  await epochd.waitForEvent("handoff_live");
  Deno.kill(pid, "SIGSTOP");
  const overdue = await epochd.waitForEvent("predecessor_overdue", undefined, { timeoutMs: 30_000 });
  assert.equal(overdue.epoch, 0);
  const done = await epochd.waitForEvent("epoch_exited", ({ role }) => role === "predecessor");
  assert.equal(done.exitSignal, "SIGKILL");
  epochd.signal("SIGHUP");
  await epochd.waitForEvent("handoff_live", ({ to }) => to === 2);
});

function exists(path: string): boolean {
  try {
    Deno.statSync(path);
    return true;
  } catch {
    return false;
  }
}
