/** deploy/systemd under a real systemd (PID 1 of namespaces of its own), with a real Envoy under traffic. */
import assert from "node:assert/strict";
import { otherVersion } from "../compiled/upgrade_scene.ts";
import { assertUnhurt } from "../integration/scene.ts";
import { freePorts } from "../support/ports.ts";
import { startTraffic } from "../support/traffic.ts";
import { startUpstream } from "../support/upstream.ts";
import { until } from "../support/until.ts";
import { type Host, startHost, unitDir, whyNoSystemd } from "./host.ts";

const why = whyNoSystemd();
const suffix = why === undefined ? "" : ` (skipped: ${why})`;
const test = (name: string, fn: () => Promise<void>) =>
  Deno.test({ name: `${name}${suffix}`, ignore: why !== undefined, fn });

async function host(dropIn = "", outlives = false): Promise<{ readonly here: Host; readonly port: number }> {
  const [listenPort, adminPort, upstreamPort] = freePorts(3) as [number, number, number];
  const upstream = startUpstream(upstreamPort);
  const here = await startHost({ dropIn, outlives, bootstrap: { listenPort, adminPort, upstreamPort } });
  return {
    here: {
      ...here,
      async [Symbol.asyncDispose]() {
        await here[Symbol.asyncDispose]();
        await upstream[Symbol.asyncDispose]();
      },
    },
    port: listenPort,
  };
}

const EPOCHD = "/usr/local/bin/epochd";

test("start, reload, upgrade, back and stop as a unit + nothing failed, the main process follows, no restart", async () => {
  const { here, port } = await host();
  await using _ = here;
  const started = await here.run("systemctl", "start", "epochd");
  assert.equal(started.code, 0, started.stderr);
  assert.equal(await here.show("StatusText"), "epoch 0 (Envoy 1.40.0) serves");
  const traffic = startTraffic({ port });

  const reloaded = await here.run("systemctl", "reload", "epochd");
  assert.equal(reloaded.code, 0, reloaded.stderr);
  await until("epoch 1 is alone", async () => await here.show("StatusText") === "epoch 1 (Envoy 1.40.0) serves");

  // A reload that is refused is a failed one, and nothing else.
  const good = Deno.readTextFileSync(here.bootstrapPath);
  Deno.writeTextFileSync(here.bootstrapPath, "nonsense: [");
  assert.equal((await here.run("systemctl", "reload", "epochd")).code, 1);
  assert.match(await here.show("StatusText"), /^epoch 1 \(Envoy 1\.40\.0\) serves; last refused: bootstrap_invalid: /);
  assert.equal(await here.show("ActiveState"), "active");
  Deno.writeTextFileSync(here.bootstrapPath, good);

  const other = await otherVersion(here.directory.at("new/epochd"));
  for (const [to, epoch] of [[other, 2], [`${EPOCHD}.previous`, 3], [`${EPOCHD}.previous`, 4]] as const) {
    const before = await here.show("MainPID");
    const { code, stdout, stderr } = await here.run(EPOCHD, "upgrade", "--to", to, "--json");
    assert.equal(code, 0, stderr);
    const { from, to: { pid } } = JSON.parse(stdout);
    assert.equal(String(from.pid), before);
    assert.equal(await here.show("MainPID"), String(pid));
    await until("it speaks", async () => await here.show("StatusText") === `epoch ${epoch} (Envoy 1.40.0) serves`);
    assert.equal(here.pids("epochd").length, 1);
  }
  assert.equal(await here.show("NRestarts"), "0");
  assertUnhurt(await traffic.stop());

  // A main process that systemd had not taken for its child would be killed in the middle of its drain.
  const held = startTraffic({ port, newConnectionClients: 0, keepAliveClients: 0 });
  const stream = held.hold({ chunks: 30, everyMs: 50 });
  await stream.opened;
  const stopped = await here.run("systemctl", "stop", "epochd");
  assert.equal(stopped.code, 0, stopped.stderr);
  assert.deepEqual([await here.show("ActiveState"), await here.show("Result")], ["inactive", "success"]);
  assert.deepEqual([here.pids("epochd"), here.pids("envoy")], [[], []]);
  assert.deepEqual(await stream.outcome, { kind: "complete", chunks: 30 });
  await held.stop();
});

test("a supervisor that hangs is found by the watchdog, one that is killed is started again", async () => {
  const { here } = await host("WatchdogSec=2s");
  await using _ = here;
  assert.equal((await here.run("systemctl", "start", "epochd")).code, 0);
  for (const [signal, restarts] of [["SIGSTOP", "1"], ["SIGKILL", "2"]] as const) {
    Deno.kill(here.pids("epochd")[0]!, signal);
    await until(`restarted after ${signal}`, async () => await here.show("NRestarts") === restarts, {
      timeoutMs: 60_000,
    });
    await until("it serves again", async () => await here.show("StatusText") === "epoch 0 (Envoy 1.40.0) serves");
    assert.equal(await here.show("ActiveState"), "active");
  }
});

test("the new supervisor is killed before it has taken over + the unit stays as it is, nothing failed", async () => {
  const { here, port } = await host();
  await using _ = here;
  assert.equal((await here.run("systemctl", "start", "epochd")).code, 0);
  const main = await here.show("MainPID");
  const traffic = startTraffic({ port });
  const other = await otherVersion(here.directory.at("new/epochd"));
  const command = here.run(EPOCHD, "upgrade", "--to", other);
  const next = await until("the new one is there", () => here.pids("epochd").find((pid) => isNext(pid)), {
    everyMs: 1,
  });
  Deno.kill(next, "SIGKILL");
  const { code, stderr } = await command;
  assert.equal(code, 1);
  assert.match(stderr, /refused \(upgrade_failed\): it ended by SIGKILL/);
  await until(
    "the old one says so",
    async () => /upgrade failed: it ended by SIGKILL/.test(await here.show("StatusText")),
  );
  assert.deepEqual([await here.show("MainPID"), await here.show("NRestarts")], [main, "0"]);
  assertUnhurt(await traffic.stop());
});

test("on_supervisor_death: serve with outlive.conf, kill -9, a hang, an upgrade, kill -9 again + nothing failed", async () => {
  const { here, port } = await host("WatchdogSec=2s", true);
  await using _ = here;
  const started = await here.run("systemctl", "start", "epochd");
  assert.equal(started.code, 0, started.stderr);
  const traffic = startTraffic({ port });
  const isAlone = async (epoch: number) => await here.show("StatusText") === `epoch ${epoch} (Envoy 1.40.0) serves`;
  const main = () => here.pids("epochd").at(-1)!;
  for (const [signal, restarts, epoch] of [["SIGKILL", "1", 1], ["SIGSTOP", "2", 2]] as const) {
    Deno.kill(main(), signal);
    await until(`restarted after ${signal}`, async () => await here.show("NRestarts") === restarts, {
      timeoutMs: 60_000,
    });
    await until("it has taken over", () => isAlone(epoch), { timeoutMs: 60_000 });
  }
  const other = await otherVersion(here.directory.at("new/epochd"));
  const { code, stderr } = await here.run(EPOCHD, "upgrade", "--to", other);
  assert.equal(code, 0, stderr);
  await until("the upgrade is over", () => isAlone(3));
  // The launcher is found, although the new one was started from a copy elsewhere.
  const reloaded = await here.run("systemctl", "reload", "epochd");
  assert.equal(reloaded.code, 0, reloaded.stderr);
  await until("the reload is over", () => isAlone(4));
  Deno.kill(main(), "SIGKILL");
  await until("restarted", async () => await here.show("NRestarts") === "3", { timeoutMs: 60_000 });
  await until("it has taken over", () => isAlone(5), { timeoutMs: 60_000 });
  assertUnhurt(await traffic.stop());
  assert.equal((await here.run("systemctl", "stop", "epochd")).code, 0);
  assert.equal(await here.show("ActiveState"), "inactive");
  assert.deepEqual([here.pids("epochd"), here.pids("envoy")], [[], []]);
});

function isNext(pid: number): boolean {
  try {
    const args = Deno.readTextFileSync(`/proc/${pid}/cmdline`).split("\0");
    return /\.next-\d+\/epochd$/.test(args[0]!) && args[1] === "run";
  } catch {
    return false;
  }
}

const analyze = (() => {
  try {
    const { success } = new Deno.Command("systemd-analyze", { args: ["--version"], stdout: "null" }).outputSync();
    return success;
  } catch {
    return false;
  }
})();

Deno.test({
  name: `the unit's exposure, by systemd-analyze security, is below 4${
    analyze ? "" : " (skipped: no systemd-analyze)"
  }`,
  ignore: !analyze,
  async fn(context) {
    const { stdout } = await new Deno.Command("systemd-analyze", {
      args: ["security", "--offline=true", "--no-pager", `${unitDir}/epochd.service`],
    }).output();
    const figure = Number(
      /Overall exposure level for epochd\.service: ([\d.]+)/.exec(new TextDecoder().decode(stdout))?.[1],
    );
    await context.step(`it is ${figure}`, () => assert.ok(figure < 4));
  },
});
