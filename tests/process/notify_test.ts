// Owns: what a service manager is told by NOTIFY_SOCKET over the life of a supervisor, on a fake Envoy.
import assert from "node:assert/strict";
import { notifyPeer } from "../support/notify_peer.ts";
import { until, within } from "../support/until.ts";
import { eventsOf, scene } from "./scene.ts";

/** Without what repeats by the clock. */
const kept = (lines: readonly string[]) =>
  lines.filter((line) => !/^(WATCHDOG|EXTEND_TIMEOUT_USEC|STATUS)=/.test(line))
    .map((line) => line.replace(/^MONOTONIC_USEC=\d+$/, "MONOTONIC_USEC=N"));
const statuses = (lines: readonly string[]) => lines.filter((line) => line.startsWith("STATUS="));

for (
  const [what, addressOf] of [
    ["a path", (path: string) => `${path}/notify`],
    ["an abstract name", (path: string) => `@${path}/notify`],
  ] as const
) {
  Deno.test(`NOTIFY_SOCKET, ${what} + READY at LIVE, RELOADING and READY around a SIGHUP, refusals in STATUS, STOPPING`, async () => {
    await using here = scene();
    await using peer = await notifyPeer(addressOf(here.directory.path));
    const epochd = here.start({ environment: { NOTIFY_SOCKET: peer.address } });
    await until("READY=1", () => peer.lines().includes("READY=1"));
    assert.ok(eventsOf(epochd, "epoch_live").length === 1);
    assert.deepEqual(kept(peer.lines()), ["READY=1"]);
    assert.ok(peer.lines().some((line) => /^EXTEND_TIMEOUT_USEC=\d+$/.test(line)), "a start may take its time");
    epochd.signal("SIGHUP");
    await until("the reload is over", () => kept(peer.lines()).length >= 4);
    assert.deepEqual(kept(peer.lines()), ["READY=1", "RELOADING=1", "MONOTONIC_USEC=N", "READY=1"]);
    // CLOCK_MONOTONIC, by which systemd tells a new reload from an old one.
    const usec = Number(peer.lines().find((line) => line.startsWith("MONOTONIC_USEC="))!.slice(15));
    const uptime = Number(Deno.readTextFileSync("/proc/uptime").split(" ")[0]);
    assert.ok(Math.abs(usec / 1e6 - uptime) < 60, `${usec} is not the time since boot (${uptime} s)`);
    await epochd.waitForEvent("handoff_done");
    await until("who serves", () => statuses(peer.lines()).at(-1) === "STATUS=epoch 1 (Envoy 1.40.0) serves");
    Deno.writeTextFileSync(here.bootstrapPath, "nonsense: [");
    epochd.signal("SIGHUP");
    await until("the refusal", () => /last refused: bootstrap_invalid: /.test(statuses(peer.lines()).at(-1)!));
    await until("READY after a refused reload", () => kept(peer.lines()).length >= 7);
    assert.deepEqual(kept(peer.lines()).slice(4), ["RELOADING=1", "MONOTONIC_USEC=N", "READY=1"]);
    epochd.signal("SIGTERM");
    assert.equal((await within("its end", epochd.exit)).code, 0);
    await until("STOPPING=1", () => peer.lines().includes("STOPPING=1"));
    assert.deepEqual(kept(peer.lines()).slice(7), ["STOPPING=1"]);
    assert.deepEqual([...new Set(peer.notices.map(({ pid }) => pid))], [epochd.pid]);
    assert.deepEqual(eventsOf(epochd, "notify_failed"), []);
  });
}

Deno.test("WATCHDOG_USEC + fed while the supervisor moves, no more while it is stopped, again when it goes on", async () => {
  await using here = scene();
  await using peer = await notifyPeer(`${here.directory.path}/notify`);
  const epochd = here.start({ environment: { NOTIFY_SOCKET: peer.address, WATCHDOG_USEC: "200000" } });
  const count = () => peer.lines().filter((line) => line === "WATCHDOG=1").length;
  await until("it is fed", () => count() >= 5);
  epochd.signal("SIGSTOP");
  await until("it is stopped", () => /\nState:\tT/.test(Deno.readTextFileSync(`/proc/${epochd.pid}/status`)));
  let [before, quietLooks] = [count(), 0];
  await until("nothing comes for ten of its intervals", () => {
    quietLooks = count() === before ? quietLooks + 1 : 0;
    before = count();
    return quietLooks >= 20;
  }, { everyMs: 50 });
  epochd.signal("SIGCONT");
  await until("it is fed again", () => count() >= before + 3);
});

Deno.test("WATCHDOG_PID of another process + nothing is fed", async () => {
  await using here = scene();
  await using peer = await notifyPeer(`${here.directory.path}/notify`);
  const epochd = here.start({
    environment: { NOTIFY_SOCKET: peer.address, WATCHDOG_USEC: "20000", WATCHDOG_PID: "1" },
  });
  await until("READY=1", () => peer.lines().includes("READY=1"));
  epochd.signal("SIGHUP");
  await epochd.waitForEvent("handoff_done");
  assert.equal(peer.lines().includes("WATCHDOG=1"), false);
});

Deno.test("NOTIFY_SOCKET that is nobody's, or no address + said once, and everything else works", async () => {
  for (
    const address of ["/nowhere/notify", "@nobody-listens-here", "relative", "vsock:2:1", "/".padEnd(120, "x"), "@"]
  ) {
    await using here = scene();
    const epochd = here.start({ environment: { NOTIFY_SOCKET: address, WATCHDOG_USEC: "10000" } });
    await epochd.waitForEvent("ready_changed", ({ ready }) => ready === true);
    epochd.signal("SIGHUP");
    await epochd.waitForEvent("handoff_done");
    epochd.signal("SIGTERM");
    assert.equal((await within("its end", epochd.exit)).code, 0);
    assert.equal(eventsOf(epochd, "notify_failed").length, 1, address);
    assert.deepEqual(eventsOf(epochd, "bug"), []);
  }
});
