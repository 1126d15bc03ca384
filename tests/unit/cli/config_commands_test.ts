import assert from "node:assert/strict";
import { main } from "../../../lib/cli/main.ts";
import { parseKeys } from "../../../lib/api/keys.ts";
import { tempDir } from "../../support/tempdir.ts";
import { FakeControl, handoffFacts } from "../api/fake_control.ts";
import { serve, type Serving } from "../api/serving.ts";
import { twoServices } from "../runtime/config_scene.ts";
import { FakeTerminal } from "./fake_terminal.ts";

async function epochd(...args: readonly string[]) {
  const terminal = new FakeTerminal();
  const code = await main(args, terminal);
  return { code, stdout: terminal.stdout, stderr: terminal.stderr };
}

function asker(api: Serving) {
  return (...args: readonly string[]) => epochd(...args, "--api-socket", api.path);
}

async function serveBoth(): Promise<Serving> {
  const control = new FakeControl();
  control.services = { edge: control.services.edge!, core: control.services.edge! };
  control.onTrigger = ({ request, service }) => {
    control.happen(handoffFacts(request).accepted, service);
    control.happen(handoffFacts(request).live, service);
  };
  return await serve({}, control);
}

Deno.test("config get shows all, a section, or a value, as YAML or JSON; a typo gets a hint", async () => {
  await using api = await serve();
  const ask = asker(api);
  const all = await ask("config", "get");
  assert.equal(all.code, 0);
  assert.match(all.stdout, /^services:\n {2}edge:\n/);
  assert.equal((await ask("config", "get", "services.edge.drain_time")).stdout, "10s\n");
  assert.equal((await ask("config", "get", "services.edge.drain_time", "--json")).stdout, '"10s"\n');
  assert.equal(JSON.parse((await ask("config", "get", "services", "--json")).stdout).core.base_id, 2);
  const typo = await ask("config", "get", "services.edge.drain_tim");
  assert.deepEqual([typo.code, typo.stdout], [2, ""]);
  assert.match(typo.stderr, /did you mean services\.edge\.drain_time\?/);
});

Deno.test("config set changes fields of several kinds, and FIELD= gives one its default", async () => {
  await using api = await serveBoth();
  const ask = asker(api);
  const set = await ask(
    ...["config", "set", "services.edge.watchdog=5s", "services.edge.retry_limit=7", "log.level=debug"],
  );
  assert.deepEqual([set.code, set.stderr], [0, ""]);
  assert.match(set.stdout, /^taken \(dynamic\)\n/);
  assert.match(set.stdout, /\n {2}services\.edge\.watchdog: 3s -> 5s \(dynamic\)\n/);
  assert.match(set.stdout, /\n {2}edge takes it at once\n$/);
  const list = await ask("config", "set", 'services.edge.envoy_args=["--log-level","debug"]', "--wait=live", "--json");
  assert.equal(JSON.parse(list.stdout).services.edge.outcome, "live");
  const unset = await ask("config", "set", "services.edge.watchdog=");
  assert.match(unset.stdout, /watchdog: 5s -> 3s/);
  assert.equal((await ask("config", "set", "log.level=debug")).stdout, "nothing to do: this is what runs\n");
  const kept = await ask("config", "set", "log.level=warn", "--no-persist");
  assert.match(kept.stdout, /^taken \(dynamic\), not in epochd\.yaml/);
});

Deno.test("config set refused exits 1 and says why, for programs too; misuse exits 2", async () => {
  await using api = await serve();
  const ask = asker(api);
  const fixed = await ask("config", "set", "services.edge.base_id=9", "--json");
  assert.equal(fixed.code, 1);
  assert.equal(JSON.parse(fixed.stdout).type, "urn:epochd:problem:static_parameter");
  assert.match(fixed.stderr, /^error: refused \(static parameter\): nothing was changed: services\.edge\.base_id is 1/);
  assert.match((await ask("config", "set", "services.edge.drain_tim=9s")).stderr, /did you mean drain_time\?/);
  for (const text of ["drain_time", "=5", "a..b=5"]) assert.equal((await ask("config", "set", text)).code, 2, text);
  assert.equal((await ask("config", "set")).code, 2);
  assert.equal((await ask("config", "set", "log.level=debug", "--wait=soon")).code, 2);
});

Deno.test("--dry-run says what would happen, with the connections affected", async () => {
  await using api = await serve();
  const { code, stdout } = await asker(api)("config", "set", "services.edge.drain_time=20s", "--dry-run");
  assert.equal(code, 0);
  assert.match(stdout, /^would be taken \(hot restart\), nothing was changed\n/);
  assert.match(stdout, /\n {2}edge gets a new epoch, 7 connections open\n/);
  assert.deepEqual(api.control.asked, []);
});

Deno.test("config diff exits 1 where the file, or another one, says something else", async () => {
  await using api = await serve();
  const ask = asker(api);
  assert.deepEqual(await ask("config", "diff"), { code: 0, stdout: "", stderr: "" });
  api.scene.edit("drain_time: 10s", "drain_time: 12s");
  const changed = await ask("config", "diff");
  assert.deepEqual([changed.code, changed.stdout], [1, "services.edge.drain_time: 10s -> 12s (hot-restart)\n"]);
  const other = api.scene.dir.write("other-epochd.yaml", api.scene.text().replace(/ {2}core:[^]*?(?=log:)/, ""));
  assert.match((await ask("config", "diff", other)).stdout, /services\.core: removed\n$/);
  assert.equal((await ask("config", "diff", api.scene.dir.at("none.yaml"))).code, 2);
  assert.deepEqual(api.scene.fleet.done.filter((text) => !text.startsWith("preflight")), []);
});

Deno.test("config schema and config validate work without a supervisor", async () => {
  const schema = JSON.parse((await epochd("config", "schema")).stdout);
  assert.equal(schema.properties.log.properties.level["x-lifecycle"], "dynamic");
  await using dir = tempDir();
  const envoy = dir.write("envoy", "#!/bin/false\n");
  Deno.chmodSync(envoy, 0o755);
  const text = twoServices({ envoy, bootstrap: dir.write("envoy.yaml", "{}"), dir: dir.path });
  const good = dir.write("good.yaml", text);
  assert.deepEqual(await epochd("config", "validate", good), {
    code: 0,
    stdout: `valid: ${good} describes service edge, core\n`,
    stderr: "",
  });
  const bad = dir.write("bad.yaml", text.replace("drain_time", "drain_tim"));
  const refused = await epochd("config", "validate", bad, "--json");
  assert.equal(refused.code, 1);
  assert.equal(JSON.parse(refused.stdout).valid, false);
  assert.match(refused.stderr, /did you mean drain_time\?/);
});

Deno.test("reload restarts every service; rollback lists, and goes back", async () => {
  await using api = await serveBoth();
  const ask = asker(api);
  const reloaded = await ask("reload", "--wait=live");
  assert.equal(reloaded.code, 0);
  assert.match(reloaded.stdout, /\n {2}edge gets a new epoch: epoch 1 serves after 300 ms\n {2}core gets a new epoch/);
  assert.equal((await ask("rollback")).code, 1);
  await ask("config", "set", "log.level=debug");
  const list = await ask("rollback", "--list");
  assert.match(
    list.stdout,
    /^ID +ACCEPTED \(UTC\) +DIGEST +BY +WHO +WHY\n2 \* .* patch +unix socket +log\.level info to debug\n1 /,
  );
  assert.equal(JSON.parse((await ask("rollback", "--list", "--json")).stdout).configurations.length, 2);
  const back = await ask("rollback", "1");
  assert.match(back.stdout, /log\.level: debug -> info \(dynamic\)/);
  const unknown = await ask("rollback", "77");
  assert.deepEqual([unknown.code, unknown.stdout], [1, ""]);
  assert.match(unknown.stderr, /no configuration 77 is kept, expected one of: 3, 2, 1/);
});

Deno.test("key create shows a key once and keeps its hash; list and revoke know it by its id", async () => {
  await using dir = tempDir();
  const file = dir.at("keys");
  const made = await epochd("key", "create", "ci", "--role", "operate", "--file", file, "--note", "edge team");
  assert.equal(made.code, 0);
  assert.match(made.stdout, /^epochd_ci_[A-Za-z0-9_-]{43}\n$/);
  assert.equal(Deno.statSync(file).mode! & 0o777, 0o600);
  assert.ok(!Deno.readTextFileSync(file).includes(made.stdout.trim()));
  assert.equal((await epochd("key", "create", "two", "--role", "read", "--file", file)).code, 0);
  const parsed = parseKeys(Deno.readTextFileSync(file));
  assert.deepEqual(parsed.kind === "parsed" && parsed.entries.map(({ id, role, note }) => [id, role, note]), [
    ["ci", "operate", "edge team"],
    ["two", "read", ""],
  ]);
  assert.match((await epochd("key", "create", "ci", "--role", "read", "--file", file)).stderr, /has a key ci already/);
  assert.match(
    (await epochd("key", "list", "--file", file)).stdout,
    /^ID +ROLE +NOTE\nci +operate +edge team\ntwo +read\n$/,
  );
  assert.equal((await epochd("key", "revoke", "ci", "--file", file)).code, 0);
  assert.deepEqual(JSON.parse((await epochd("key", "list", "--file", file, "--json")).stdout), [
    { id: "two", role: "read", note: "" },
  ]);
  assert.equal((await epochd("key", "revoke", "ci", "--file", file)).code, 1);
});

Deno.test("key create without a file prints the line for one; a wrong role or id exits 2", async () => {
  const made = JSON.parse((await epochd("key", "create", "ci", "--role", "read", "--json")).stdout);
  const parsed = parseKeys(made.entry);
  assert.ok(parsed.kind === "parsed" && parsed.entries[0]?.id === "ci");
  assert.match(
    (await epochd("key", "create", "ci", "--role", "raed")).stderr,
    /expected read, operate, admin, did you mean read\?/,
  );
  for (const args of [["ci", "--role", "root"], ["C I", "--role", "read"], ["ci"], []]) {
    assert.equal((await epochd("key", "create", ...args)).code, 2, args.join(" "));
  }
});

Deno.test("commands that ask a supervisor exit 1 without one, and every help has examples", async () => {
  const nowhere = ["--api-socket", "/nowhere/api.sock"];
  for (const args of [["reload"], ["rollback"], ["config", "get"], ["config", "set", "a.b=c"], ["config", "diff"]]) {
    const { code, stderr } = await epochd(...args, ...nowhere);
    assert.equal(code, 1, args.join(" "));
    assert.match(stderr, /does not exist; is `epochd run` at work/);
  }
  const commands = ["reload", "rollback", "config", "config get", "config set", "config diff", "config schema"];
  for (const command of [...commands, "config validate", "key", "key create", "key list", "key revoke"]) {
    const { code, stdout } = await epochd(...command.split(" "), "--help");
    assert.equal(code, 0);
    assert.match(stdout, /\nExamples:\n {2}epochd /, command);
  }
  assert.match((await epochd("config", "gte")).stderr, /Did you mean get\?/);
  assert.match((await epochd("relaod")).stderr, /Did you mean reload\?/);
});
