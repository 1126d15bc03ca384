// Owns: the change of epochd itself, step by step, against a successor that does what the test says.
import assert from "node:assert/strict";
import type { ServiceConfig } from "../../../lib/config/service_config.ts";
import type { ServiceStatus } from "../../../lib/core/status.ts";
import type { ShellFact } from "../../../lib/observe/shell_fact.ts";
import { type Successor, Upgrade, type UpgradePorts } from "../../../lib/runtime/upgrade.ts";
import { upgradeObstacle } from "../../../lib/runtime/upgrade_obstacle.ts";

const serving: ServiceStatus = {
  phase: "serving",
  ready: true,
  epochs: [{
    epoch: 1,
    attempt: 1,
    role: "newest",
    bootstrapDigest: "b",
    binaryDigest: "x",
    admin: "a",
    ageMs: 1,
    liveForMs: 1,
  }],
  handoffs: 0,
  refused: [],
  watch: [],
};
const as = (phase: ServiceStatus["phase"], more: Partial<ServiceStatus> = {}): ServiceStatus => {
  return { ...serving, phase, epochs: [], ...more };
};
const config = (more: Partial<ServiceConfig> = {}) =>
  ({
    crossPod: true,
    liveTimeoutMs: 1_000,
    parentShutdownTimeMs: 1_000,
    controlPlaneWaitMs: 0,
    ...more,
  }) as ServiceConfig;
const place = { pid: 7, inPod: false, isUnheardMain: false };

/** Time goes on by `tick`. */
function stage(more: Partial<UpgradePorts> = {}) {
  const told: ShellFact[] = [];
  const done: string[] = [];
  const due: { readonly atMs: number; readonly fire: () => void }[] = [];
  let nowMs = 0;
  let answer: Readonly<Record<string, ServiceStatus>> | undefined;
  let end!: (how: { code: number; signal?: string }) => void;
  const exit = new Promise<{ code: number; signal?: string }>((resolve) => end = resolve);
  const successor: Successor = {
    pid: 42,
    exit,
    signal: (name) => void done.push(name),
    endOrphans: () => void done.push("orphans"),
    release: () => Promise.resolve(void done.push("released")),
  };
  const upgrade = new Upgrade({
    clock: {
      nowMs: () => nowMs,
      wallMs: () => 0,
      after: (ms, fire) => {
        due.push({ atMs: nowMs + ms, fire });
        return () => {};
      },
    },
    tell: (fact) => void told.push(fact),
    status: () => ({ version: "1", pid: 7, startedAtMs: 0, stopping: false, services: { envoy: serving } }),
    services: () => ({ envoy: config() }),
    surroundings: () => Promise.resolve(place),
    rehearse: () => Promise.resolve(undefined),
    check: () => Promise.resolve({ kind: "usable", version: "2" }),
    runningExecutable: () => "/bin/epochd",
    start: () => Promise.resolve(successor),
    ask: () => Promise.resolve(answer),
    ...more,
  });
  const settle = async () => {
    for (let turn = 0; turn < 20; turn++) await Promise.resolve();
  };
  return {
    upgrade,
    told,
    done,
    end,
    says: (services: Readonly<Record<string, ServiceStatus>> | undefined) => void (answer = services),
    begin: () => upgrade.begin("/new", "test", false),
    async tick(ms: number) {
      nowMs += ms;
      for (const { fire } of due.splice(0).filter((one) => one.atMs <= nowMs || !due.push(one))) fire();
      await settle();
    },
    kinds: () => told.map(({ kind }) => kind),
  };
}

Deno.test("an upgrade that goes well + told, and at the end the new one is named after it was let go", async () => {
  const here = stage();
  assert.deepEqual(await here.begin(), { kind: "started", executable: "/new", version: "2", pid: 42 });
  here.says({ envoy: as("starting", { step: "preflight" }) });
  await here.tick(200);
  assert.deepEqual([here.upgrade.status?.phase, here.upgrade.status?.services], ["starting", {
    envoy: "starting (preflight)",
  }]);
  here.says({ envoy: serving });
  await here.tick(200);
  assert.equal(here.upgrade.status?.phase, "taken_over");
  await here.upgrade.conclude(true);
  assert.deepEqual(here.kinds(), ["upgrade_began", "upgrade_taken_over", "upgrade_handed_over"]);
  assert.deepEqual(here.done, ["released"]);
});

Deno.test("the new one ends before it serves + its orphans end, the reason is told, and another may begin", async () => {
  const here = stage();
  await here.begin();
  here.end({ code: 3 });
  await here.tick(0);
  assert.deepEqual(here.done, ["orphans"]);
  assert.deepEqual(here.upgrade.status, {
    phase: "failed",
    executable: "/new",
    version: "2",
    pid: 42,
    detail: "it ended with exit code 3 (its first start failed the checks), its log says more",
  });
  assert.equal((await here.begin()).kind, "started");
});

Deno.test("the new one ends after it has taken over + its Envoys are left alone", async () => {
  const here = stage();
  await here.begin();
  here.says({ envoy: serving });
  await here.tick(200);
  here.end({ code: 137, signal: "SIGKILL" });
  await here.tick(0);
  assert.deepEqual(here.done, []);
  assert.equal(here.upgrade.status?.detail, "it ended by SIGKILL");
});

Deno.test("the new one never answers + SIGTERM at the bound, SIGKILL after it, and failed", async () => {
  const here = stage();
  await here.begin();
  await here.tick(30_000);
  assert.deepEqual(here.done, []);
  await here.tick(2_200);
  assert.deepEqual(here.done, ["SIGTERM"]);
  await here.tick(15_000);
  assert.deepEqual(here.done, ["SIGTERM", "SIGKILL"]);
  assert.match(here.upgrade.status!.detail!, /^not all of its services were LIVE within 32 s, and it was ended$/);
});

Deno.test("a part is taken over and the rest has failed + the new one is left with its part, and the next upgrade may begin", async () => {
  const here = stage();
  await here.begin();
  here.says({ a: serving, b: as("ended", { note: "bootstrap_invalid: x", exitCode: 3 }) });
  await here.tick(200);
  assert.deepEqual(here.done, []);
  assert.match(
    here.upgrade.status!.detail!,
    /^service b was not taken over \(bootstrap_invalid: x\); it serves the others on/,
  );
  assert.equal((await here.begin()).kind, "started");
  here.upgrade.stop();
  // Both that were begun here.
  assert.deepEqual(here.done, ["SIGTERM", "SIGTERM"]);
});

Deno.test("a stop on the way + the new one is told too, and its end is waited for", async () => {
  const here = stage();
  await here.begin();
  here.upgrade.stop();
  assert.deepEqual(here.done, ["SIGTERM"]);
  let isOver = false;
  const concluded = here.upgrade.conclude(true).then(() => isOver = true);
  await here.tick(0);
  assert.equal(isOver, false);
  here.end({ code: 0 });
  await concluded;
  assert.equal(here.kinds().includes("upgrade_handed_over"), false);
  const again = await here.begin();
  assert.equal(again.kind === "refused" && again.refusal.name, "stopping");
});

Deno.test("a second upgrade while one is checked or under way is refused as busy, whatever the file", async () => {
  let pass!: () => void;
  const gate = new Promise<undefined>((resolve) => pass = () => resolve(undefined));
  const here = stage({ rehearse: () => gate });
  const first = here.begin();
  const second = await here.begin();
  assert.equal(second.kind === "refused" && second.refusal.name, "busy");
  pass();
  assert.equal((await first).kind, "started");
  const third = await here.begin();
  assert.match(third.kind === "refused" ? third.refusal.detail : "", /to epochd 2 \(pid 42\) is under way/);
});

Deno.test("what stands in the way, each with what to do", () => {
  const name = (...args: Parameters<typeof upgradeObstacle>) => upgradeObstacle(...args)?.name;
  const one = { envoy: config() };
  assert.equal(name(one, { envoy: serving }, place), undefined);
  assert.equal(name(one, { envoy: serving }, { ...place, pid: 1 }), "would_restart_container");
  assert.equal(name(one, { envoy: serving }, { ...place, inPod: true }), "would_restart_container");
  assert.equal(name(one, { envoy: serving }, { ...place, parentInit: "tini" }), "would_restart_container");
  assert.equal(name(one, { envoy: serving }, { ...place, parentInit: "systemd" }), undefined);
  assert.equal(name(one, { envoy: serving }, { ...place, isUnheardMain: true }), "outlives_no_main_process");
  assert.equal(name({ a: config(), b: config({ crossPod: false }) }, {}, place), "not_cross_pod");
  assert.equal(name({ envoy: config({ whenSuperseded: "wait" }) }, {}, place), "stays_when_superseded");
  for (const phase of ["replacing", "yielding", "superseded"] as const) {
    assert.equal(name(one, { envoy: as(phase) }, place), "busy");
  }
  for (const phase of ["starting", "detecting", "pausing", "stopping"] as const) {
    assert.equal(name(one, { envoy: as(phase) }, place), "not_serving");
  }
  assert.equal(name(one, { envoy: serving, late: as("ended") }, place), undefined);
});
