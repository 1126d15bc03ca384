import { deepStrictEqual, ok, strictEqual } from "node:assert/strict";
import { BinarySlots } from "../../../lib/adapters/slots.ts";
import type { Plan } from "../../../lib/core/epoch.ts";
import type { Fact } from "../../../lib/core/fact.ts";
import { type Refusal, refusal } from "../../../lib/core/refusal.ts";
import type { ShellFact } from "../../../lib/observe/shell_fact.ts";
import { BinarySwitch } from "../../../lib/runtime/binary_switch.ts";
import type { Switched, Upload } from "../../../lib/runtime/binaries.ts";
import { tempDir } from "../../support/tempdir.ts";
import { until } from "../../support/until.ts";

const options = { force: false, drained: false, gone: new AbortController().signal };
const exit = { code: 139, signal: "SIGSEGV" };

function upload(text: string): Upload {
  return {
    pieces: (async function* () {
      yield await Promise.resolve(new TextEncoder().encode(text));
    })(),
  };
}

async function stage() {
  const directory = tempDir();
  const slots = new BinarySlots(directory.at("slots"), () => ({ publicKeys: [], maxBytes: 100, installed: "/envoy" }));
  await slots.prepare();
  const told: ShellFact[] = [];
  const timers: { readonly afterMs: number; readonly fire: () => void; cancelled: boolean }[] = [];
  const world = {
    binaryPath: "/envoy" as string | undefined,
    notNow: undefined as string | undefined,
    verdict: { version: "1.40.0" } as { readonly version: string } | Refusal,
    checking: Promise.resolve(),
    /** Facts that come within the asking. */
    atOnce: [] as Fact[],
  };
  let requests = 0;
  const change: BinarySwitch = new BinarySwitch({
    service: "envoy",
    slots,
    serving: () => world.binaryPath === undefined ? undefined : { binaryPath: world.binaryPath } as Plan,
    notNow: () => world.notNow,
    check: async () => {
      await world.checking;
      return world.verdict;
    },
    trigger: () => {
      const request = `r${++requests}`;
      for (const fact of world.atOnce.splice(0)) change.hear({ ...fact, requests: [request] } as Fact);
      return request;
    },
    trialMs: () => 300_000,
    tell: (fact) => void told.push(fact),
    after: (afterMs, fire) => {
      const timer = { afterMs, fire, cancelled: false };
      timers.push(timer);
      return () => void (timer.cancelled = true);
    },
  });
  const live = (requests: readonly string[]): Fact => {
    return { kind: "handoff_live", handoff: 1, from: 0, to: 1, requests, tookMs: 1 };
  };
  return {
    slots,
    told,
    timers,
    world,
    change,
    /** Pushes and goes LIVE. */
    async serve(text: string): Promise<string> {
      const switched = await change.push(upload(text), options);
      ok(switched.kind === "switched", JSON.stringify(switched));
      world.binaryPath = slots.pathOf(switched.digest);
      change.hear(live([switched.request]));
      return switched.digest!;
    },
    live,
    failed: (requests: readonly string[]): Fact => ({
      kind: "handoff_failed",
      handoff: 1,
      from: 0,
      to: 1,
      requests,
      refusal: refusal("child_died", "it died"),
      tookMs: 1,
    }),
    died: (answer: "rollback" | "exit" | "revival"): Fact => ({ kind: "newest_died", epoch: 1, exit, answer }),
    toldKinds: () => told.map(({ kind }) => kind),
    isOnTrial: async () => {
      const listed = await change.list();
      return listed.kind === "listed" && listed.list.trial !== undefined;
    },
    async [Symbol.asyncDispose]() {
      await change.close();
      await directory[Symbol.asyncDispose]();
    },
  };
}

const nameOf = (switched: Switched) => switched.kind === "refused" ? switched.refusal.name : switched.kind;

Deno.test("switch: LIVE and then its time over prove a push, and the next one needs no waiting", async () => {
  await using here = await stage();
  const one = await here.serve("one");
  deepStrictEqual(await here.slots.links(), { current: one });
  ok(await here.isOnTrial());
  strictEqual(here.timers[0]?.afterMs, 300_000);
  here.timers[0]?.fire();
  await until("it is proven", () => here.toldKinds().includes("binary_proven"));
  await until("the trial is over", async () => !await here.isOnTrial());
  // The record goes before the lock does.
  const two = await until("the next push is taken", () => here.serve("two").catch(() => undefined));
  deepStrictEqual(await here.slots.links(), { current: two, previous: one });
});

Deno.test("switch: a push on a trial goes on from there, and its own failure goes back to what was LIVE", async () => {
  await using here = await stage();
  const one = await here.serve("one");
  const switched = await here.change.push(upload("two"), options);
  ok(switched.kind === "switched" && here.timers[0]?.cancelled);
  here.change.hear(here.failed([switched.request]));
  await until("it is undone", () => here.toldKinds().includes("binary_undone"));
  deepStrictEqual(await here.slots.links(), { current: one });
});

Deno.test("switch: a handoff that fails, a trigger that is dropped and a death on trial put the links back", async () => {
  for (const how of ["failed", "dropped", "died", "died unseen", "ended"] as const) {
    await using here = await stage();
    if (how === "died") {
      await here.serve("one");
      here.change.hear(here.died("rollback"));
    } else {
      const switched = await here.change.push(upload("one"), options);
      ok(switched.kind === "switched");
      const requests = [switched.request];
      const why = refusal("superseded", "another pod");
      if (how === "failed") here.change.hear(here.failed(requests));
      if (how === "dropped") here.change.hear({ kind: "trigger_dropped", source: "push", requests, refusal: why });
      if (how === "died unseen") {
        here.change.hear(here.live(requests));
        here.change.hear(here.died("rollback"));
      }
      if (how === "ended") here.change.hear({ kind: "ended", exitCode: 1, reason: "it died" });
    }
    await until(how, () => here.toldKinds().includes("binary_undone"));
    deepStrictEqual(await here.slots.links(), {}, how);
    ok(here.timers.every(({ cancelled }) => cancelled), how);
  }
});

Deno.test("switch: what happens while a hot restart is asked for is not missed", async () => {
  await using here = await stage();
  here.world.atOnce.push(here.failed([]));
  strictEqual((await here.change.push(upload("one"), options)).kind, "switched");
  await until("it is undone", () => here.toldKinds().includes("binary_undone"));
  deepStrictEqual(await here.slots.links(), {});
});

Deno.test("switch: a revival, and another request's failure, change nothing", async () => {
  await using here = await stage();
  const one = await here.serve("one");
  here.change.hear(here.died("revival"));
  here.change.hear(here.failed(["another"]));
  deepStrictEqual(await here.slots.links(), { current: one });
  ok(await here.isOnTrial());
});

Deno.test("switch: one at a time, and not where nothing serves", async () => {
  await using here = await stage();
  let go = () => {};
  here.world.checking = new Promise((resolve) => go = resolve);
  const first = here.change.push(upload("one"), options);
  strictEqual(nameOf(await here.change.push(upload("two"), options)), "push_busy");
  strictEqual(nameOf(await here.change.rollBack(undefined, options)), "push_busy");
  go();
  strictEqual((await first).kind, "switched");
  strictEqual(nameOf(await here.change.push(upload("two"), options)), "push_busy");
  here.world.notNow = "it is stopping";
  await using other = await stage();
  other.world.notNow = "it is stopping";
  strictEqual(nameOf(await other.change.push(upload("two"), options)), "push_not_now");
});

Deno.test("switch: an epoch on trial that dies while the next push is checked ends that push and is undone itself", async () => {
  await using here = await stage();
  await here.serve("one");
  let go = () => {};
  here.world.checking = new Promise((resolve) => go = resolve);
  const second = here.change.push(upload("two"), options);
  here.change.hear(here.died("rollback"));
  here.world.binaryPath = "/envoy";
  go();
  strictEqual(nameOf(await second), "push_not_now");
  await until("the first is undone", () => here.toldKinds().includes("binary_undone"));
  deepStrictEqual(await here.slots.links(), {});
});

Deno.test("switch: a push that is refused does not make the trial before it longer", async () => {
  await using here = await stage();
  await here.serve("one");
  here.world.verdict = refusal("hot_restart_version_differs", "other");
  strictEqual((await here.change.push(upload("two"), options)).kind, "refused");
  deepStrictEqual([here.timers.length, here.timers[0]?.cancelled], [1, false]);
  let go = () => {};
  here.world.checking = new Promise((resolve) => go = resolve);
  const third = here.change.push(upload("three"), options);
  ok(await here.isOnTrial());
  here.timers[0]?.fire();
  ok(!here.toldKinds().includes("binary_proven"));
  go();
  strictEqual((await third).kind, "refused");
  await until("it is proven", () => here.toldKinds().includes("binary_proven"));
});

Deno.test("switch: an orderly end accepts what is on trial, also while another push is taken in", async () => {
  for (const end of ["before the next start", "to another supervisor"] as const) {
    await using here = await stage();
    const one = await here.serve("one");
    let go = () => {};
    here.world.checking = new Promise((resolve) => go = resolve);
    const second = here.change.push(upload("two"), options);
    here.change.hear(
      end === "to another supervisor"
        ? { kind: "superseded", epoch: 1, successor: 2, policy: "wait" }
        : { kind: "ended", exitCode: 0, reason: "SIGTERM" },
    );
    here.world.notNow = "it is ended";
    await here.change.close();
    ok(here.toldKinds().includes("binary_proven"));
    const later = new BinarySlots(here.slots.directory, () => ({ publicKeys: [], maxBytes: 100, installed: "/envoy" }));
    go();
    strictEqual(nameOf(await second), "push_not_now");
    deepStrictEqual(await later.prepare(), { mended: [] }, end);
    deepStrictEqual(await later.links(), { current: one }, end);
  }
});

Deno.test("switch: where the core goes back while a push is taken in, current follows once somebody serves", async () => {
  await using here = await stage();
  const one = await here.serve("one");
  here.timers[0]?.fire();
  await until("the trial is over", async () => !await here.isOnTrial());
  await switchByOtherMeans(here, "two");
  let go = () => {};
  here.world.checking = new Promise((resolve) => go = resolve);
  const third = here.change.push(upload("three"), options);
  here.change.hear(here.died("rollback"));
  here.world.binaryPath = undefined;
  go();
  strictEqual(nameOf(await third), "push_not_now");
  here.world.binaryPath = here.slots.pathOf(one);
  here.change.hear({ kind: "epoch_live", epoch: 1, pid: 1, version: "x", tookMs: 1 });
  await until("current follows", async () => (await here.slots.links()).current === one);
});

Deno.test("switch: an epoch that dies while the links are written ends that push: what it would go back to has died", async () => {
  await using here = await stage();
  await here.serve("one");
  const { slots } = here;
  const switchTo = slots.switchTo.bind(slots);
  slots.switchTo = async (digest) => {
    const trial = await switchTo(digest);
    here.change.hear(here.died("rollback"));
    here.world.binaryPath = "/envoy";
    return trial;
  };
  strictEqual(nameOf(await here.change.push(upload("two"), options)), "push_not_now");
  await until("the first is undone", () => here.toldKinds().includes("binary_undone"));
  deepStrictEqual(await slots.links(), {});
});

Deno.test("switch: a check that says no leaves nothing, and what was before still stands", async () => {
  await using here = await stage();
  here.world.verdict = refusal("hot_restart_version_differs", "other");
  strictEqual(nameOf(await here.change.push(upload("one"), options)), "hot_restart_version_differs");
  deepStrictEqual(await here.slots.list(undefined), []);
  strictEqual(await here.slots.take(), undefined);
  here.slots.release();
});

Deno.test("switch: where the core goes back by itself, current follows what serves", async () => {
  await using here = await stage();
  const one = await here.serve("one");
  here.timers[0]?.fire();
  await until("the trial is over", async () => !await here.isOnTrial());
  // By other means: another slot, and current moved there; its epoch dies, and the core goes back.
  await switchByOtherMeans(here, "two");
  here.change.hear(here.died("rollback"));
  here.change.hear({ kind: "epoch_live", epoch: 1, pid: 1, version: "x", tookMs: 1 });
  await until("current follows", async () => (await here.slots.links()).current === one);
});

Deno.test("switch: an orderly end on trial accepts what serves; a rollback by hand has no trial", async () => {
  await using here = await stage();
  const one = await here.serve("one");
  here.change.hear({ kind: "ended", exitCode: 0, reason: "SIGTERM" });
  await here.change.close();
  deepStrictEqual(await here.slots.links(), { current: one });
  ok(here.toldKinds().includes("binary_proven"));
  await using other = await stage();
  await other.serve("one");
  const back = await other.change.rollBack(undefined, options);
  ok(back.kind === "switched");
  other.change.hear(other.live([back.request]));
  strictEqual(other.timers.at(-1)?.afterMs, 0);
});

/** Another slot, and `current` moved there, without a push. */
async function switchByOtherMeans({ slots }: Awaited<ReturnType<typeof stage>>, text: string): Promise<void> {
  const received = await slots.receive(upload(text));
  ok(received.kind === "received");
  await slots.adopt(received, "1");
  await slots.switchTo(received.digest);
  await slots.accept();
}
