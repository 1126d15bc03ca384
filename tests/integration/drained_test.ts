// Owns: restarts without a handoff, for an Envoy that can't take over: asked for by name, counted first, and back where it fails.
import assert from "node:assert/strict";
import { serverInfo } from "../support/admin.ts";
import { envoyPath } from "../support/envoys.ts";
import { eventsOf, handoff, installByRename, type Scene, scene } from "./scene.ts";

const SHORT = { drainTimeMs: 1_000, parentShutdownTimeMs: 2_000 };

/** A real Envoy that prints another hot restart version, as one of a later major layout would. */
function installIncompatible(here: Scene, path: string, start = `exec ${envoyPath("1.39.3")} "$@"`): void {
  const draft = here.directory.at("draft");
  Deno.writeTextFileSync(
    draft,
    `#!/bin/sh
case "$*" in
  *--hot-restart-version*) echo 99.104 ;;
  *--mode*validate*) exec ${envoyPath("1.39.3")} "$@" ;;
  *) ${start} ;;
esac
`,
  );
  Deno.chmodSync(draft, 0o755);
  Deno.renameSync(draft, path);
}

Deno.test("an incompatible Envoy is refused, and restart --drained switches to it: counted, drained, afresh", async () => {
  await using here = scene();
  const envoy = here.directory.at("envoy");
  installByRename(envoyPath("1.40.0"), envoy);
  const epochd = await here.start({ ...SHORT, envoyPath: envoy });
  const traffic = here.traffic();
  const held = traffic.hold({ chunks: 2_000, everyMs: 50 });
  await held.opened;
  installIncompatible(here, envoy);
  epochd.signal("SIGHUP");
  const refused = await epochd.waitForEvent("handoff_failed");
  assert.equal(refused.refusal, "hot_restart_version_differs");
  assert.match(String(refused.detail), /epochd restart --drained/);
  const plan = await epochd.command("restart", "--drained", "--dry-run", "--json");
  const { connections, outcome, drainTimeMs } = JSON.parse(plan.stdout);
  assert.deepEqual([plan.code, outcome, drainTimeMs], [0, "planned", SHORT.drainTimeMs]);
  assert.ok(connections >= 1, plan.stdout);
  assert.equal((await serverInfo(here.admin)).version, "1.40.0", "a plan does nothing");
  const { code, stdout, stderr } = await epochd.command("restart", "--drained", "--wait");
  assert.deepEqual([code, stderr], [0, ""], stdout);
  assert.match(stdout, /^a drained restart of envoy ends \d+ connections?, given 1 s to leave/);
  const info = await serverInfo(here.admin);
  assert.deepEqual([info.epoch, info.version, info.state], [0, "1.39.3", "LIVE"]);
  assert.equal((await held.outcome).kind, "broken", "what is open at the end of the drain is cut, and that was said");
  const [restart] = eventsOf(epochd, "drained_restart");
  assert.ok(Number(restart?.connections) >= 1);
  assert.equal(eventsOf(epochd, "service_gap").length, 1);
  const before = (await traffic.stop()).requests;
  assert.ok(before > 0);
  // From here on it is as any other: the next epoch takes over again.
  const after = here.traffic();
  installByRename(envoyPath("1.40.0"), envoy);
  epochd.signal("SIGHUP");
  await handoff(epochd, 3);
  assert.equal((await serverInfo(here.admin)).version, "1.40.0");
  assert.deepEqual((await after.stop()).failures, []);
});

Deno.test("a drained restart whose Envoy does not start: the one before is back, the command tells and exits 1", async () => {
  await using here = scene();
  const envoy = here.directory.at("envoy");
  installByRename(envoyPath("1.40.0"), envoy);
  const epochd = await here.start({ ...SHORT, envoyPath: envoy });
  installIncompatible(here, envoy, "exit 41");
  const { code, stdout, stderr } = await epochd.command("restart", "--drained", "--wait");
  assert.equal(code, 1, stdout);
  assert.match(stderr, /^refused \(child_died\): epoch 0 ended before LIVE: exit code 41$/m);
  await epochd.waitForEvent("service_gap");
  assert.deepEqual((await serverInfo(here.admin)).version, "1.40.0");
  assert.deepEqual(eventsOf(epochd, "newest_died").map(({ answer }) => answer), ["rollback"]);
});

Deno.test("SIGTERM while a drained restart drains: an ordinary end, nothing starts, the command is told", async () => {
  await using here = scene();
  const epochd = await here.start({ drainTimeMs: 3_000, parentShutdownTimeMs: 4_000 });
  const traffic = here.traffic();
  const held = traffic.hold({ chunks: 2_000, everyMs: 50 });
  await held.opened;
  const command = epochd.command("restart", "--drained", "--wait");
  await epochd.waitForEvent("drain_began");
  epochd.signal("SIGTERM");
  const { code, stderr } = await command;
  assert.equal(code, 1);
  assert.match(stderr, /refused \(stopping\)/);
  assert.equal((await epochd.exit).code, 0);
  assert.equal(eventsOf(epochd, "epoch_spawned").length, 1);
  await traffic.stop();
});

Deno.test("a drained restart on a shared base id: under the lock, as epoch 0 of a new segment, and the next handoff works", async () => {
  await using here = scene();
  const epochd = await here.start({ ...SHORT, extraArguments: ["--cross-pod"] });
  epochd.signal("SIGHUP");
  await handoff(epochd, 1, "done");
  const { code, stdout, stderr } = await epochd.command("restart", "--drained", "--wait");
  assert.deepEqual([code, stderr], [0, ""], stdout);
  assert.deepEqual([(await serverInfo(here.admin)).epoch, epochd.envoyPids().length], [0, 1]);
  const traffic = here.traffic();
  epochd.signal("SIGHUP");
  await handoff(epochd, 3, "done");
  assert.equal((await serverInfo(here.admin)).epoch, 1);
  assert.deepEqual((await traffic.stop()).failures, []);
});
