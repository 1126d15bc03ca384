// Owns: configurations that change under real Envoys with traffic: file, signal, API; one service never notices another's.
import assert from "node:assert/strict";
import { isAlive } from "../support/procfs.ts";
import { until, within } from "../support/until.ts";
import { api, configStage, type ServiceOnStage } from "./config_scene.ts";
import { assertUnhurt, eventsOf } from "./scene.ts";

/** The one Envoy of a service, which must be alone. */
function only(service: ServiceOnStage): number {
  const pids = service.pids();
  assert.equal(pids.length, 1, `${service.name}: ${pids.join(", ")}`);
  return pids[0]!;
}

async function settled(service: ServiceOnStage): Promise<number> {
  await until(`one Envoy of ${service.name} is left`, () => service.pids().length === 1);
  return only(service);
}

Deno.test("PATCH of one service under traffic: a new epoch of that one, the other keeps its process, nothing failed", async () => {
  await using stage = configStage();
  const epochd = await stage.start();
  const [edge, core] = [stage.traffic(stage.edge), stage.traffic(stage.core)];
  const before = [only(stage.edge), only(stage.core)];
  const dynamic = await api(epochd, "PATCH", "/v1/config/services/edge", { watchdog: "5s" });
  assert.deepEqual([dynamic.status, dynamic.body.verdict], [200, "dynamic"]);
  assert.deepEqual([only(stage.edge), only(stage.core)], before);
  const dry = await api(epochd, "PATCH", "/v1/config/services/edge?dry_run=true", { parent_shutdown_time: "3s" });
  assert.equal(dry.body.services.edge.action, "hot_restart");
  assert.ok(dry.body.services.edge.connections > 0, JSON.stringify(dry.body));
  assert.deepEqual([only(stage.edge), only(stage.core)], before);
  const hot = await api(epochd, "PATCH", "/v1/config/services/edge?wait=drained", { parent_shutdown_time: "3s" });
  assert.deepEqual([hot.status, hot.body.services.edge.outcome], [200, "drained"]);
  assert.notEqual(await settled(stage.edge), before[0]);
  assert.equal(only(stage.core), before[1]);
  const args = Deno.readTextFileSync(`/proc/${only(stage.edge)}/cmdline`).split("\0");
  assert.equal(args[args.indexOf("--parent-shutdown-time-s") + 1], "3");
  assert.match(stage.text(), /^# two services\n[^]*parent_shutdown_time: 3s\n[^]*watchdog: 5s\n/);
  const fixed = await api(epochd, "PATCH", "/v1/config/services/edge", { base_id: 7, drain_time: "2s" });
  assert.deepEqual([fixed.status, fixed.body.fields[0].field], [409, "services.edge.base_id"]);
  assertUnhurt(await edge.stop());
  assertUnhurt(await core.stop());
});

Deno.test("a service is added and removed by the API under traffic, and the others keep their processes", async () => {
  await using stage = configStage();
  const epochd = await stage.start();
  const traffic = [stage.traffic(stage.edge), stage.traffic(stage.core)];
  const before = [only(stage.edge), only(stage.core)];
  const added = await api(epochd, "PATCH", "/v1/config?wait=live", {
    services: { extra: stage.fieldsOf(stage.extra) },
  });
  assert.equal(added.status, 200, JSON.stringify(added.body));
  assert.deepEqual([added.body.verdict, added.body.services.extra.outcome], ["dynamic", "live"]);
  only(stage.extra);
  await until("it is ready", async () => (await api(epochd, "GET", "/readyz")).status === 200);
  assert.ok(Deno.statSync(stage.directory.at("ready-extra")).isFile);
  const extra = stage.traffic(stage.extra);
  await until("its traffic flows", () => extra.snapshot().requests > 20);
  assertUnhurt(await extra.stop());
  const removed = await api(epochd, "PATCH", "/v1/config", { services: { extra: null } });
  assert.deepEqual([removed.status, removed.body.services.extra.action], [200, "remove"]);
  await epochd.waitForEvent("ended", ({ service }) => service === "extra");
  await until("its Envoy is gone", () => stage.extra.pids().length === 0);
  assert.equal((await api(epochd, "GET", "/v1/services/extra/epochs")).status, 404);
  assert.deepEqual([only(stage.edge), only(stage.core)], before);
  for (const one of traffic) assertUnhurt(await one.stop());
  assert.ok(isAlive(epochd.pid));
  epochd.signal("SIGTERM");
  assert.equal((await within("the end", epochd.exit, 15_000)).code, 0);
});

Deno.test("a service that is added and can't start is refused before anything changes, or ends alone", async () => {
  await using stage = configStage();
  const epochd = await stage.start();
  const before = [only(stage.edge), only(stage.core), stage.text()];
  stage.directory.write(
    "extra.yaml",
    "static_resources: {listeners: [{nonsense: 1}]}\nadmin: {address: {pipe: {path: /x}}}",
  );
  const services = { extra: stage.fieldsOf(stage.extra) };
  const refused = await api(epochd, "PATCH", "/v1/config", { services });
  assert.deepEqual([refused.status, refused.body.type], [409, "urn:epochd:problem:preflight_failed"]);
  assert.match(refused.body.detail, /service extra would not start: .*nonsense/);
  assert.deepEqual([only(stage.edge), only(stage.core), stage.text()], before);
  // Its port is another service's admin: valid, and it dies at its start.
  stage.extra.edit("first");
  const blocker = Deno.listen({ hostname: "127.0.0.1", port: stage.extra.port });
  const taken = await api(epochd, "PATCH", "/v1/config?wait=live&persist=false", { services });
  assert.deepEqual([taken.status, taken.body.type], [409, "urn:epochd:problem:handoff_failed"]);
  blocker.close();
  const ready = await api(epochd, "GET", "/readyz");
  assert.equal(ready.status, 503);
  assert.match(ready.body.detail, /^not ready: extra \(ended/);
  assert.deepEqual([only(stage.edge), only(stage.core)], before.slice(0, 2));
  epochd.signal("SIGHUP");
  await epochd.waitForEvent("config_applied", ({ source }) => source === "signal");
  await until("what the file does not have is gone", async () => (await api(epochd, "GET", "/readyz")).status === 200);
});

Deno.test("SIGHUP, reload and a watched epochd.yaml obey one set of rules: static and broken files restart nothing", async () => {
  await using stage = configStage();
  const epochd = await stage.start();
  const traffic = [stage.traffic(stage.edge), stage.traffic(stage.core)];
  const [edge, core] = [only(stage.edge), only(stage.core)];
  stage.edit(`base_id: ${stage.core.baseId}`, `base_id: ${stage.extra.baseId}`);
  await epochd.waitForEvent(
    "config_refused",
    ({ source, refusal }) => source === "file" && refusal === "static_parameter",
  );
  epochd.signal("SIGHUP");
  await epochd.waitForEvent("config_refused", ({ source }) => source === "signal");
  const reload = await api(epochd, "POST", "/v1/config/reload");
  assert.deepEqual([reload.status, reload.body.fields[0].field], [409, "services.core.base_id"]);
  const status = await api(epochd, "GET", "/v1/status");
  assert.equal(status.body.config.refused.name, "static_parameter");
  assert.deepEqual([only(stage.edge), only(stage.core)], [edge, core]);
  stage.edit(`base_id: ${stage.extra.baseId}`, `base_id: ${stage.core.baseId}`);
  // What is good again, and what runs: the watch has nothing to do but take the news back.
  stage.edit(/(core:[^]*?)drain_time: 1s/, "$1drain_time: 1s\n    envoy_args: [--component-log-level, upstream:info]");
  await epochd.waitForEvent("handoff_done", ({ service }) => service === "core");
  assert.equal(only(stage.edge), edge);
  assert.notEqual(await settled(stage.core), core);
  const [, coreNow] = [only(stage.edge), only(stage.core)];
  epochd.signal("SIGHUP");
  await epochd.waitForEvent("handoff_done", ({ service, handoff }) => service === "core" && handoff === 2);
  await epochd.waitForEvent("handoff_done", ({ service, handoff }) => service === "edge" && handoff === 1);
  assert.notEqual(await settled(stage.edge), edge);
  assert.notEqual(await settled(stage.core), coreNow);
  for (const one of traffic) assertUnhurt(await one.stop());
  assert.equal((await api(epochd, "GET", "/v1/status")).body.config.refused, undefined);
});

Deno.test("another bootstrap by the API is watched from then on, the one before no more", async () => {
  await using stage = configStage();
  const epochd = await stage.start();
  const second = stage.directory.at("second.yaml");
  Deno.copyFileSync(stage.edge.bootstrapPath, second);
  const changed = await api(epochd, "PATCH", "/v1/config/services/edge?wait=drained", {
    envoy_config: second,
    min_gap: "0s",
  });
  assert.equal(changed.status, 200, JSON.stringify(changed.body));
  stage.edge.edit("nobody looks");
  Deno.writeTextFileSync(second, Deno.readTextFileSync(second).replaceAll("first", "second"));
  await epochd.waitForEvent("handoff_done", ({ service, handoff }) => service === "edge" && handoff === 2);
  assert.deepEqual(eventsOf(epochd, "handoff_began").map(({ source }) => source), ["api", "bootstrap"]);
  const off = await api(epochd, "PATCH", "/v1/config/services/edge", { watch_config: false });
  assert.equal(off.status, 200);
  assert.deepEqual((await api(epochd, "GET", "/v1/status")).body.services.edge.watch, []);
  Deno.writeTextFileSync(second, Deno.readTextFileSync(second).replaceAll("second", "third"));
  const restarted = await api(epochd, "POST", "/v1/services/edge/restart?wait=drained");
  assert.equal(restarted.status, 200);
  assert.equal(eventsOf(epochd, "handoff_began").length, 3, "what is not watched starts nothing, before or after");
});

Deno.test("log.level and log.format change at once, and a rollback brings both and the epoch's flags back", async () => {
  await using stage = configStage();
  // Without --log-format, which would win.
  const epochd = await stage.start();
  const level = await epochd.command("config", "set", "log.level=debug", "services.edge.drain_time=2s");
  assert.equal(level.code, 1, "2 s of drain within 2 s of parent shutdown must be refused");
  assert.match(level.stderr, /expected more than/);
  const set = await epochd.command(
    ...["config", "set", "log.level=debug", "services.edge.parent_shutdown_time=3s", "--wait"],
  );
  assert.deepEqual([set.code, set.stderr], [0, ""]);
  const back = await epochd.command("rollback", "--wait", "--json");
  assert.equal(back.code, 0, back.stderr);
  assert.equal(JSON.parse(back.stdout).services.edge.outcome, "drained");
  const args = Deno.readTextFileSync(`/proc/${await settled(stage.edge)}/cmdline`).split("\0");
  assert.equal(args[args.indexOf("--parent-shutdown-time-s") + 1], "2");
  assert.match(stage.text(), /level: info/);
  const list = await epochd.command("rollback", "--list");
  assert.equal(list.stdout.trimEnd().split("\n").length, 4);
});
