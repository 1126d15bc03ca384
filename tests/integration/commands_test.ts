// Owns: `epochd status` and `epochd restart` against a running supervisor, as an operator uses them.
import assert from "node:assert/strict";
import { runEpochd } from "../support/epochd.ts";
import { until } from "../support/until.ts";
import { eventsOf, handoff, scene } from "./scene.ts";

const SHORT = { drainTimeMs: 1_000, parentShutdownTimeMs: 2_000 };

Deno.test("status shows the epochs to people and to programs, also while one drains", async () => {
  await using here = scene();
  const epochd = await here.start();
  epochd.signal("SIGHUP");
  await handoff(epochd, 1);
  const { code, stdout, stderr } = await epochd.command("status");
  assert.deepEqual([code, stderr], [0, ""]);
  assert.match(stdout, new RegExp(`^epochd \\S+, pid ${epochd.pid}, up `));
  assert.match(stdout, /^envoy: serving \(predecessor_drains\), ready, 1 handoff$/m);
  const pids = eventsOf(epochd, "epoch_spawned").map(({ pid }) => pid);
  assert.match(stdout, new RegExp(`^  1 +newest +${pids[1]} +1\\.40\\.0 `, "m"));
  assert.match(stdout, new RegExp(`^  0 +predecessor +${pids[0]} +1\\.40\\.0 `, "m"));
  assert.match(stdout, /watching the bootstrap by events: [0-9a-f]{12}/);
  // deno-lint-ignore no-explicit-any
  const { services, pid, stopping } = await epochd.status() as any;
  assert.deepEqual([pid, stopping], [epochd.pid, false]);
  const { phase, ready, handoffs, epochs } = services.envoy;
  assert.deepEqual({ phase, ready, handoffs }, { phase: "serving", ready: true, handoffs: 1 });
  // deno-lint-ignore no-explicit-any
  const shown = epochs.map(({ epoch, role, pid, version }: any) => ({ epoch, role, pid, version }));
  assert.deepEqual(shown, [
    { epoch: 1, role: "newest", pid: pids[1], version: "1.40.0" },
    { epoch: 0, role: "predecessor", pid: pids[0], version: "1.40.0" },
  ]);
});

Deno.test("restart --wait shows the phases in their order and returns when the old epoch has ended", async () => {
  await using here = scene();
  const epochd = await here.start(SHORT);
  const { code, stdout, stderr } = await epochd.command("restart", "--wait");
  assert.deepEqual([code, stderr], [0, ""]);
  const expected = [
    /accepted a trigger by api/,
    /handoff 1 began: epoch 0 to 1/,
    /preflight passed/,
    /epoch 1 has pid \d+/,
    /epoch 1 is LIVE/,
    /epoch 1 serves after .*, epoch 0 drains/,
    /handoff 1 is done: epoch 0 has ended/,
    /^done: epoch 1 serves, epoch 0 has ended$/,
  ];
  const lines = stdout.trimEnd().split("\n");
  const steps = lines.filter((line) => !/epoch 1 is (PRE_)?INITIALIZING/.test(line));
  assert.equal(steps.length, expected.length, stdout);
  steps.forEach((line, at) => assert.match(line, expected[at]!));
  // Nothing of a terminal in what a pipe gets.
  assert.ok(!stdout.includes("\r") && !stdout.includes("\u001b"), stdout);
  assert.equal(epochd.envoyPids().length, 1);
});

Deno.test("restart --wait=live returns while the old epoch drains, --json gives the outcome, without --wait it is only accepted", async () => {
  await using here = scene();
  const epochd = await here.start();
  const live = await epochd.command("restart", "--wait=live");
  assert.equal(live.code, 0, live.stderr);
  assert.match(live.stdout, /^done: epoch 1 is LIVE after .*, epoch 0 drains$/m);
  assert.deepEqual(eventsOf(epochd, "handoff_done"), []);
  // It comes while the first one's predecessor drains, and waits for its turn.
  const second = epochd.command("restart", "--wait", "live", "--json");
  await epochd.waitForEvent("trigger_deferred");
  const asked = await epochd.command("restart");
  assert.equal(asked.code, 0);
  assert.match(asked.stdout, /^accepted: service envoy, request \S+\n$/);
  const { service, outcome, from, to } = JSON.parse((await second).stdout);
  assert.deepEqual({ service, outcome, from, to }, { service: "envoy", outcome: "live", from: 1, to: 2 });
  assert.deepEqual(eventsOf(epochd, "handoff_began").map((event) => event.handoff), [1, 2]);
});

Deno.test("restart --wait when preflight refuses: the reason, exit code 1, nothing was touched; the next good one goes through", async () => {
  await using here = scene();
  const epochd = await here.start({ ...SHORT, extraArguments: ["--no-watch-config"] });
  here.edit({ change: (bootstrap) => bootstrap.no_such_field = 1 });
  const { code, stdout, stderr } = await epochd.command("restart", "--wait");
  assert.equal(code, 1);
  assert.match(stderr, /^refused \(bootstrap_invalid\): .*no_such_field.*\n$/);
  assert.match(stdout, /handoff 1 began/);
  const json = await epochd.command("restart", "--wait", "--json");
  assert.equal(json.code, 1);
  const { outcome, refusal, detail } = JSON.parse(json.stdout);
  assert.deepEqual({ outcome, refusal }, { outcome: "refused", refusal: "bootstrap_invalid" });
  assert.match(detail, /no_such_field/);
  assert.match((await epochd.command("status")).stdout, /refused .* ago: bootstrap_invalid .*no_such_field/);
  assert.deepEqual(eventsOf(epochd, "epoch_spawned").map(({ epoch }) => epoch), [0]);
  here.edit({ generation: "second" });
  assert.equal((await epochd.command("restart", "--wait=live")).code, 0);
});

Deno.test("the API's socket is 0600 in a folder of 0700, state and snapshots are for their owner alone", async () => {
  await using here = scene();
  const run = here.directory.at("run");
  const epochd = await here.start({
    environment: {},
    extraArguments: ["--api-socket", `${run}/made/api.sock`, "--state-dir", `${run}/made-too/state`],
  });
  await epochd.waitForEvent("api_listening");
  const mode = (path: string) => ((Deno.statSync(path).mode ?? 0) & 0o777).toString(8);
  assert.equal(mode(`${run}/made`), "700");
  assert.equal(mode(`${run}/made/api.sock`), "600");
  assert.equal(mode(`${run}/made-too/state`), "700");
  const answer = await runEpochd(["status", "--json", "--api-socket", `${run}/made/api.sock`]);
  assert.equal(answer.code, 0, answer.stderr);
  for (const { name } of Deno.readDirSync(`${run}/made-too/state/bootstrap`)) {
    assert.equal(mode(`${run}/made-too/state/bootstrap/${name}`), "600");
  }
  epochd.signal("SIGTERM");
  assert.equal((await epochd.exit).code, 0);
  const sockets = [...Deno.readDirSync(`${run}/made`)].filter((entry) => !entry.isSymlink);
  assert.deepEqual(sockets, []);
});

Deno.test("commands without a supervisor, or about a service that is not there, end with 1 and say so", async () => {
  await using here = scene();
  const socket = here.directory.at("none.sock");
  for (const command of [["status"], ["restart", "--wait"]]) {
    const { code, stderr } = await runEpochd([...command, "--api-socket", socket]);
    assert.equal(code, 1);
    assert.match(stderr, new RegExp(`^error: .*${socket}.*epochd run.*--api-socket`));
  }
  const epochd = await here.start();
  await epochd.waitForEvent("api_listening");
  const unknown = await epochd.command("restart", "--service", "nginx");
  assert.equal(unknown.code, 1);
  assert.match(unknown.stderr, /no service nginx, expected one of: envoy/);
});

Deno.test("restart --wait whose supervisor is stopped meanwhile ends with 1 and says so", async () => {
  await using here = scene();
  const epochd = await here.start();
  const waiting = epochd.command("restart", "--wait");
  await handoff(epochd, 1);
  epochd.signal("SIGTERM");
  assert.equal((await epochd.exit).code, 0);
  const { code, stdout, stderr } = await waiting;
  // The predecessor ended by protocol before the supervisor did: what was asked for has happened.
  assert.deepEqual([code, stderr], [0, ""]);
  assert.match(stdout, /^done: epoch 1 serves, epoch 0 has ended$/m);
  await until("nothing is left", () => epochd.envoyPids().length === 0);
});
