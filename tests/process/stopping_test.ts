// Owns: the way out with an Envoy that does not play along, and with signals that come early, late or twice.
import assert from "node:assert/strict";
import { epochdCommand } from "../support/epochd.ts";
import { until, within } from "../support/until.ts";
import { eventsOf, scene } from "./scene.ts";

Deno.test("SIGTERM to an Envoy that ignores SIGTERM: SIGKILL after its bound, exit code 0", async () => {
  await using here = scene({ ignoreTerm: true });
  const epochd = here.start();
  await epochd.waitForEvent("epoch_live");
  epochd.signal("SIGTERM");
  assert.equal((await within("its end", epochd.exit)).code, 0);
  assert.deepEqual(eventsOf(epochd, "epoch_ending").map(({ signal }) => signal), ["SIGTERM", "SIGKILL"]);
  assert.deepEqual(here.envoy.recordsOf("signal").map(({ signal }) => signal), ["SIGTERM"]);
  assert.deepEqual(epochd.envoyPids(), []);
});

Deno.test("SIGTERM drains before it ends anything; a second one ends the drain, a third one kills", async () => {
  // A connection that never goes away, so that the drain is never quiet.
  const stats = { "listener.main.downstream_cx_active": 1, "listener.main.downstream_cx_total": 1 };
  await using here = scene({ ignoreTerm: true, stats });
  const epochd = here.start({ drainTimeMs: 600_000, parentShutdownTimeMs: 601_000 });
  await epochd.waitForEvent("epoch_live");
  epochd.signal("SIGTERM");
  const isDrain = ({ method, path }: { method: string; path: string }) =>
    `${method} ${path}` === "POST /drain_listeners?graceful";
  await until("it was asked to drain", () => here.envoy.recordsOf("admin").some(isDrain));
  assert.deepEqual(here.envoy.recordsOf("signal"), []);
  epochd.signal("SIGTERM");
  await here.envoy.untilRecord("signal");
  epochd.signal("SIGTERM");
  assert.equal((await within("its end", epochd.exit)).code, 0);
  assert.deepEqual(eventsOf(epochd, "stop_asked").map(({ times }) => times), [1, 2, 3]);
  assert.deepEqual(eventsOf(epochd, "drain_ended").map(({ why }) => why), ["asked_twice"]);
  assert.deepEqual(eventsOf(epochd, "epoch_ending").map(({ signal }) => signal), ["SIGTERM", "SIGKILL"]);
});

Deno.test("SIGTERM while a successor is stuck: the successor goes first, then the serving epoch is drained, exit code 0", async () => {
  await using here = scene({ epochs: { 1: { liveAfterMs: "never" } } });
  const epochd = here.start();
  await epochd.waitForEvent("epoch_live");
  epochd.signal("SIGHUP");
  await here.envoy.untilRecord("admin_up", 1);
  epochd.signal("SIGTERM");
  assert.equal((await within("its end", epochd.exit)).code, 0);
  const exits = eventsOf(epochd, "epoch_exited").map(({ epoch, exitSignal }) => ({ epoch, exitSignal }));
  assert.deepEqual(exits, [{ epoch: 1, exitSignal: "SIGKILL" }, { epoch: 0, exitSignal: undefined }]);
  // SIGTERM would make a child that is not LIVE end its parent at once.
  const signals = here.envoy.recordsOf("signal").map(({ epoch, signal }) => `${signal} to ${epoch}`);
  assert.deepEqual(signals, ["SIGTERM to 0"]);
  assert.deepEqual(eventsOf(epochd, "drain_began").map(({ epoch }) => epoch), [0]);
});

Deno.test("SIGTERM before the first epoch is LIVE ends it without a drain, exit code 0", async () => {
  await using here = scene({ liveAfterMs: "never" });
  const epochd = here.start();
  await here.envoy.untilRecord("admin_up", 0);
  epochd.signal("SIGTERM");
  assert.equal((await within("its end", epochd.exit)).code, 0);
  assert.deepEqual(eventsOf(epochd, "drain_began", "ready_changed"), []);
  assert.deepEqual(epochd.envoyPids(), []);
});

Deno.test("SIGUSR1 before the first epoch is LIVE waits for it: an Envoy that does not listen to it yet would end", async () => {
  await using here = scene({ liveAfterMs: 500 });
  const epochd = here.start();
  await here.envoy.untilRecord("admin_up", 0);
  epochd.signal("SIGUSR1");
  await epochd.waitForEvent("logs_reopened");
  await here.envoy.untilRecord("signal", 0);
  const order = here.envoy.records().map(({ kind }) => kind).filter((kind) => kind === "live" || kind === "signal");
  assert.deepEqual(order, ["live", "signal"]);
});

Deno.test("SIGHUP before the first epoch is LIVE waits for it", async () => {
  await using here = scene({ liveAfterMs: 500 });
  const epochd = here.start();
  await here.envoy.untilRecord("admin_up", 0);
  epochd.signal("SIGHUP");
  await epochd.waitForEvent("handoff_done");
  const order = eventsOf(epochd, "signal_received", "epoch_live", "handoff_began").map(({ event }) => event);
  assert.deepEqual(order, ["signal_received", "epoch_live", "handoff_began", "epoch_live"]);
});

Deno.test("SIGUSR1 during a handoff reaches the newest epoch after it, never one with a successor attached", async () => {
  await using here = scene({ epochs: { 1: { liveAfterMs: 500 } } });
  const epochd = here.start();
  await epochd.waitForEvent("epoch_live");
  epochd.signal("SIGHUP");
  await here.envoy.untilRecord("admin_up", 1);
  epochd.signal("SIGUSR1");
  await epochd.waitForEvent("logs_reopened", ({ epochs }) => String(epochs) === "1");
  await epochd.waitForEvent("handoff_done");
  assert.deepEqual(here.envoy.recordsOf("signal").map(({ epoch, signal }) => `${signal} to ${epoch}`), [
    "SIGUSR1 to 1",
  ]);
});

Deno.test("Ctrl-C, a SIGINT to the whole process group, reaches epochd alone: Envoy is drained, exit code 0", async () => {
  await using here = scene();
  const epochd = here.start({ program: ["setsid", ...epochdCommand()] });
  await epochd.waitForEvent("epoch_live");
  const { success } = await new Deno.Command("kill", { args: ["-INT", "--", `-${epochd.pid}`] }).output();
  assert.ok(success);
  assert.equal((await within("its end", epochd.exit)).code, 0);
  assert.deepEqual(here.envoy.recordsOf("signal").map(({ signal }) => signal), ["SIGTERM"]);
  assert.deepEqual(eventsOf(epochd, "stop_asked").map(({ source }) => source), ["SIGINT"]);
});
