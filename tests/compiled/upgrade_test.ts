/** `epochd upgrade`: one executable after the other takes over a real Envoy under traffic. */
import assert from "node:assert/strict";
import { freeBaseId, removeSegment } from "../support/base_ids.ts";
import { writeBootstrap } from "../support/bootstrap.ts";
import { freePorts } from "../support/ports.ts";
import { startTraffic } from "../support/traffic.ts";
import { until, within } from "../support/until.ts";
import { assertUnhurt } from "../integration/scene.ts";
import { envoyPath } from "../support/envoys.ts";
import type { Epochd } from "../support/epochd.ts";
import { INSTALLED, OTHER_VERSION, upgradeScene } from "./upgrade_scene.ts";

interface Status {
  readonly pid: number;
  readonly version: string;
  readonly executable?: string;
  readonly upgrade?: { readonly phase: string; readonly detail?: string; readonly pid: number };
  readonly services: Readonly<Record<string, { readonly phase: string; readonly ready: boolean }>>;
}

const fetchStatus = async (epochd: Epochd) => JSON.stringify(await epochd.status());
const statusOf = async (epochd: Epochd) => await epochd.status() as Status;

Deno.test("upgrade four times in a row, there and back + nothing failed, streams whole, the installed file follows", async () => {
  await using here = await upgradeScene();
  const epochd = await here.start();
  const traffic = here.traffic({ heldStreams: 1, stream: { chunks: 40, everyMs: 50 } });
  let before = await statusOf(epochd);
  assert.deepEqual([before.version, before.executable], ["0.1.0", here.installed]);
  for (
    const [to, version] of [
      [here.other, OTHER_VERSION],
      [here.previous, "0.1.0"],
      [here.previous, OTHER_VERSION],
      [here.previous, "0.1.0"],
    ] as const
  ) {
    const held = traffic.hold({ chunks: 40, everyMs: 50 });
    await held.opened;
    const { code, stdout, stderr } = await here.upgrade(to, "--json");
    assert.equal(code, 0, stderr);
    const told = JSON.parse(stdout);
    assert.deepEqual([told.outcome, told.from, told.installed, told.previous], [
      "upgraded",
      { version: before.version, pid: before.pid },
      here.installed,
      here.previous,
    ]);
    const now = await statusOf(epochd);
    assert.deepEqual([now.pid, now.version, now.executable], [told.to.pid, version, here.installed]);
    assert.deepEqual(here.supervisors(), [now.pid]);
    assert.deepEqual(await within("the stream", held.outcome), { kind: "complete", chunks: 40 });
    before = now;
  }
  assert.equal((await within("the first one's end", epochd.exit)).code, 0);
  const left = [...Deno.readDirSync(here.directory.at("bin"))].map(({ name }) => name).sort();
  assert.deepEqual(left, [...INSTALLED, "epochd.previous"].sort());
  assertUnhurt(await traffic.stop());
  await here.stop();
});

Deno.test("upgrade --no-install + the file stays; the same file again needs no copy", async () => {
  await using here = await upgradeScene();
  const epochd = await here.start();
  const traffic = here.traffic();
  const first = await here.upgrade(here.other, "--no-install");
  assert.equal(first.code, 0, first.stderr);
  assert.match(first.stdout, /done: epochd 0\.1\.9 \(pid \d+\) serves, 0\.1\.0 \(pid \d+\) has ended\n$/);
  assert.equal((await statusOf(epochd)).executable, here.other);
  const second = await here.upgrade(here.other);
  assert.equal(second.code, 0, second.stderr);
  assert.doesNotMatch(second.stdout, /installed|copied/);
  assertUnhurt(await traffic.stop());
  await here.stop();
});

for (const moment of ["upgrade_began", "predecessor_found", "epoch_spawned"] as const) {
  Deno.test(`the new one is killed (-9) at ${moment} + the old one serves on, says why, and the next upgrade goes through`, async () => {
    await using here = await upgradeScene();
    const epochd = await here.start();
    const traffic = here.traffic();
    const old = await statusOf(epochd);
    const since = epochd.log.events.length;
    const command = here.upgrade(here.other);
    const began = await epochd.waitForEvent("upgrade_began");
    if (moment !== "upgrade_began") {
      await until(moment, () => epochd.log.events.slice(since).some(({ event }) => event === moment), { everyMs: 1 });
    }
    Deno.kill(began.pid as number, "SIGKILL");
    const { code, stderr } = await within("the command", command, 60_000);
    assert.equal(code, 1);
    assert.match(stderr, /refused \(upgrade_failed\): it ended by SIGKILL\n$/);
    await until("the old one serves", async () => (await statusOf(epochd)).services.envoy!.phase === "serving");
    const now = await statusOf(epochd);
    assert.deepEqual([now.pid, now.upgrade?.phase], [old.pid, "failed"]);
    assert.deepEqual([...Deno.readDirSync(here.directory.at("bin"))].map(({ name }) => name).sort(), INSTALLED);
    await until("another upgrade", async () => (await here.upgrade(here.other)).code === 0, { timeoutMs: 60_000 });
    assertUnhurt(await traffic.stop());
    await here.stop();
  });
}

Deno.test("--on-supervisor-death serve: the new one is killed (-9) while its Envoy starts + nothing failed, the old one is served again", async () => {
  await using here = await upgradeScene();
  const epochd = await here.start({ extraArguments: ["--on-supervisor-death", "serve"] });
  const traffic = here.traffic();
  const old = await statusOf(epochd);
  const since = epochd.log.events.length;
  const command = here.upgrade(here.other);
  const began = await epochd.waitForEvent("upgrade_began");
  const isSpawned = () => epochd.log.events.slice(since).some(({ event }) => event === "epoch_spawned");
  await until("its Envoy is started", isSpawned, { everyMs: 1 });
  Deno.kill(began.pid as number, "SIGKILL");
  const { code, stderr } = await within("the command", command, 60_000);
  assert.equal(code, 1);
  assert.match(stderr, /refused \(upgrade_failed\): it ended by SIGKILL\n$/);
  await until("the old supervisor serves", async () => {
    const { pid, services } = await statusOf(epochd);
    return pid === old.pid && services.envoy!.phase === "serving" && services.envoy!.ready;
  }, { timeoutMs: 60_000 });
  // What has attached may still be noticed: busy until it is over.
  await until("another upgrade", async () => (await here.upgrade(here.other)).code === 0, { timeoutMs: 60_000 });
  assertUnhurt(await traffic.stop());
  await here.stop();
});

Deno.test("the new one is killed (-9) after it has taken over + the old one takes its place again, and its streams are whole", async () => {
  await using here = await upgradeScene();
  const epochd = await here.start({ parentShutdownTimeMs: 8_000 });
  const traffic = here.traffic({ newConnectionClients: 0, keepAliveClients: 0 });
  const held = traffic.hold({ chunks: 60, everyMs: 50 });
  await held.opened;
  const old = await statusOf(epochd);
  const command = here.upgrade(here.other);
  const taken = await epochd.waitForEvent("upgrade_taken_over");
  Deno.kill(taken.pid as number, "SIGKILL");
  // Whichever it sees first: the successor's sockets come and go, or its own admin gone where those were too quick for a look.
  const NOTICED = ["successor_vanished", "admin_lost"];
  await until("the old one has noticed", () => epochd.log.events.some(({ event }) => NOTICED.includes(event)));
  const { code, stderr } = await within("the command", command, 60_000);
  assert.equal(code, 1);
  assert.match(stderr, /refused \(upgrade_failed\): it ended by SIGKILL\n$/);
  assert.deepEqual(await within("the stream", held.outcome), { kind: "complete", chunks: 60 });
  const serves = async () => (await statusOf(epochd)).services.envoy!;
  await until("the old one serves", async () => (await serves()).phase === "serving" && (await serves()).ready);
  assert.deepEqual([(await statusOf(epochd)).pid, here.supervisors()], [old.pid, [old.pid]]);
  const { stdout } = await new Deno.Command(here.installed, { args: ["--version"] }).output();
  assert.match(new TextDecoder().decode(stdout), /^epochd 0\.1\.0 /);
  await here.stop();
});

Deno.test("the old one is killed (-9) while its epochs drain + the new one goes on, the command ends well, the file is installed", async () => {
  await using here = await upgradeScene();
  const epochd = await here.start();
  const command = here.upgrade(here.other, "--json");
  const { pid } = await epochd.waitForEvent("upgrade_taken_over");
  epochd.signal("SIGKILL");
  const { code, stdout, stderr } = await within("the command", command, 60_000);
  assert.equal(code, 0, stderr);
  assert.deepEqual([JSON.parse(stdout).outcome, JSON.parse(stdout).to.pid], ["upgraded", pid]);
  const now = await statusOf(epochd);
  assert.deepEqual([now.pid, now.version, now.executable], [pid, OTHER_VERSION, here.installed]);
  await here.stop();
});

Deno.test("an executable of Envoy on trial + the upgrade is busy until it has proved itself", async () => {
  await using here = await upgradeScene();
  const slots = here.directory.at("slots");
  const epochd = await here.start({
    envoyPath: envoyPath("1.39.3"),
    extraArguments: ["--cross-pod", "--slots-dir", slots, "--binary-trial", "20s"],
  });
  const pushed = await epochd.command("push", envoyPath("1.40.0"), "--wait=live");
  assert.equal(pushed.code, 0, pushed.stderr);
  const refused = await here.upgrade(here.other);
  assert.equal(refused.code, 1);
  assert.match(refused.stderr, /refused \(busy\): service envoy has an executable on trial/);
  const upgraded = await until("the trial is over", async () => {
    const result = await here.upgrade(here.other);
    return result.code === 0 && result;
  }, { timeoutMs: 60_000, everyMs: 500 });
  assert.match(upgraded.stdout, /done/);
  assert.match(await fetchStatus(epochd), /"version":"1\.40\.0"/);
  await here.stop();
});

Deno.test("one of two services can't come up at the new one + it stays with the old one, and the next upgrade brings both together", async () => {
  await using here = await upgradeScene();
  const [aAdmin, aListen, bAdmin, bListen, taken] = freePorts(5) as [number, number, number, number, number];
  const bootstrap = (name: string, adminPort: number, listenPort: number, extra?: number) =>
    writeBootstrap(here.directory.at(name), {
      adminPort,
      listenPort,
      generation: name,
      ...(extra === undefined ? {} : { extraListenPorts: [extra] }),
    });
  const b = bootstrap("b.yaml", bAdmin, bListen);
  const [aBase, bBase] = [freeBaseId(), freeBaseId()];
  const service = (path: string, baseId: number, dir: string) => ({
    envoy_path: envoyPath(),
    envoy_config: path,
    base_id: baseId,
    concurrency: 1,
    drain_time: "1s",
    parent_shutdown_time: "3s",
    state_dir: here.directory.at(dir),
    watch_config: false,
    cross_pod: true,
    retry_limit: 0,
  });
  const services = {
    a: service(bootstrap("a.yaml", aAdmin, aListen), aBase, "state-a"),
    b: service(b, bBase, "state-b"),
  };
  const configPath = here.directory.write("epochd.yaml", JSON.stringify({ services }));
  const epochd = await here.start({ configPath, baseId: aBase, extraArguments: [] });
  for (const name of ["a", "b"]) {
    await epochd.waitForEvent("ready_changed", ({ service, ready }) => service === name && ready === true);
  }
  const traffics = [aListen, bListen].map((port) => startTraffic({ port }));
  // Valid, and can't run.
  using squatter = Deno.listen({ hostname: "127.0.0.1", port: taken });
  bootstrap("b.yaml", bAdmin, bListen, taken);
  const { code, stderr } = await here.upgrade(here.other);
  assert.equal(code, 1);
  assert.match(stderr, /upgrade_failed\): service b was not taken over \(.*\); it serves the others on/);
  assert.equal(here.supervisors().length, 2);
  squatter.close();
  bootstrap("b.yaml", bAdmin, bListen);
  await until("b is served as before, and a is let go", async () => {
    const { services } = await statusOf(epochd);
    return services.b!.phase === "serving" && services.b!.ready && services.a!.phase === "ended";
  });
  const again = await here.upgrade(here.other);
  assert.equal(again.code, 0, again.stderr);
  await until("one supervisor is left", () => here.supervisors().length === 1);
  const now = await statusOf(epochd);
  assert.deepEqual([now.version, now.services.a!.phase, now.services.b!.phase], [OTHER_VERSION, "serving", "serving"]);
  for (const traffic of traffics) assertUnhurt(await traffic.stop());
  await here.stop();
  removeSegment(bBase);
});

Deno.test("the command is killed (-9) on the way + the new one serves, both files start, and the next upgrade tidies up", async () => {
  await using here = await upgradeScene();
  const epochd = await here.start();
  const traffic = here.traffic();
  const child = new Deno.Command(here.installed, {
    args: ["upgrade", "--to", here.other, "--api-socket", epochd.apiSocket],
    stdin: "null",
    stdout: "null",
    stderr: "null",
  }).spawn();
  await epochd.waitForEvent("upgrade_taken_over");
  child.kill("SIGKILL");
  await child.status;
  assert.equal((await within("the old one's end", epochd.exit, 60_000)).code, 0);
  const now = await until("the new one answers", async () => await statusOf(epochd));
  assert.deepEqual([now.version, now.executable], [OTHER_VERSION, `${here.installed}.next-${child.pid}/epochd`]);
  const { code, stderr } = await here.upgrade(here.other, "--json");
  assert.equal(code, 0, stderr);
  assert.equal((await statusOf(epochd)).executable, here.installed);
  // The one that ran was still running when the copy was made.
  const third = await here.upgrade(here.previous);
  assert.equal(third.code, 0, third.stderr);
  const left = [...Deno.readDirSync(here.directory.at("bin"))].map(({ name }) => name).sort();
  assert.deepEqual(left, [...INSTALLED, "epochd.previous"].sort());
  assertUnhurt(await traffic.stop());
  await here.stop();
});

Deno.test("two upgrades at once + one goes through, the other is refused (busy) or comes after it", async () => {
  await using here = await upgradeScene();
  await here.start();
  const traffic = here.traffic();
  const both = await Promise.all([here.upgrade(here.other), here.upgrade(here.other)]);
  assert.equal(both.filter(({ code }) => code === 0).length, 1, JSON.stringify(both));
  assert.match(both.find(({ code }) => code !== 0)!.stderr, /refused \(busy\): another upgrade .* wait for its end\n$/);
  assert.equal(here.supervisors().length, 1);
  const left = [...Deno.readDirSync(here.directory.at("bin"))].map(({ name }) => name).sort();
  assert.deepEqual(left, [...INSTALLED, "epochd.previous"].sort());
  assertUnhurt(await traffic.stop());
  await here.stop();
});

Deno.test("SIGTERM to the old one while the new one takes over + both end, with 0", async () => {
  await using here = await upgradeScene();
  const epochd = await here.start();
  const command = here.upgrade(here.other);
  await epochd.waitForEvent("upgrade_taken_over");
  epochd.signal("SIGTERM");
  assert.equal((await within("the old one's end", epochd.exit, 60_000)).code, 0);
  assert.deepEqual(here.supervisors(), []);
  const ends = epochd.log.events.filter(({ event }) => event === "supervisor_ended").map(({ exitCode }) => exitCode);
  assert.deepEqual(ends, [0, 0]);
  await command;
});

Deno.test("what can't be upgraded is refused by name, and nothing has changed", async () => {
  await using here = await upgradeScene();
  const epochd = await here.start({ extraArguments: [] });
  const refused = async (to: string) => {
    const { code, stderr } = await here.upgrade(to);
    assert.equal(code, 1, stderr);
    return stderr.trim();
  };
  assert.match(await refused(here.other), /^error: refused \(not_cross_pod\): service envoy runs without cross_pod/);
  assert.match(await refused(here.directory.at("nowhere")), /\(executable_missing\): .*nowhere does not exist$/);
  assert.match(await refused(here.directory.path), /\(executable_wrong\): .* is not a regular file$/);
  const script = here.directory.write("script", "#!/bin/sh\necho epochd 9.9.9 '(deno 2)'\n");
  assert.match(await refused(script), /\(executable_not_executable\): .* may not be executed by uid \d+/);
  Deno.chmodSync(script, 0o755);
  assert.match(await refused(script), /\(executable_wrong\): .*: a script, not an executable$/);
  assert.match(await refused(envoyPath()), /\(executable_wrong\): .* --version says ".*", expected `epochd VERSION/);
  assert.match(await refused("/bin/false"), /\(executable_fails\): \/bin\/false --version ended with 1/);
  const cut = here.directory.at("cut");
  Deno.writeFileSync(cut, Deno.readFileSync(here.other).subarray(0, 1_000_000), { mode: 0o755 });
  assert.match(await refused(cut), /\(executable_wrong\): .* is cut short: 1000000 bytes, expected \d+ or more$/);
  assert.equal((await here.upgrade("")).code, 2);
  assert.deepEqual([...Deno.readDirSync(here.directory.at("bin"))].map(({ name }) => name).sort(), INSTALLED);
  assert.deepEqual(here.supervisors(), [epochd.pid]);
});

for (
  const [what, options, expected] of [
    ["in a pod", { environment: { KUBERNETES_SERVICE_HOST: "10.0.0.1" } }, /would_restart_container.*expected a roll/],
    ["that stays", { extraArguments: ["--cross-pod", "--when-superseded", "wait"] }, /stays_when_superseded/],
  ] as const
) {
  Deno.test(`a supervisor ${what} is not upgraded, and says what to do`, async () => {
    await using here = await upgradeScene();
    const epochd = await here.start(options);
    const { code, stderr } = await here.upgrade(here.other);
    assert.equal(code, 1);
    assert.match(stderr, expected);
    assert.deepEqual(here.supervisors(), [epochd.pid]);
  });
}

Deno.test("a supervisor that systemd started without NOTIFY_SOCKET is not upgraded: its end would be that of the unit", async () => {
  await using here = await upgradeScene();
  await here.start({ program: ["sh", "-c", 'SYSTEMD_EXEC_PID=$$ exec "$0" "$@"', here.installed] });
  const { code, stderr } = await here.upgrade(here.other);
  assert.equal(code, 1);
  assert.match(stderr, /outlives_no_main_process.*expected Type=notify/);
});

Deno.test("a bootstrap that the new one would refuse stops the upgrade before it begins", async () => {
  await using here = await upgradeScene();
  const epochd = await here.start({ extraArguments: ["--cross-pod", "--no-watch-config"] });
  Deno.writeTextFileSync(here.bootstrapPath, "nonsense: [");
  const { code, stderr } = await here.upgrade(here.other);
  assert.equal(code, 1);
  assert.match(stderr, /refused \(preflight_refused\): service envoy would not start \(bootstrap_invalid\)/);
  assert.deepEqual(here.supervisors(), [epochd.pid]);
});

Deno.test({
  name: "a full disk stops the upgrade before it begins, and leaves nothing (needs root)",
  ignore: Deno.uid() !== 0,
  async fn() {
    await using here = await upgradeScene();
    const epochd = await here.start();
    // The mount goes with its namespace; the supervisor, outside it, is found by its socket.
    const script = [
      'dir=$(dirname "$1")',
      'mount -t tmpfs -o size=8m small "$dir"',
      'cp "$3/libgcc_s.so.1" "$dir"',
      '"$2" upgrade --to "$2" --api-socket "$4"',
      'echo "code $?"',
      'ls -A "$dir"',
    ].join("\n");
    const { stdout, stderr } = await new Deno.Command("unshare", {
      args: [
        "--mount",
        "sh",
        "-c",
        script,
        "sh",
        here.installed,
        here.other,
        here.directory.at("new"),
        epochd.apiSocket,
      ],
    }).output();
    const decoder = new TextDecoder();
    assert.match(decoder.decode(stderr), /refused \(install_failed\): copy .*: no space left on device/);
    assert.match(decoder.decode(stdout), /\ncode 1\nlibgcc_s\.so\.1\n$/);
    assert.deepEqual(here.supervisors(), [epochd.pid]);
  },
});
