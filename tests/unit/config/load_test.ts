import assert from "node:assert/strict";
import type { FlagValues } from "../../../lib/config/flags.ts";
import { type Environment, loadRunConfig } from "../../../lib/config/load.ts";
import { problemLine } from "../../../lib/config/problem.ts";
import type { RunConfig } from "../../../lib/config/run_config.ts";
import { type TempDir, tempDir } from "../../support/tempdir.ts";

function envoyIn(dir: TempDir): { readonly bootstrap: string; readonly executable: string } {
  const executable = dir.write("bin/envoy", "#!/bin/false\n");
  Deno.chmodSync(executable, 0o755);
  return { bootstrap: dir.write("envoy.yaml", "{}\n"), executable };
}

function flagsIn(dir: TempDir, flags: FlagValues = {}): FlagValues {
  const { bootstrap, executable } = envoyIn(dir);
  return { "envoy-config": bootstrap, "envoy-path": executable, ...flags };
}

async function loaded(flags: FlagValues, environment: Environment = {}): Promise<RunConfig> {
  const result = await loadRunConfig(flags, environment);
  if (result.kind === "refused") assert.fail(result.problems.map(problemLine).join("\n"));
  return result.config;
}

async function problems(flags: FlagValues, environment: Environment = {}): Promise<readonly string[]> {
  const result = await loadRunConfig(flags, environment);
  return result.kind === "refused" ? result.problems.map(problemLine) : assert.fail("it was taken");
}

Deno.test("load takes one service from flags alone, without reading a file", async () => {
  await using dir = tempDir();
  const config = await loaded(flagsIn(dir, { "drain-time": "2s", "base-id": "7", "watch-config": false }));
  assert.deepEqual(Object.keys(config.services), ["envoy"]);
  assert.equal(config.services.envoy?.drainTimeMs, 2_000);
  assert.equal(config.services.envoy?.baseId, 7);
  assert.equal(config.services.envoy?.watchConfig, false);
  assert.equal("configPath" in config, false);
});

Deno.test("load lets flags win over the file and keeps the rest of it", async () => {
  await using dir = tempDir();
  const { bootstrap, executable } = envoyIn(dir);
  const file = dir.write(
    "epochd.yaml",
    `services:
  edge: {envoy_config: ${bootstrap}, envoy_path: ${executable}, drain_time: 2s, base_id: 4}
api: {socket: /run/a.sock}
log: {level: warn, format: json}
`,
  );
  const config = await loaded({ config: file, "drain-time": "3s", "log-level": "debug" });
  assert.equal(config.services.edge?.drainTimeMs, 3_000);
  assert.equal(config.services.edge?.baseId, 4);
  assert.deepEqual(config.log, { level: "debug", format: "json" });
  assert.equal(config.apiSocket, "/run/a.sock");
  assert.equal(config.configPath, file);
});

Deno.test("load describes a service by flags where the file has none", async () => {
  await using dir = tempDir();
  const file = dir.write("epochd.yaml", "log: {level: error}\n");
  const config = await loaded(flagsIn(dir, { config: file }));
  assert.deepEqual(Object.keys(config.services), ["envoy"]);
  assert.equal(config.log.level, "error");
});

Deno.test("load takes the API socket from flag, environment, file and default, in this order", async () => {
  await using dir = tempDir();
  const file = dir.write("epochd.yaml", "api: {socket: /file.sock}\n");
  const environment = { EPOCHD_API_SOCKET: "/environment.sock" };
  const flags = flagsIn(dir);
  assert.equal(
    (await loaded({ ...flags, config: file, "api-socket": "/flag.sock" }, environment)).apiSocket,
    "/flag.sock",
  );
  assert.equal((await loaded({ ...flags, config: file }, environment)).apiSocket, "/environment.sock");
  assert.equal((await loaded({ ...flags, config: file })).apiSocket, "/file.sock");
  assert.equal((await loaded(flags, { EPOCHD_API_SOCKET: "" })).apiSocket, "/run/epochd/api.sock");
});

Deno.test("load refuses an API socket whose path no unix socket can have", async () => {
  await using dir = tempDir();
  const path = `/${"d".repeat(107)}/api.sock`;
  const [flag] = await problems(flagsIn(dir, { "api-socket": path }));
  assert.match(flag ?? "", /^--api-socket \/d+.*: too long for a unix socket by \d+ bytes/);
  const [environment] = await problems(flagsIn(dir), { EPOCHD_API_SOCKET: path });
  assert.match(environment ?? "", /^EPOCHD_API_SOCKET /);
});

Deno.test("load looks a bare name up in PATH", async () => {
  await using dir = tempDir();
  const { bootstrap, executable } = envoyIn(dir);
  const environment = { PATH: `/nowhere:${dir.at("bin")}` };
  assert.equal((await loaded({ "envoy-config": bootstrap }, environment)).services.envoy?.envoyPath, executable);
  assert.deepEqual(await problems({ "envoy-config": bootstrap }, { PATH: "/nowhere" }), [
    "--envoy-path envoy: is not in PATH, expected Envoy's executable",
  ]);
});

Deno.test("load names flag, value and remedy for every wrong flag at once", async () => {
  await using dir = tempDir();
  const wrong = flagsIn(dir, {
    "drain-time": "500ms",
    "parent-shutdown-time": "1500ms",
    "base-id": "-1",
    concurrency: "many",
    debounce: "6s",
    watchdog: "0",
    poll: "10",
    "on-crash": "die",
    "min-gap": "soon",
    "crash-budget": "5",
    rollback: "on",
    "admin-address": "9901",
    "log-level": "loud",
  });
  assert.deepEqual(await problems(wrong), [
    "--base-id -1: expected a whole number from 0 to 429496728",
    "--concurrency many: expected a whole number from 1 to 4096",
    "--drain-time 500ms: expected at least 1s (Envoy counts this in whole seconds)",
    "--parent-shutdown-time 1500ms: expected whole seconds, as Envoy counts it",
    "--admin-address 9901: expected an address such as 127.0.0.1:9901, [::1]:9901 or unix:/run/envoy/admin.sock",
    "--debounce 6s: expected at most 5s (a change never waits longer than that)",
    "--poll 10: expected a duration such as 500ms, 10s or 1m30s",
    "--watchdog 0: expected at least 100ms",
    "--min-gap soon: expected `parent_shutdown_time` or a duration such as 10s",
    "--on-crash die: expected exit or restart",
    "--crash-budget 5: expected a number of restarts and a time, such as `5 in 10m`",
    "--rollback on: expected `off` or `on-crash-within` and a duration, such as `on-crash-within 30s`",
    "--log-level loud: expected debug, info, warn or error",
  ]);
});

Deno.test("load refuses a parent shutdown that is not after the drain", async () => {
  await using dir = tempDir();
  for (const shutdown of ["10s", "9s"]) {
    assert.deepEqual(await problems(flagsIn(dir, { "drain-time": "10s", "parent-shutdown-time": shutdown })), [
      `--parent-shutdown-time ${shutdown}: expected more than --drain-time, which is 10s: ` +
      "a predecessor would end before it has drained",
    ]);
  }
});

Deno.test("load says which bootstrap is missing, absent or no file", async () => {
  await using dir = tempDir();
  const { executable } = envoyIn(dir);
  const flags = { "envoy-path": executable };
  assert.deepEqual(await problems(flags), ["--envoy-config: missing (Envoy's bootstrap, YAML or JSON)"]);
  for (
    const [path, wrong] of [[dir.at("none.yaml"), "does not exist"], [dir.path, "is a directory"]] as const
  ) {
    assert.deepEqual(await problems({ ...flags, "envoy-config": path }), [
      `--envoy-config ${path}: ${wrong}, expected Envoy's bootstrap file`,
    ]);
  }
});

Deno.test("load says which executable is absent, no file or not executable", async () => {
  await using dir = tempDir();
  const { bootstrap } = envoyIn(dir);
  const cases = [
    [dir.at("none"), "does not exist"],
    [dir.path, "is a directory"],
    [bootstrap, "is not executable"],
  ] as const;
  for (const [path, wrong] of cases) {
    assert.deepEqual(await problems({ "envoy-config": bootstrap, "envoy-path": path }), [
      `--envoy-path ${path}: ${wrong}, expected Envoy's executable`,
    ]);
  }
});

Deno.test("load refuses arguments that belong to epochd or are written as one", async () => {
  await using dir = tempDir();
  const [reserved] = await problems(flagsIn(dir, { "envoy-arg": ["--base-id", "3"] }));
  assert.match(reserved ?? "", /^--envoy-arg "--base-id 3": expected .*--base-id/);
  const [joined] = await problems(flagsIn(dir, { "envoy-arg": ["--foo=bar"] }));
  assert.match(joined ?? "", /^--envoy-arg --foo=bar: expected .*--envoy-arg=--foo --envoy-arg=bar/);
  const config = await loaded(flagsIn(dir, { "envoy-arg": ["--component-log-level", "upstream:debug"] }));
  assert.deepEqual(config.services.envoy?.envoyArgs, ["--component-log-level", "upstream:debug"]);
});

Deno.test("load names file, field, value and what was meant for every wrong field at once", async () => {
  await using dir = tempDir();
  const { bootstrap, executable } = envoyIn(dir);
  const file = dir.write(
    "epochd.yaml",
    `services:
  edge: {envoy_config: ${bootstrap}, envoy_path: ${executable}, drain_tim: 2s, drain_time: 10}
  core: {base_id: "1"}
api: {sockt: /x}
logs: {}
`,
  );
  const found = await problems({ config: file });
  assert.deepEqual(found.toSorted(), [
    `${file}: api.sockt: unknown field, did you mean socket?`,
    `${file}: logs: unknown field, did you mean log?`,
    `${file}: services.core.base_id 1: expected a whole number from 0 to 429496728`,
    `${file}: services.core.envoy_config: missing (Envoy's bootstrap, YAML or JSON)`,
    `${file}: services.edge.drain_tim: unknown field, did you mean drain_time?`,
    `${file}: services.edge.drain_time 10: expected a duration such as 500ms, 10s or 1m30s`,
  ]);
});

Deno.test("load refuses YAML that can't be parsed in one line, however much is wrong with it", async () => {
  await using dir = tempDir();
  const torn = dir.write("torn.yaml", "services: {\n  a: [\n  b: ]\n&\n");
  const [first, ...more] = await problems({ config: torn });
  assert.deepEqual(more, []);
  assert.match(first!, /torn\.yaml: .* at line \d+, column \d+ \(the first of \d+ faults\)$/);
  const deep = dir.write("deep.yaml", "[".repeat(20_000));
  assert.match((await problems({ config: deep })).join(), /deep\.yaml: is nested too deep/);
});

Deno.test("load refuses flags of a service where the file has several", async () => {
  await using dir = tempDir();
  const { bootstrap, executable } = envoyIn(dir);
  const service = (baseId: number) => `{envoy_config: ${bootstrap}, envoy_path: ${executable}, base_id: ${baseId}}`;
  const file = dir.write("epochd.yaml", `services:\n  a: ${service(1)}\n  b: ${service(2)}\n`);
  assert.deepEqual(await problems({ config: file, "drain-time": "2s" }), [
    `--drain-time 2s: ${file} describes 2 services, expected services.NAME.drain_time there`,
  ]);
  const config = await loaded({ config: file, "log-format": "json" });
  assert.deepEqual(Object.keys(config.services), ["a", "b"]);
  assert.notEqual(config.services.a?.stateDir, config.services.b?.stateDir);
});

Deno.test("load refuses two services on one base id, marker or state directory, and odd names", async () => {
  await using dir = tempDir();
  const { bootstrap, executable } = envoyIn(dir);
  const same = `{envoy_config: ${bootstrap}, envoy_path: ${executable}, ready_marker: /r, state_dir: /s}`;
  const file = dir.write("epochd.yaml", `services:\n  a: ${same}\n  b: ${same}\n  "B c": ${same}\n`);
  const found = await problems({ config: file });
  for (const field of ["base_id 0", "ready_marker /r", "state_dir /s"]) {
    assert.ok(found.includes(`${file}: services.b.${field}: expected another one, service a has it already`), field);
  }
  assert.ok(found.some((line) => line.startsWith(`${file}: services.B c: expected a name`)), found.join("\n"));
});

Deno.test("load refuses two services on one state or slots directory, however it is written", async () => {
  await using dir = tempDir();
  const { bootstrap, executable } = envoyIn(dir);
  const service = (id: number, more: string) =>
    `{envoy_config: ${bootstrap}, envoy_path: ${executable}, ready_marker: /r${id}, base_id: ${id}, ${more}}`;
  const a = service(1, "slots_dir: /x/slots, state_dir: /s");
  const b = service(2, "slots_dir: /x/y/../slots/, state_dir: /s/");
  const file = dir.write("epochd.yaml", `services:\n  a: ${a}\n  b: ${b}\n`);
  const found = await problems({ config: file });
  for (const field of ["slots_dir /x/y/../slots/", "state_dir /s/"]) {
    assert.ok(found.includes(`${file}: services.b.${field}: expected another one, service a has it already`), field);
  }
});

Deno.test("load refuses a file that is absent, a directory, no YAML, no mapping, or empty of services", async () => {
  await using dir = tempDir();
  assert.deepEqual(await problems({ config: dir.at("none.yaml") }), [
    `--config ${dir.at("none.yaml")}: does not exist`,
  ]);
  assert.deepEqual(await problems({ config: dir.path }), [
    `--config ${dir.path}: is a directory, expected a file`,
  ]);
  const broken = dir.write("broken.yaml", "services: {a: [}\n");
  assert.match(
    (await problems({ config: broken }))[0] ?? "",
    /broken\.yaml: .* at line 1, column \d+ \(the first of 2 faults\)$/,
  );
  const twice = dir.write("twice.yaml", "log: {}\nlog: {}\n");
  assert.match((await problems({ config: twice }))[0] ?? "", /twice\.yaml: Map keys must be unique at line 2/);
  const list = dir.write("list.yaml", "- a\n");
  assert.deepEqual(await problems({ config: list }), [
    `--config ${list}: expected the sections services, api and log`,
  ]);
  const text = dir.write("services.yaml", "services: many\n");
  assert.deepEqual(await problems({ config: text }), [
    `${text}: services many: expected services, each a name with its fields`,
  ]);
  const nothing = dir.write("nothing.yaml", "# nothing\n");
  assert.deepEqual(await problems({ config: nothing }), [
    `${nothing}: services: no service is described, expected at least one`,
  ]);
});

Deno.test("load refuses a YAML of aliases that grows without bound", async () => {
  await using dir = tempDir();
  const names = Array.from("abcdefghij");
  const lines = names.map((name, at) =>
    `${name}: &${name} [${Array(9).fill(at === 0 ? "x" : `*${names[at - 1]}`).join(", ")}]`
  );
  const file = dir.write("bomb.yaml", `${lines.join("\n")}\n`);
  assert.match((await problems({ config: file }))[0] ?? "", /bomb\.yaml: .*alias/i);
});
