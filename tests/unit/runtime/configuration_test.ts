import assert from "node:assert/strict";
import type { ChangeDone, ChangeOutcome, ConfigRefusal } from "../../../lib/config/change.ts";
import { mergePatch } from "../../../lib/config/merge_patch.ts";
import type { Sections } from "../../../lib/config/load.ts";
import type { ChangeOptions } from "../../../lib/runtime/configuration.ts";
import { tempDir } from "../../support/tempdir.ts";
import { type ConfigScene, configScene } from "./config_scene.ts";

const person: ChangeOptions = { who: "unix socket", source: "patch" };

function patch(scene: ConfigScene, change: unknown, options: Partial<ChangeOptions> = {}): Promise<ChangeOutcome> {
  return scene.configuration.edit(
    (document) => ({ kind: "asked", sections: mergePatch(document, change) as Sections }),
    { ...person, ...options },
  );
}

function done(outcome: ChangeOutcome | undefined): ChangeDone {
  if (outcome?.kind !== "done") assert.fail(JSON.stringify(outcome));
  return outcome;
}

function refused(outcome: ChangeOutcome | undefined): ConfigRefusal {
  if (outcome?.kind !== "refused") assert.fail(JSON.stringify(outcome));
  return outcome.refusal;
}

const edge = (fields: Record<string, unknown>) => ({ services: { edge: fields } });

Deno.test("a dynamic setting applies at once, without an epoch and without the other service noticing", async () => {
  await using scene = await configScene();
  const outcome = done(await patch(scene, edge({ watchdog: "5s" })));
  assert.equal(outcome.verdict, "dynamic");
  assert.deepEqual(outcome.services, { edge: { action: "dynamic" }, core: { action: "none" } });
  assert.deepEqual(scene.fleet.done, ["use edge"]);
  assert.equal(scene.fleet.configs.get("edge")?.watchdogMs, 5_000);
});

Deno.test("log.level and log.format apply at once", async () => {
  await using scene = await configScene();
  done(await patch(scene, { log: { level: "debug", format: "json" } }));
  assert.deepEqual(scene.logs, [{ level: "debug", format: "json" }]);
  assert.deepEqual(scene.fleet.done, []);
});

Deno.test("a hot-restart setting gets a new epoch of just the service that has it, after its preflight", async () => {
  await using scene = await configScene();
  const outcome = done(await patch(scene, edge({ drain_time: "20s", watchdog: "5s" })));
  assert.equal(outcome.verdict, "hot_restart");
  assert.deepEqual(outcome.services.edge, { action: "hot_restart", request: "r-edge" });
  assert.deepEqual(scene.fleet.done, ["preflight edge", "use edge", "trigger edge api"]);
});

Deno.test("a static setting refuses the whole change, with field, values, why and what to do", async () => {
  await using scene = await configScene();
  const before = scene.text();
  const refusal = refused(await patch(scene, { ...edge({ base_id: 9, watchdog: "5s" }), log: { level: "debug" } }));
  assert.equal(refusal.name, "static_parameter");
  assert.deepEqual(refusal.fields?.map(({ field, running, asked }) => [field, running, asked]), [
    ["services.edge.base_id", 1, 9],
  ]);
  assert.match(refusal.detail, /^nothing was changed: services\.edge\.base_id is 1 and can't become 9: shared memory/);
  assert.match(refusal.fields?.[0]?.remedy ?? "", /start a new supervisor/);
  assert.deepEqual([scene.fleet.done, scene.logs], [[], []]);
  assert.equal(scene.text(), before);
});

Deno.test("what is no configuration is refused with everything that is to mend, and did you mean", async () => {
  await using scene = await configScene();
  const refusal = refused(await patch(scene, edge({ drain_tim: "5s", on_crash: "stop" })));
  assert.equal(refusal.name, "config_invalid");
  const where = refusal.problems?.map(({ where, expected }) => `${where}: ${expected}`) ?? [];
  assert.ok(
    where.includes("the request: services.edge.drain_tim: unknown field, did you mean drain_time?"),
    where.join(),
  );
  assert.ok(where.includes("the request: services.edge.on_crash: expected exit or restart"), where.join());
});

Deno.test("a configuration whose preflight fails is refused, and nothing is changed", async () => {
  await using scene = await configScene();
  scene.fleet.preflights.set("edge", { name: "bootstrap_invalid", detail: "other.yaml: no such field" });
  const before = scene.configuration.digest;
  const refusal = refused(await patch(scene, edge({ envoy_config: scene.dir.at("other.yaml") })));
  assert.deepEqual([refusal.name, refusal.service, refusal.refusal], ["preflight_failed", "edge", "bootstrap_invalid"]);
  assert.match(refusal.detail, /other\.yaml: no such field/);
  assert.deepEqual(scene.fleet.done, ["preflight edge"]);
  assert.equal(scene.configuration.digest, before);
});

Deno.test("services come and go without the others noticing", async () => {
  await using scene = await configScene();
  const core = scene.configuration.running.written.services.core!;
  const fresh = { envoy_path: core.envoy_path, envoy_config: core.envoy_config, base_id: 3, concurrency: 1 };
  const added = done(await patch(scene, { services: { extra: fresh } }));
  assert.deepEqual([added.verdict, added.services.extra?.action], ["dynamic", "add"]);
  const removed = done(await patch(scene, { services: { core: null } }));
  assert.deepEqual(removed.services, {
    edge: { action: "none" },
    extra: { action: "none" },
    core: { action: "remove" },
  });
  assert.deepEqual(scene.fleet.done, ["preflight extra", "add extra", "remove core"]);
  assert.match(scene.text(), /\n {2}extra:\n {4}envoy_path: /);
  assert.ok(!scene.text().includes("core:"));
  scene.fleet.states.set("core", "leaving");
  assert.equal(refused(await patch(scene, { services: { core: { ...fresh, base_id: 2 } } })).name, "service_leaving");
  assert.equal(refused(await patch(scene, { services: null })).name, "config_invalid");
});

Deno.test("reload and SIGHUP read the file and give every service a new epoch, changed or not", async () => {
  await using scene = await configScene();
  scene.edit("level: info", "level: debug");
  const outcome = done(await scene.configuration.reload({ who: "SIGHUP", source: "signal" }));
  assert.equal(outcome.verdict, "hot_restart");
  assert.deepEqual(outcome.changes.map(({ field }) => field), ["log.level"]);
  assert.deepEqual(scene.fleet.done, ["trigger edge signal", "trigger core signal"]);
  done(await scene.configuration.reload({ who: "unix socket", source: "reload" }));
  assert.deepEqual(scene.fleet.done.slice(2), ["trigger edge api", "trigger core api"]);
});

Deno.test("reload of a file that is wrong, or changes what is static, restarts nothing and shows in the summary", async () => {
  await using scene = await configScene();
  const good = scene.text();
  for (
    const [from, to, name] of [["base_id: 2", "base_id: 5", "static_parameter"], [
      "10s",
      "soon",
      "config_invalid",
    ]] as const
  ) {
    scene.edit(from, to);
    assert.equal(refused(await scene.configuration.reload({ who: "SIGHUP", source: "signal" })).name, name);
    assert.equal(scene.configuration.summary().refused?.name, name);
    assert.deepEqual(scene.fleet.done, []);
    Deno.writeTextFileSync(scene.path, good);
  }
  Deno.writeTextFileSync(scene.path, "services: [");
  assert.equal(refused(await scene.configuration.reload({ who: "SIGHUP", source: "signal" })).name, "config_invalid");
  Deno.writeTextFileSync(scene.path, good);
  done(await scene.configuration.reload({ who: "SIGHUP", source: "signal" }));
  assert.equal(scene.configuration.summary().refused, undefined);
  assert.deepEqual(
    scene.told.filter(({ kind }) => kind === "config_refused").length,
    3,
  );
});

Deno.test("a watched file that changed restarts just what needs it, and the same content is not tried twice", async () => {
  await using scene = await configScene();
  assert.equal(await scene.configuration.fileChanged(await digestOf(scene)), undefined, "what runs is no news");
  scene.edit("drain_time: 10s", "drain_time: 11s");
  const outcome = done(await scene.configuration.fileChanged(await digestOf(scene)));
  assert.equal(outcome.services.core?.action, "none");
  assert.deepEqual(scene.fleet.done, ["preflight edge", "use edge", "trigger edge config"]);
  scene.edit("base_id: 2", "base_id: 5");
  assert.equal(refused(await scene.configuration.fileChanged(await digestOf(scene))).name, "static_parameter");
  assert.equal(await scene.configuration.fileChanged(await digestOf(scene)), undefined);
  assert.equal(scene.configuration.summary().refused?.name, "static_parameter");
  scene.edit("base_id: 5", "base_id: 2");
  assert.equal(await scene.configuration.fileChanged(await digestOf(scene)), undefined);
  assert.equal(scene.configuration.summary().refused, undefined, "edited back to what runs");
});

async function digestOf(scene: ConfigScene): Promise<string> {
  const { sha256 } = await import("../../../lib/adapters/content.ts");
  return sha256(scene.text());
}

Deno.test("a change by the API is written back: only its place, comments and order stay", async () => {
  await using scene = await configScene();
  const before = scene.text();
  assert.ok(done(await patch(scene, edge({ drain_time: "20s" }))).persisted);
  assert.equal(scene.text(), before.replace("drain_time: 10s # as", "drain_time: 20s # as"));
  assert.equal(await scene.configuration.fileChanged(await digestOf(scene)), undefined, "its own write is no news");
  done(await patch(scene, edge({ drain_time: null })));
  assert.equal(scene.text(), before.replace(/ {4}drain_time: .*\n/, ""));
  assert.equal(scene.configuration.running.written.services.edge?.drain_time, "30s");
});

Deno.test("a change is refused where the file was edited meanwhile, or is read-only, unless it is not to be kept", async () => {
  await using scene = await configScene();
  scene.edit("# what runs here", "# somebody else's edit");
  const theirs = scene.text();
  assert.equal(refused(await patch(scene, edge({ watchdog: "5s" }))).name, "config_file_changed");
  assert.equal(scene.text(), theirs);
  done(await scene.configuration.reload({ who: "SIGHUP", source: "signal" }));
  Deno.chmodSync(scene.path, 0o444);
  const refusal = refused(await patch(scene, edge({ watchdog: "5s" })));
  assert.equal(refusal.name, "config_read_only");
  assert.match(refusal.detail, /with persist=false/);
  assert.equal(scene.configuration.running.written.services.edge?.watchdog, "3s");
  const kept = done(await patch(scene, edge({ watchdog: "5s" }), { persist: false }));
  assert.equal(kept.persisted, false);
  assert.deepEqual(scene.configuration.summary().differences, [
    { field: "services.edge.watchdog", running: "5s", file: "3s" },
  ]);
  assert.equal(scene.text(), theirs);
});

Deno.test("api.persist off keeps the file, until a change is to be kept: then the file says all that runs", async () => {
  await using scene = await configScene();
  const before = scene.text();
  done(await patch(scene, { api: { persist: false } }));
  done(await patch(scene, edge({ watchdog: "5s" })));
  assert.equal(scene.text(), before, "persistence is off from the change on that says so");
  assert.equal(scene.configuration.summary().differences?.length, 2);
  done(await patch(scene, edge({ live_timeout: "9s" }), { persist: true }));
  assert.equal(scene.configuration.summary().differences, undefined);
  for (const part of ["watchdog: 5s", "live_timeout: 9s", "persist: false"]) {
    assert.ok(scene.text().includes(part), part);
  }
});

Deno.test("without a file a change is refused unless it is not to be kept, and reload starts new epochs", async () => {
  await using scene = await configScene({ file: false });
  const change = { services: { envoy: { watchdog: "5s" } } };
  assert.equal(refused(await patch(scene, change)).name, "config_no_file");
  done(await patch(scene, change, { persist: false }));
  assert.equal(scene.fleet.configs.get("envoy")?.watchdogMs, 5_000);
  done(await scene.configuration.reload({ who: "unix socket", source: "reload" }));
  assert.deepEqual(scene.fleet.done, ["use envoy", "trigger envoy api"]);
  assert.equal(scene.configuration.running.written.services.envoy?.watchdog, "5s");
});

Deno.test("what a flag sets can't be changed by the API, and a file that says otherwise is overruled as at start", async () => {
  await using scene = await configScene({ flags: { "log-level": "warn" } });
  const refusal = refused(await patch(scene, { log: { level: "debug" } }));
  assert.deepEqual([refusal.name, refusal.fields?.[0]?.field], ["static_parameter", "log.level"]);
  assert.match(refusal.detail, /--log-level of this supervisor sets it and wins/);
  scene.edit("level: info", "level: error");
  done(await scene.configuration.reload({ who: "SIGHUP", source: "signal" }));
  assert.equal(scene.configuration.running.config.log.level, "warn");
  done(await patch(scene, edge({ watchdog: "5s" })));
});

Deno.test("dry_run checks everything, says what would happen with the connections affected, and changes nothing", async () => {
  await using scene = await configScene();
  const before = [scene.text(), scene.configuration.digest];
  const outcome = done(await patch(scene, edge({ drain_time: "20s" }), { dryRun: true }));
  assert.deepEqual([outcome.dryRun, outcome.verdict, outcome.persisted], [true, "hot_restart", false]);
  assert.deepEqual(outcome.services.edge, { action: "hot_restart", connections: 7 });
  assert.deepEqual(outcome.services.core, { action: "none" });
  const all = done(await scene.configuration.reload({ ...person, source: "reload", dryRun: true }));
  assert.deepEqual(all.services.core, { action: "hot_restart", connections: 7 });
  assert.deepEqual([scene.text(), scene.configuration.digest], before);
  assert.deepEqual(scene.fleet.done, ["preflight edge"]);
  assert.equal((await scene.configuration.history()).length, 1);
  assert.deepEqual(scene.told, []);
});

Deno.test("history says who, why and what; rollback goes back to any, by number, digest or to the one before", async () => {
  await using scene = await configScene();
  const { configuration } = scene;
  const first = configuration.digest;
  done(await patch(scene, edge({ drain_time: "20s" })));
  const second = configuration.digest;
  done(await patch(scene, { log: { level: "debug" } }, { who: "key ci from 10.0.0.1" }));
  const entries = await configuration.history();
  assert.deepEqual(entries.map(({ id, who, source, why }) => [id, who, source, why]), [
    [3, "key ci from 10.0.0.1", "patch", "log.level info to debug"],
    [2, "unix socket", "patch", "services.edge.drain_time 10s to 20s"],
    [1, "epochd run", "start", "start"],
  ]);
  const back: ChangeOptions = { who: "unix socket", source: "rollback" };
  done(await configuration.rollback(undefined, back));
  assert.equal(configuration.digest, second);
  done(await configuration.rollback("1", back));
  assert.equal(configuration.digest, first);
  assert.match(scene.text(), /drain_time: 10s # as the fleet has it/);
  done(await configuration.rollback(second.slice(0, 10), back));
  assert.equal(configuration.digest, second);
  assert.match((await configuration.history())[0]?.why ?? "", /^back to \d, services\.edge\.drain_time 10s to 20s$/);
  assert.equal(refused(await configuration.rollback("99", back)).name, "history_unknown");
});

Deno.test("rollback obeys the rules of every change: what is static refuses it as a whole", async () => {
  await using dir = tempDir();
  const before = await configScene({ dir });
  done(await patch(before, { log: { level: "debug" } }));
  Deno.writeTextFileSync(dir.at("epochd.yaml"), before.text().replace("base_id: 2", "base_id: 22"));
  const text = before.text();
  const after = await configScene({ dir, text: () => text });
  const refusal = refused(await after.configuration.rollback("1", { who: "unix socket", source: "rollback" }));
  assert.equal(refusal.name, "static_parameter");
});

Deno.test("changes come one at a time, each on what the one before made of it", async () => {
  await using scene = await configScene();
  const outcomes = await Promise.all(
    Array.from(
      { length: 10 },
      (_, i) => patch(scene, edge({ retry_limit: i, [i % 2 ? "watchdog" : "debounce"]: `${i}s` })),
    ),
  );
  // Zero and one seconds are too little or too much for some: those are refused, and change nothing.
  assert.ok(outcomes.some(({ kind }) => kind === "done"));
  const written = scene.configuration.running.written.services.edge!;
  const last = outcomes.findLastIndex(({ kind }) => kind === "done");
  assert.equal(written.retry_limit, last);
  assert.match(scene.text(), new RegExp(`retry_limit: ${last}\\n`));
});

Deno.test("a condition on the state refuses a change that was made for another one", async () => {
  await using scene = await configScene();
  const outcome = await patch(scene, edge({ watchdog: "5s" }), { ifMatch: () => false });
  assert.equal(refused(outcome).name, "etag_differs");
  const { digest } = scene.configuration;
  done(await patch(scene, edge({ watchdog: "5s" }), { ifMatch: (runs) => runs === digest }));
});

Deno.test("a supervisor that stops takes no configuration any more", async () => {
  await using scene = await configScene();
  scene.stopping = true;
  assert.equal(refused(await patch(scene, edge({ watchdog: "5s" }))).name, "stopping");
});

Deno.test("a service that had ended is started again by reload, and by a change of its own", async () => {
  await using scene = await configScene();
  scene.fleet.states.set("core", "ended");
  done(await patch(scene, edge({ watchdog: "5s" })));
  assert.deepEqual(scene.fleet.done, ["use edge"]);
  done(await patch(scene, { services: { core: { watchdog: "6s" } } }));
  assert.deepEqual(scene.fleet.done.slice(1), ["add core"]);
});
