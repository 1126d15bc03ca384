// Owns: what the service manager is told by facts, without a socket.
import assert from "node:assert/strict";
import type { Fact } from "../../../lib/core/fact.ts";
import type { ServiceStatus } from "../../../lib/core/status.ts";
import { Manager, type ManagerOptions, watchdogMsOf } from "../../../lib/observe/manager.ts";
import { statusLine } from "../../../lib/observe/manager_words.ts";

const epoch = { epoch: 3, attempt: 1, bootstrapDigest: "b", binaryDigest: "x", admin: "a", ageMs: 1 };
const serving: ServiceStatus = {
  phase: "serving",
  ready: true,
  epochs: [{ ...epoch, role: "newest", version: "1.40.0", liveForMs: 1 }],
  handoffs: 0,
  refused: [],
  watch: [],
};

function stage(more: Partial<ManagerOptions> = {}) {
  const sent: string[] = [];
  const problems: string[] = [];
  let services: Readonly<Record<string, ServiceStatus>> = { edge: serving };
  const manager = new Manager({
    send: (text) => void sent.push(text),
    monotonicUsec: () => "17",
    status: () => ({ version: "1", pid: 7, startedAtMs: 0, stopping: false, services }),
    pulse: (seen) => seen(),
    problem: (text) => void problems.push(text),
    pid: 7,
    isMain: () => true,
    ...more,
  });
  let seq = 0;
  return {
    manager,
    problems,
    set: (next: Readonly<Record<string, ServiceStatus>>) => void (services = next),
    async fact(fact: Fact, service = "edge") {
      manager.observe({ seq: ++seq, service, wallMs: 0, fact });
      await Promise.resolve();
    },
    /** What came since the last look, the status aside. */
    lines() {
      const lines = sent.splice(0).flatMap((text) => text.split("\n"));
      return lines.filter((line) => !line.startsWith("STATUS=") && !line.startsWith("EXTEND_TIMEOUT_USEC="));
    },
    [Symbol.dispose]: () => manager.close(),
  };
}

const live: Fact = { kind: "epoch_live", epoch: 0, pid: 1, version: "v", tookMs: 1 };
const accepted: Fact = { kind: "trigger_accepted", source: "signal", requests: [] };

Deno.test("READY=1 comes once, when the last service of the start is LIVE", async () => {
  using here = stage({
    status: () => ({ version: "1", pid: 7, startedAtMs: 0, stopping: false, services: { a: serving, b: serving } }),
  });
  await here.fact(live, "a");
  assert.deepEqual(here.lines(), []);
  await here.fact(live, "b");
  assert.deepEqual(here.lines(), ["READY=1"]);
  await here.fact(live, "a");
  assert.deepEqual(here.lines(), []);
});

Deno.test("SIGHUP + RELOADING=1 with its time at once, READY=1 when nothing waits and nobody is on the way", async () => {
  using here = stage();
  await here.fact(live);
  here.lines();
  here.manager.shell({ kind: "signal_received", signal: "SIGHUP" });
  assert.deepEqual(here.lines(), ["RELOADING=1", "MONOTONIC_USEC=17"]);
  await Promise.resolve();
  assert.deepEqual(here.lines(), [], "the file is being read");
  here.set({ edge: { ...serving, waiting: { sources: ["signal"], forMs: 1 } } });
  await here.fact(accepted);
  here.set({ edge: { ...serving, phase: "replacing" } });
  await here.fact({ kind: "trigger_deferred", reason: "handoff" });
  assert.deepEqual(here.lines(), []);
  here.set({ edge: serving });
  await here.fact(live);
  assert.deepEqual(here.lines(), ["READY=1"]);
});

Deno.test("SIGHUP that is refused + READY=1, and the reason in the status until a handoff goes well", async () => {
  using here = stage();
  await here.fact(live);
  here.manager.shell({ kind: "signal_received", signal: "SIGHUP" });
  here.lines();
  here.manager.shell({ kind: "config_refused", source: "signal", who: "SIGHUP", refusal: "invalid", detail: "no" });
  await Promise.resolve();
  assert.deepEqual(here.lines(), ["READY=1"]);
});

Deno.test("a stop + STOPPING=1 once, and no RELOADING or READY after it", async () => {
  using here = stage();
  await here.fact(live);
  here.lines();
  await here.fact({ kind: "stop_asked", source: "SIGTERM", times: 1 });
  await here.fact({ kind: "stop_asked", source: "SIGTERM", times: 2 });
  here.manager.shell({ kind: "signal_received", signal: "SIGHUP" });
  here.manager.shell({ kind: "supervisor_ended", exitCode: 0 });
  await here.fact(live);
  assert.deepEqual(here.lines(), ["STOPPING=1"]);
});

Deno.test("handed over + MAINPID is the last word", async () => {
  using here = stage();
  await here.fact(live);
  here.lines();
  here.manager.shell({ kind: "upgrade_handed_over", pid: 42 });
  here.manager.shell({ kind: "supervisor_ended", exitCode: 0 });
  await here.fact({ kind: "stop_asked", source: "SIGTERM", times: 1 });
  assert.deepEqual(here.lines(), ["MAINPID=42"]);
});

Deno.test("mailboxes that do not move + the watchdog is not fed", () => {
  using stuck = stage({ pulse: () => {}, watchdogMs: 60_000 });
  assert.deepEqual(stuck.lines(), []);
  using moving = stage({ watchdogMs: 60_000 });
  assert.deepEqual(moving.lines(), ["WATCHDOG=1"]);
});

Deno.test("beside the supervisor that it takes over from it is silent", async () => {
  using here = stage({ isMain: () => false, watchdogMs: 60_000 });
  await here.fact(live);
  here.manager.shell({ kind: "signal_received", signal: "SIGHUP" });
  assert.deepEqual(here.lines(), []);
});

Deno.test("a manager that is away is told of once for each reason", async () => {
  let problem: string | undefined = "nobody";
  using here = stage({ send: () => problem });
  await here.fact(live);
  await here.fact({ kind: "stop_asked", source: "SIGTERM", times: 1 });
  assert.deepEqual(here.problems, ["nobody"]);
  problem = undefined;
});

Deno.test("WATCHDOG_USEC counts where it is a number and meant for this process", () => {
  const of = (env: Readonly<Record<string, string>>) => watchdogMsOf((name) => env[name], 7);
  assert.equal(of({ WATCHDOG_USEC: "30000000" }), 30_000);
  assert.equal(of({ WATCHDOG_USEC: "30000000", WATCHDOG_PID: "7" }), 30_000);
  assert.equal(of({ WATCHDOG_USEC: "30000000", WATCHDOG_PID: "8" }), undefined);
  for (const garbage of ["", "0", "-1", "1e6", "soon", "99999999999999999999"]) {
    assert.equal(of({ WATCHDOG_USEC: garbage }), undefined, garbage);
  }
});

Deno.test("the status line says who serves, what is under way and what was refused", () => {
  const line = (services: Readonly<Record<string, ServiceStatus>>, refused?: string) =>
    statusLine({ version: "1", pid: 7, startedAtMs: 0, stopping: false, services }, refused);
  assert.equal(line({ edge: serving }), "epoch 3 (Envoy 1.40.0) serves");
  const draining = { ...serving, epochs: [...serving.epochs, { ...epoch, epoch: 2, role: "predecessor" as const }] };
  assert.equal(
    line({ a: draining, b: { ...serving, phase: "replacing", step: "preflight" } }, "bootstrap_invalid: line 3"),
    "a: epoch 3 (Envoy 1.40.0) serves, epoch 2 drains; " +
      "b: epoch 3 (Envoy 1.40.0) serves, handoff under way (preflight); last refused: bootstrap_invalid: line 3",
  );
  assert.equal(
    line({ edge: { ...serving, phase: "detecting", step: "deciding", epochs: [] } }),
    "detecting (deciding)",
  );
  assert.ok(line({ edge: serving }, "x\ny".padEnd(5_000, "z")).length <= 400);
  assert.equal(line({ edge: serving }, "x\ny").includes("\n"), false);
});
