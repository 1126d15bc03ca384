import assert from "node:assert/strict";
import type { Epoch } from "../../../lib/core/epoch.ts";
import type { Happening } from "../../../lib/core/event.ts";
import type { Settings } from "../../../lib/core/settings.ts";
import { initialState, type State } from "../../../lib/core/state.ts";
import { transition } from "../../../lib/core/transition.ts";
import { serviceSchema } from "../../../lib/config/service_schema.ts";
import { toServiceConfig, toSettings } from "../../../lib/config/service_config.ts";

const settings: Settings = toSettings(toServiceConfig("envoy", serviceSchema.parse({ envoy_config: "/x" })), false);

const epoch: Epoch = {
  attempt: 1,
  number: 0,
  plan: {
    key: "k",
    bootstrapDigest: "b",
    binaryDigest: "c",
    bootstrapPath: "/s/b.yaml",
    binaryPath: "/envoy",
    admin: { kind: "tcp", host: "127.0.0.1", port: 1 },
  },
  spawnedAtMs: 0,
  liveAtMs: 0,
  version: "v",
  hotRestartVersion: "11.104",
};

const serving: State = {
  ...initialState,
  attempts: 1,
  phase: {
    kind: "serving",
    epoch,
    predecessor: undefined,
    health: { kind: "answering" },
    compare: undefined,
    foreign: undefined,
  },
};

function timers(state: State, happening: Happening, change: Partial<Settings> = {}, atMs = 1_000) {
  const { effects, state: next } = transition(state, { ...happening, atMs }, { ...settings, ...change });
  const set = effects.flatMap((effect) => effect.kind === "set_timer" ? [[effect.name, effect.afterMs] as const] : []);
  return { set: Object.fromEntries(set), next };
}

Deno.test("new settings hold for timers that run: the watchdog asks by the new bound", () => {
  assert.equal(timers(serving, { kind: "settings" }, { watchdogMs: 900 }).set.watchdog, 300);
});

Deno.test("new settings hold for a change that rests, and for one that waits its jitter", () => {
  const resting: State = { ...serving, debouncing: { jitter: 0, subject: "bootstrap" } };
  assert.equal(timers(resting, { kind: "settings" }, { debounceMs: 50 }).set.debounce, 50);
  const pending = {
    sources: ["signal"],
    requests: [],
    when: "always",
    force: false,
    sinceMs: 0,
    notBeforeMs: 0,
  } as const;
  const waiting: State = { ...serving, pending: { ...pending, told: "min_gap" } };
  assert.equal(timers(waiting, { kind: "settings" }, { minGapMs: 5_000 }).set.min_gap, 4_000);
  assert.equal(timers(waiting, { kind: "settings" }, { minGapMs: 500 }).next.phase.kind, "replacing");
});

Deno.test("new settings move the deadline of a child that starts, counted from its spawn", () => {
  const { attempt, number, plan, spawnedAtMs } = epoch;
  const child = { attempt, number, plan, spawnedAtMs };
  const comeback = { cause: "first", number: 0, plan, parent: undefined, gapSinceMs: undefined, tries: 0 } as const;
  const step = { kind: "initialising", child, told: "", deadlineAtMs: undefined } as const;
  const phase = { kind: "starting", comeback, step } as unknown as State["phase"];
  const starting: State = { ...serving, phase };
  assert.equal(timers(starting, { kind: "settings" }, { liveTimeoutMs: 5_000 }).set.deadline, 4_000);
  assert.equal(timers(starting, { kind: "settings" }, { liveTimeoutMs: 500 }).set.deadline, 0);
});

Deno.test("what nobody watches any more is forgotten, and asks for nothing", () => {
  const seen: State = {
    ...serving,
    seen: { bootstrap: { kind: "usable", digest: "other" }, binary: { kind: "usable", digest: "c" } },
    watch: { bootstrap: "events", binary: "events" },
  };
  const { next } = timers(seen, { kind: "unwatched", subject: "bootstrap" });
  assert.deepEqual([next.seen, next.watch], [{ binary: { kind: "usable", digest: "c" } }, { binary: "events" }]);
});

Deno.test("an epoch that ends its predecessor by an old parent shutdown time is not overtaken by a new, shorter one", () => {
  const successor: Epoch = { ...epoch, attempt: 2, number: 1, plan: { ...epoch.plan, parentShutdownTimeMs: 600_000 } };
  const { attempt, number, plan, spawnedAtMs } = successor;
  const replacing: State = {
    ...serving,
    attempts: 2,
    phase: {
      kind: "replacing",
      from: epoch,
      health: { kind: "answering" },
      handoff: { id: 1, source: "api", requests: [], when: "always", force: false, tries: 0, beganAtMs: 0 },
      predecessor: undefined,
      step: {
        kind: "initialising",
        child: { attempt, number, plan, spawnedAtMs },
        told: "",
        deadlineAtMs: undefined,
        before: undefined,
      },
    } as unknown as State["phase"],
  };
  const identity = { epoch: 1, state: "LIVE", version: "v", hotRestartVersion: "11.104" };
  const live = timers(replacing, {
    kind: "identity",
    attempt: 2,
    askedAtMs: 900,
    answer: { kind: "answered", identity },
  } as Happening, { parentShutdownTimeMs: 15_000 });
  assert.ok(live.set.predecessor! > 600_000, JSON.stringify(live.set));
});
