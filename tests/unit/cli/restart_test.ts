import assert from "node:assert/strict";
import { restartCommand, type RestartOptions } from "../../../lib/cli/restart_command.ts";
import type { Fact } from "../../../lib/core/fact.ts";
import { FakeControl, handoffFacts, servingStatus } from "../api/fake_control.ts";
import { serve, type Serving } from "../api/serving.ts";
import { within } from "../../support/until.ts";
import { FakeTerminal } from "./fake_terminal.ts";

/** A supervisor on which every request brings these facts. */
async function supervisor(facts: (request: string) => readonly Fact[]): Promise<Serving> {
  const control = new FakeControl();
  control.onTrigger = ({ request }) => {
    for (const fact of facts(request)) control.happen(fact);
  };
  return await serve({}, control);
}

const whole = (request: string) => {
  const { accepted, began, passed, spawned, live, done } = handoffFacts(request);
  return [accepted, began, passed, spawned, live, done];
};

async function restart(api: Serving, options: Partial<RestartOptions> = {}, terminal = new FakeTerminal()) {
  const asked = { socket: api.path, force: false, drained: false, dryRun: false, json: false, ...options };
  const code = await within("the end of the command", restartCommand(asked, terminal));
  return { code, terminal };
}

Deno.test("restart asks and returns, with the name of the request", async () => {
  await using api = await supervisor(whole);
  const { code, terminal } = await restart(api);
  assert.deepEqual([code, terminal.stderr], [0, ""]);
  assert.equal(terminal.stdout, "accepted: service edge, request r1\n");
  const json = await restart(api, { json: true, force: true });
  assert.deepEqual(JSON.parse(json.terminal.stdout), { service: "edge", request: "r2", outcome: "accepted" });
  assert.equal(api.control.asked[1]?.force, true);
});

Deno.test("restart --wait shows each step as a plain line and ends when the predecessor has ended", async () => {
  await using api = await supervisor(whole);
  const { code, terminal } = await restart(api, { wait: "drained" });
  assert.deepEqual([code, terminal.stderr], [0, ""]);
  const lines = terminal.stdout.trimEnd().split("\n").map((line) => line.replace(/^ *\d+ m?s {2}/, ""));
  assert.deepEqual(lines, [
    "accepted a trigger by api",
    "handoff 1 began: epoch 0 to 1, by api",
    "preflight passed in 80 ms: bootstrap bbbbbbbbbbbb, executable cccccccccccc",
    "epoch 1 has pid 42",
    "handoff 1: epoch 1 serves after 300 ms, epoch 0 drains",
    "handoff 1 is done: epoch 0 has ended after a drain of 900 ms",
    "done: epoch 1 serves, epoch 0 has ended",
  ]);
});

Deno.test("restart --wait=live ends at LIVE", async () => {
  await using api = await supervisor((request) => whole(request).slice(0, 5));
  const { code, terminal } = await restart(api, { wait: "live" });
  assert.equal(code, 0);
  assert.match(terminal.stdout, /\ndone: epoch 1 is LIVE after 300 ms, epoch 0 drains\n$/);
});

Deno.test("restart --drained says first whom it cuts; --dry-run does nothing more, and is refused without --drained", async () => {
  await using api = await supervisor((request) => {
    const { accepted, began } = handoffFacts(request);
    const of = { handoff: 1, from: 0, to: 0, requests: [request] };
    return [accepted, began, { kind: "handoff_live", ...of, tookMs: 2_000, drainedFirst: true }];
  });
  api.observed.census = { edge: { active: 3 } };
  const told =
    "a drained restart of edge ends 3 connections, given 10 s to leave; until the new Envoy is LIVE nobody is served\n";
  const plan = await restart(api, { drained: true, dryRun: true });
  assert.deepEqual([plan.code, plan.terminal.stdout, api.control.asked.length], [0, told, 0]);
  const json = await restart(api, { drained: true, dryRun: true, json: true });
  assert.deepEqual(JSON.parse(json.terminal.stdout), {
    service: "edge",
    outcome: "planned",
    connections: 3,
    drainTimeMs: 10_000,
  });
  const done = await restart(api, { drained: true, wait: "live" });
  assert.equal(done.code, 0);
  assert.ok(done.terminal.stdout.startsWith(told), done.terminal.stdout);
  assert.match(done.terminal.stdout, /\ndone: epoch 0 is LIVE after 2 s, epoch 0 has ended before it\n$/);
  assert.deepEqual(api.control.asked.map(({ drained }) => drained), [true]);
  const misuse = await restart(api, { dryRun: true });
  assert.deepEqual([misuse.code, misuse.terminal.stdout], [2, ""]);
  assert.match(misuse.terminal.stderr, /--dry-run is for --drained/);
});

Deno.test("restart --wait --json prints the outcome alone", async () => {
  await using api = await supervisor(whole);
  const { terminal } = await restart(api, { wait: "drained", json: true });
  assert.deepEqual(JSON.parse(terminal.stdout), {
    service: "edge",
    request: "r1",
    outcome: "drained",
    from: 0,
    to: 1,
    tookMs: 300,
    drainedMs: 900,
  });
});

Deno.test("restart that is refused exits 1 with name and detail, with and without --wait", async () => {
  const refused = (request: string) => {
    const { accepted, began, failed } = handoffFacts(request);
    return [accepted, began, failed];
  };
  await using failing = await supervisor(refused);
  const waited = await restart(failing, { wait: "drained" });
  assert.equal(waited.code, 1);
  assert.equal(waited.terminal.stderr, "refused (bootstrap_invalid): envoy.yaml: no such field\n");
  const json = await restart(failing, { wait: "live", json: true });
  assert.equal(json.code, 1);
  assert.equal((JSON.parse(json.terminal.stdout) as { refusal: string }).refusal, "bootstrap_invalid");
  await using stopping = await supervisor((request) => [handoffFacts(request).dropped]);
  for (const wait of [undefined, "live"] as const) {
    const { code, terminal } = await restart(stopping, wait === undefined ? {} : { wait });
    assert.equal(code, 1);
    assert.equal(terminal.stderr, "error: refused (stopping): epochd stops\n");
  }
});

Deno.test("restart chooses the only service, and wants a name where there are several or none is known", async () => {
  await using api = await supervisor(whole);
  api.control.services = { edge: servingStatus, core: servingStatus };
  const unnamed = await restart(api);
  assert.equal(unnamed.code, 2);
  assert.equal(unnamed.terminal.stderr, "error: several services run, expected --service and one of: edge, core\n");
  assert.equal((await restart(api, { service: "edge" })).code, 0);
  const unknown = await restart(api, { service: "none" });
  assert.equal(unknown.code, 1);
  assert.match(unknown.terminal.stderr, /no service none, expected one of: edge, core/);
});

Deno.test("restart --wait shows none of the steps of another handoff that runs before", async () => {
  const control = new FakeControl();
  control.onTrigger = ({ request }) => {
    const own = handoffFacts(request);
    control.happen(own.accepted);
    control.happen({ kind: "trigger_deferred", reason: "handoff" });
    control.happen({ kind: "epoch_spawned", epoch: 7, attempt: 7, pid: 7 });
    control.happen(handoffFacts("other").live);
    control.happen(handoffFacts("other").done);
    control.happen({ kind: "epoch_spawned", epoch: 9, attempt: 9, pid: 9 }, "core");
    for (const fact of [own.began, own.spawned, own.live]) control.happen(fact);
  };
  await using api = await serve({}, control);
  const { terminal } = await restart(api, { wait: "live" });
  assert.doesNotMatch(terminal.stdout, /pid [79]/);
  assert.equal(terminal.stdout.match(/ serves after /g)?.length, 1);
  assert.match(terminal.stdout, /trigger waits: a handoff is under way/);
});

Deno.test("restart --wait exits 1 when the supervisor ends in between", async () => {
  await using api = await serve();
  api.control.onTrigger = ({ request }) => {
    api.control.happen(handoffFacts(request).accepted);
    setTimeout(() => void api.close(), 20);
  };
  const { code, terminal } = await restart(api, { wait: "live" });
  assert.equal(code, 1);
  assert.match(terminal.stderr, /ended before request r1 had an outcome/);
});

Deno.test("restart --wait on a terminal counts what goes on in a line of its own and clears it", async () => {
  await using api = await supervisor(whole);
  const { terminal } = await restart(api, { wait: "drained" }, new FakeTerminal(true, false));
  for (const going of ["waiting", "preflight", "start", "initialising", "draining"]) {
    assert.ok(terminal.stdout.includes(`\r\x1b[K... ${going}, `), going);
  }
  const seen = terminal.stdout.split("\n").map((line) => line.split("\r\x1b[K").at(-1));
  assert.ok(!seen.some((line) => line?.startsWith("...")), seen.join("\n"));
});
