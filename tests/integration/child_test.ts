// Owns: what an epoch is started with: argv, environment, CPUs, admin address, bootstrap format.
import assert from "node:assert/strict";
import { serverInfo } from "../support/admin.ts";
import type { Epochd } from "../support/epochd.ts";
import { epochdCommand } from "../support/epochd.ts";
import { fetchOnce } from "../support/http_client.ts";
import { freePort } from "../support/ports.ts";
import { argvOf, environmentOf } from "../support/procfs.ts";
import { tempDir } from "../support/tempdir.ts";
import { eventsOf, handoff, scene, under } from "./scene.ts";

const SHORT = { drainTimeMs: 1_000, parentShutdownTimeMs: 2_000 };

Deno.test("every epoch gets the same --concurrency, and its own RESTART_EPOCH in the environment", async () => {
  await using here = scene();
  const epochd = await here.start({
    ...SHORT,
    concurrency: 3,
    environment: { MARK: "from-outside", RESTART_EPOCH: "77" },
  });
  for (const epoch of [0, 1, 2]) {
    if (epoch > 0) {
      epochd.signal("SIGHUP");
      await handoff(epochd, epoch);
    }
    const pid = pidOf(epochd, epoch);
    const argv = argvOf(pid);
    assert.deepEqual(valuesOf(argv, "--concurrency"), ["3"]);
    assert.deepEqual(valuesOf(argv, "--restart-epoch"), [String(epoch)]);
    assert.deepEqual(valuesOf(argv, "--base-id"), [String(epochd.baseId)]);
    assert.deepEqual([valuesOf(argv, "--drain-time-s"), valuesOf(argv, "--parent-shutdown-time-s")], [["1"], ["2"]]);
    assert.equal(argv.includes("--skip-hot-restart-on-no-parent"), epoch > 0);
    const { RESTART_EPOCH, MARK } = environmentOf(pid);
    assert.deepEqual({ RESTART_EPOCH, MARK }, { RESTART_EPOCH: String(epoch), MARK: "from-outside" });
    const info = await serverInfo(here.admin);
    assert.deepEqual([info.epoch, info.concurrency], [epoch, 3]);
    assert.equal((await fetchOnce(here.listener, { path: "/direct" })).headers.get("x-epoch"), String(epoch));
    if (epoch > 0) await handoff(epochd, epoch, "done");
  }
});

Deno.test("without --concurrency every epoch gets the CPUs that epochd may use, by its affinity", async () => {
  for (const cpus of ["0", undefined]) {
    await using here = scene();
    const command = cpus === undefined ? {} : { program: under(["taskset", "-c", cpus], epochdCommand()) };
    const epochd = await here.start({ ...SHORT, ...command, concurrency: "default" });
    const expected = cpus === undefined ? Deno.readTextFileSync("/proc/self/status") : "one";
    const [chosen] = eventsOf(epochd, "concurrency_chosen");
    if (expected === "one") assert.equal(chosen?.concurrency, 1);
    else assert.ok(Number(chosen?.concurrency) >= 1 && Number(chosen?.concurrency) <= navigator.hardwareConcurrency);
    epochd.signal("SIGHUP");
    await handoff(epochd, 1);
    for (const epoch of [0, 1]) {
      assert.deepEqual(valuesOf(argvOf(pidOf(epochd, epoch)), "--concurrency"), [String(chosen?.concurrency)]);
    }
    assert.equal((await serverInfo(here.admin)).concurrency, chosen?.concurrency);
  }
});

Deno.test("bootstrap in JSON, admin on a unix socket: an edit is handed over to", async () => {
  await using directory = tempDir();
  await using here = scene({ bootstrapName: "envoy.json", bootstrap: { adminPath: directory.at("admin.sock") } });
  const epochd = await here.start(SHORT);
  assert.equal((await serverInfo(here.admin)).epoch, 0);
  here.edit({ generation: "second" });
  await handoff(epochd, 1, "done");
  assert.equal((await serverInfo(here.admin)).epoch, 1);
  assert.equal((await fetchOnce(here.listener, { path: "/direct" })).headers.get("x-generation"), "second");
  // The snapshot that runs is the file as it was, under a name that Envoy reads as JSON.
  const [config = ""] = valuesOf(argvOf(pidOf(epochd, 1)), "-c");
  assert.match(config, /\.json$/);
  assert.equal(Deno.readTextFileSync(config), Deno.readTextFileSync(here.bootstrapPath));
});

Deno.test("--admin-address wins over the bootstrap's, and admin is asked without the proxy of the environment", async () => {
  const port = freePort();
  // Bound on every address; epochd is told another one than the bootstrap says.
  await using here = scene({
    bootstrap: {
      change: (bootstrap) => bootstrap.admin.address.socket_address = { address: "0.0.0.0", port_value: port },
    },
  });
  const proxy = `http://127.0.0.1:${freePort()}`;
  const epochd = await here.start({
    ...SHORT,
    extraArguments: ["--admin-address", `127.0.0.2:${port}`],
    environment: { HTTP_PROXY: proxy, http_proxy: proxy, HTTPS_PROXY: proxy, NO_PROXY: "" },
  });
  epochd.signal("SIGHUP");
  await handoff(epochd, 1);
  const status = await epochd.status() as { services: { envoy: { epochs: { admin: string; epoch: number }[] } } };
  assert.deepEqual(status.services.envoy.epochs[0]?.admin, `127.0.0.2:${port}`);
});

Deno.test("a bootstrap without admin is refused at the start with what to do, exit code 3", async () => {
  await using here = scene({ bootstrap: { change: (bootstrap) => delete bootstrap.admin } });
  await assert.rejects(here.start(), /admin_address_missing.*--admin-address/s);
});

Deno.test("what runs is the snapshot that was checked, not the file as it is later", async () => {
  await using here = scene();
  const epochd = await here.start({ ...SHORT, extraArguments: ["--no-watch-config"] });
  const text = Deno.readTextFileSync(here.bootstrapPath);
  here.edit({ generation: "second" });
  const [config = ""] = valuesOf(argvOf(pidOf(epochd, 0)), "-c");
  assert.ok(config.startsWith(`${epochd.stateDir}/`), config);
  assert.equal(Deno.readTextFileSync(config), text);
  assert.equal((Deno.statSync(config).mode ?? 0) & 0o777, 0o600);
});

function pidOf(epochd: Epochd, epoch: number): number {
  const spawned = eventsOf(epochd, "epoch_spawned").findLast((event) => event.epoch === epoch);
  assert.ok(spawned !== undefined, `epoch ${epoch} was spawned`);
  return Number(spawned.pid);
}

function valuesOf(argv: readonly string[], flag: string): string[] {
  return argv.flatMap((item, at) => item === flag ? [argv[at + 1] ?? ""] : []);
}
