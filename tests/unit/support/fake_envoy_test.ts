import assert from "node:assert/strict";
import { adminRequest, serverInfo, stats } from "../../support/admin.ts";
import { domainSockets, freeBaseId, removeSegment, segmentFlags } from "../../support/base_ids.ts";
import { bootstrapText } from "../../support/bootstrap.ts";
import { type BareEnvoy, spawnEnvoy } from "../../support/envoys.ts";
import { type FakeBehaviours, type FakeEnvoy, fakeEnvoy } from "../../support/fake_envoy.ts";
import { HttpConnection } from "../../support/http_client.ts";
import { freePort } from "../../support/ports.ts";
import { tempDir } from "../../support/tempdir.ts";
import { until } from "../../support/until.ts";

interface Scene extends AsyncDisposable {
  readonly fake: FakeEnvoy;
  readonly admin: { readonly port: number };
  readonly baseId: number;
  readonly bootstrapPath: string;
  start(epoch: number, parentShutdownTimeS?: number, ...extraArguments: string[]): BareEnvoy;
}

function scene(behaviours: FakeBehaviours = {}, format: "yaml" | "json" = "yaml"): Scene {
  const scratch = tempDir();
  const fake = fakeEnvoy(scratch.path, behaviours);
  const admin = { port: freePort() };
  const baseId = freeBaseId();
  const text = bootstrapText({ listenPort: 1, adminPort: admin.port }, `envoy.${format}`);
  const bootstrapPath = scratch.write(`envoy.${format}`, text);
  const started: BareEnvoy[] = [];
  return {
    fake,
    admin,
    baseId,
    bootstrapPath,
    start(epoch, parentShutdownTimeS = 1, ...extraArguments) {
      const options = { envoyPath: fake.path, bootstrapPath, baseId, epoch, parentShutdownTimeS, extraArguments };
      const envoy = spawnEnvoy(options);
      started.push(envoy);
      return envoy;
    },
    async [Symbol.asyncDispose]() {
      for (const envoy of started) await envoy[Symbol.asyncDispose]();
      removeSegment(baseId);
      await scratch[Symbol.asyncDispose]();
    },
  };
}

async function run(path: string, ...args: string[]): Promise<{ code: number; stdout: string; stderr: string }> {
  const output = await new Deno.Command(path, { args }).output();
  const decoder = new TextDecoder();
  return { code: output.code, stdout: decoder.decode(output.stdout), stderr: decoder.decode(output.stderr) };
}

Deno.test("fake Envoy: version, hot restart version, validate, usage errors", async () => {
  await using here = scene({ version: "1.39.3", validate: { code: 1, stderr: "no such field: 'foo'" } });
  const { path } = here.fake;
  assert.match((await run(path, "--version")).stdout, /\/1\.39\.3\/Clean\/RELEASE\/BoringSSL/);
  assert.equal((await run(path, "--hot-restart-version")).stdout, "11.104\n");
  const refused = await run(path, "--mode", "validate", "-c", here.bootstrapPath);
  assert.deepEqual([refused.code, refused.stderr], [1, "no such field: 'foo'\n"]);
  here.fake.behave({});
  const passed = await run(path, "--mode", "validate", "-c", here.bootstrapPath);
  assert.deepEqual([passed.code, passed.stdout], [0, `configuration '${here.bootstrapPath}' OK\n`]);
  assert.equal((await run(path, "--mode", "validate", "-c", "/none")).code, 1);
  for (
    const wrong of [["--base-id=4"], ["--foo"], ["--base-id", "1", "--base-id", "2"], ["-c", "a", "--config-path", "b"]]
  ) {
    const { code, stderr } = await run(path, ...wrong);
    assert.deepEqual([code, stderr.startsWith("PARSE ERROR: Argument:")], [1, true], wrong.join(" "));
  }
  assert.equal(here.fake.recordsOf("validate").length, 2);
});

for (const format of ["yaml", "json"] as const) {
  Deno.test(`fake Envoy: a hot restart, bootstrap in ${format}`, async () => {
    await using here = scene({}, format);
    const parent = here.start(0);
    await parent.untilLive(here.admin);
    assert.equal(segmentFlags(here.baseId), 0n);
    assert.equal(domainSockets(here.baseId).length, 4);
    using old = await HttpConnection.open(here.admin);
    await old.request({ path: "/ready" });

    const child = here.start(1);
    await child.untilLive(here.admin);
    assert.equal(JSON.parse((await old.request({ path: "/server_info" })).body).command_line_options.restart_epoch, 0);
    assert.equal(domainSockets(here.baseId).length, 8);
    assert.equal((await parent.exit).code, 0);
    assert.equal(domainSockets(here.baseId).length, 4);
    const asked = here.fake.recordsOf("asked_by_child", 0).map((record) => record.what);
    assert.deepEqual(asked, ["shutdown_admin", "drain", "terminate"]);
    assert.deepEqual(here.fake.recordsOf("signal"), []);

    child.kill("SIGHUP");
    await here.fake.untilRecord("signal", 1);
    child.kill("SIGTERM");
    assert.equal((await child.exit).code, 0);
    assert.deepEqual(here.fake.recordsOf("signal", 1).map((record) => record.signal), ["SIGHUP", "SIGTERM"]);
    const [start] = here.fake.recordsOf("start", 1);
    assert.equal(start?.env.RESTART_EPOCH, "1");
    assert.deepEqual(start?.argv.slice(2, 6), ["--base-id", String(here.baseId), "--restart-epoch", "1"]);
  });
}

Deno.test("fake Envoy: a child that dies before it is initialised poisons the flag and leaves the parent alone", async () => {
  await using here = scene({ epochs: { 1: { dieAt: { moment: "before_init", code: 1 } } } });
  await here.start(0).untilLive(here.admin);
  assert.equal((await here.start(1).exit).code, 1);
  assert.equal(segmentFlags(here.baseId), 1n);
  here.fake.behave({});
  const next = here.start(1);
  assert.equal((await next.exit).code, 1);
  await until("its reason", () => next.log().includes("previous envoy process is still initializing"));
  assert.equal((await serverInfo(here.admin)).epoch, 0);
  const bytes = Deno.readFileSync(`/dev/shm/envoy_shared_memory_${here.baseId * 10}`);
  bytes[96] = 0;
  Deno.writeFileSync(`/dev/shm/envoy_shared_memory_${here.baseId * 10}`, bytes);
  await here.start(1).untilLive(here.admin);
});

Deno.test("fake Envoy: a child that dies after it took the admin leaves a parent without one", async () => {
  await using here = scene({ epochs: { 1: { dieAt: { moment: "after_admin", signal: "SIGKILL" } } } });
  await here.start(0).untilLive(here.admin);
  assert.equal((await here.start(1).exit).signal, "SIGKILL");
  await assert.rejects(serverInfo(here.admin), /refused/);
  assert.equal(here.fake.recordsOf("end", 0).length, 0);
});

Deno.test("fake Envoy: after LIVE killed, the same epoch starts again against the draining parent", async () => {
  await using here = scene({ epochs: { 1: { dieAt: { moment: "after_live", afterMs: 20, signal: "SIGKILL" } } } });
  const parent = here.start(0);
  await parent.untilLive(here.admin);
  assert.equal((await here.start(1, 30).exit).signal, "SIGKILL");
  here.fake.behave({});
  await here.start(1, 1).untilLive(here.admin);
  assert.equal((await parent.exit).code, 0);
});

Deno.test("fake Envoy: a signalled parent aborts its child; a third generation ends the first", async () => {
  await using here = scene();
  const first = here.start(0);
  await first.untilLive(here.admin);
  const second = here.start(1, 60);
  await second.untilLive(here.admin);
  await here.start(2, 60).untilLive(here.admin);
  assert.equal((await first.exit).code, 0);
  assert.deepEqual(here.fake.recordsOf("signal"), []);
  second.kill("SIGTERM");
  assert.equal((await second.exit).code, 0);
  await until("epoch 2 aborts", () => here.fake.recordsOf("end", 2)[0]?.signal === "SIGABRT");
});

Deno.test("fake Envoy: no parent, no segment, a name in use", async () => {
  await using here = scene();
  assert.equal((await here.start(1).exit).signal, "SIGABRT");
  const zero = here.start(0);
  await zero.untilLive(here.admin);
  assert.equal((await here.start(0).exit).code, 1);
  zero.kill("SIGKILL");
  await zero.exit;
  assert.equal((await here.start(1).exit).signal, "SIGABRT");
  assert.equal(segmentFlags(here.baseId), 1n);
  await here.start(0).untilLive(here.admin);
});

Deno.test("fake Envoy: without a parent it starts all the same with --skip-hot-restart-on-no-parent", async () => {
  await using here = scene();
  const zero = here.start(0);
  await zero.untilLive(here.admin);
  zero.kill("SIGTERM");
  await zero.exit;
  await here.start(1, 1, "--skip-hot-restart-on-no-parent").untilLive(here.admin);
});

Deno.test("fake Envoy: admin that hangs, fails health checks, quits; stats; stuck initialising", async () => {
  await using here = scene({ liveAfterMs: "never", stats: { "control_plane.connected_state": 0 } });
  const envoy = here.start(0);
  await here.fake.untilRecord("admin_up");
  assert.equal((await serverInfo(here.admin)).state, "INITIALIZING");
  assert.equal((await adminRequest(here.admin, "/ready")).status, 503);
  assert.equal((await stats(here.admin, "connected_state")).get("control_plane.connected_state"), 0);
  here.fake.behave({ admin: "hang" });
  await assert.rejects(adminRequest(here.admin, "/ready", "GET", 100), /timeout/);
  here.fake.behave({ ignoreTerm: true });
  envoy.kill("SIGTERM");
  await here.fake.untilRecord("signal");
  assert.equal((await adminRequest(here.admin, "/drain_listeners?graceful")).status, 405);
  assert.equal((await adminRequest(here.admin, "/drain_listeners?graceful", "POST")).status, 200);
  assert.deepEqual(here.fake.recordsOf("admin").at(-1)?.path, "/drain_listeners?graceful");
  await adminRequest(here.admin, "/quitquitquit", "POST").catch(() => {});
  assert.equal((await envoy.exit).code, 0);
});

Deno.test("fake Envoy: it ends with the process that started it", async () => {
  await using here = scene();
  const script = `${here.fake.path} -c ${here.bootstrapPath} --base-id ${here.baseId} --restart-epoch 0 & wait`;
  const shell = new Deno.Command("sh", { args: ["-c", script], stderr: "null" }).spawn();
  await here.fake.untilRecord("live");
  shell.kill("SIGKILL");
  await shell.status;
  const [end] = await here.fake.untilRecord("end");
  assert.equal(end?.why, "caught SIGTERM");
});
