// Owns: executables as data on a real Envoy: push, verify, switch, roll back, under traffic.
import assert from "node:assert/strict";
import { serverInfo } from "../support/admin.ts";
import { envoyPath, type EnvoyVersion } from "../support/envoys.ts";
import type { Epochd } from "../support/epochd.ts";
import { until } from "../support/until.ts";
import { assertEndedByProtocol, assertUnhurt, eventsOf, handoff, type Scene, scene } from "./scene.ts";
import { type Slot, slotsOf, startWithSlots } from "./push_scene.ts";

const SHORT = { drainTimeMs: 1_000, parentShutdownTimeMs: 2_000 };

/** Echoes through every handoff until its parent ends it. */
async function openWebSocket(here: Scene) {
  const socket = new WebSocket(`ws://127.0.0.1:${here.listener.port}/ws`);
  await new Promise((resolve, reject) => {
    socket.onopen = resolve;
    socket.onerror = () => reject(new Error("the WebSocket did not open"));
  });
  return {
    async echoes(text: string) {
      const answer = new Promise((resolve) => socket.onmessage = ({ data }) => resolve(data));
      socket.send(text);
      assert.equal(await answer, text);
    },
    async close() {
      if (socket.readyState === WebSocket.CLOSED) return;
      const closed = new Promise((resolve) => socket.onclose = resolve);
      socket.close();
      await closed;
    },
  };
}

async function push(epochd: Epochd, file: string, ...more: string[]): Promise<Record<string, unknown>> {
  const { code, stdout, stderr } = await epochd.command("push", file, "--json", ...more);
  assert.equal(code, 0, stderr);
  return JSON.parse(stdout.trim());
}

const roles = (slots: readonly Slot[]) =>
  Object.fromEntries(slots.map(({ version, running, current, previous }) => [version, { running, current, previous }]));

Deno.test("push: 1.38.3 -> 1.39.3 -> 1.40.0 and back under traffic, a stream and a WebSocket across each, nothing failed", async () => {
  await using here = scene();
  const epochd = await startWithSlots(here, { ...SHORT, envoyPath: envoyPath("1.38.3") });
  const traffic = here.traffic({ requestsPerSecond: 200 });
  const way: readonly EnvoyVersion[] = ["1.39.3", "1.40.0", "1.39.3", "1.38.3"];
  for (const [at, version] of way.entries()) {
    const held = traffic.hold({ chunks: 30, everyMs: 50 });
    await held.opened;
    const socket = await openWebSocket(here);
    await socket.echoes("before");
    const pushed = await push(epochd, envoyPath(version), "--wait=live");
    assert.deepEqual([pushed.outcome, pushed.version, pushed.to], ["live", version, at + 1]);
    await socket.echoes("after LIVE");
    const info = await serverInfo(here.admin);
    assert.deepEqual([info.epoch, info.version, info.state], [at + 1, version, "LIVE"]);
    assert.equal(Deno.readLinkSync(here.directory.at("slots/envoy/current")), pushed.digest);
    await socket.close();
    await handoff(epochd, at + 1, "done");
    await held.outcome;
  }
  const report = await traffic.stop();
  assertUnhurt(report);
  assert.deepEqual(report.epochs, [0, 1, 2, 3, 4]);
  assert.deepEqual(eventsOf(epochd, "handoff_began").map(({ source }) => source), Array(4).fill("push"));
  assertEndedByProtocol(epochd, [0, 1, 2, 3]);
  const slots = await slotsOf(epochd);
  assert.deepEqual(roles(slots), {
    "1.38.3": { running: true, current: true, previous: false },
    "1.39.3": { running: false, current: false, previous: true },
    "1.40.0": { running: false, current: false, previous: false },
  });
});

Deno.test("push: the same digest again is current already and causes nothing, unless it is forced", async () => {
  await using here = scene();
  const epochd = await startWithSlots(here, { ...SHORT, envoyPath: envoyPath("1.39.3") });
  await push(epochd, envoyPath("1.40.0"), "--wait=drained");
  const again = await epochd.command("push", envoyPath("1.40.0"), "--wait");
  assert.equal(again.code, 0, again.stderr);
  assert.match(again.stdout, /^already current: service envoy runs [0-9a-f]{12}\n$/);
  assert.equal(eventsOf(epochd, "handoff_began").length, 1);
  const forced = await push(epochd, envoyPath("1.40.0"), "--force", "--wait=live");
  assert.deepEqual([forced.outcome, forced.to], ["live", 2]);
});

Deno.test("rollback --binary: to the one before, to the installed one, to a digest; then there is nothing before", async () => {
  await using here = scene();
  const epochd = await startWithSlots(here, { ...SHORT, envoyPath: envoyPath("1.38.3") });
  const none = await epochd.command("rollback", "--binary");
  assert.deepEqual([none.code, /slot.unknown.*there is none before/.test(none.stderr)], [1, true], none.stderr);
  const traffic = here.traffic({ requestsPerSecond: 100 });
  const first = await push(epochd, envoyPath("1.39.3"), "--wait=drained");
  await push(epochd, envoyPath("1.40.0"), "--wait=drained");
  const seen: string[] = [];
  for (const more of [[], ["--to", "installed"], ["--to", String(first.digest).slice(0, 12)], []]) {
    const { code, stderr } = await epochd.command("rollback", "--binary", "--wait=drained", ...more);
    assert.equal(code, 0, stderr);
    seen.push((await serverInfo(here.admin)).version);
  }
  assert.deepEqual(seen, ["1.39.3", "1.38.3", "1.39.3", "1.38.3"]);
  const unknown = await epochd.command("rollback", "--binary", "--to", "0123456789");
  assert.deepEqual([unknown.code, /no slot has it/.test(unknown.stderr)], [1, true], unknown.stderr);
  assertUnhurt(await traffic.stop());
});

Deno.test("push: a supervisor that starts anew runs what was current", async () => {
  await using here = scene();
  const epochd = await startWithSlots(here, { ...SHORT, envoyPath: envoyPath("1.38.3") });
  await push(epochd, envoyPath("1.40.0"), "--wait=drained");
  epochd.signal("SIGTERM");
  assert.equal((await epochd.exit).code, 0);
  const later = await startWithSlots(here, { ...SHORT, envoyPath: envoyPath("1.38.3"), baseId: epochd.baseId });
  assert.equal((await serverInfo(here.admin)).version, "1.40.0");
  assert.deepEqual(eventsOf(later, "slots_mended"), []);
});

Deno.test("push: without --slots-dir it is refused, and says what to do", async () => {
  await using here = scene();
  const epochd = await here.start();
  const { code, stderr } = await epochd.command("push", envoyPath("1.39.3"));
  assert.equal(code, 1);
  assert.match(stderr, /slots_off.*--slots-dir/);
  await until("it serves", async () => (await serverInfo(here.admin)).state === "LIVE");
});
