// Owns: what may happen to a supervisor, drawn by fast-check, and how it is played. Must not: judge.

import fc from "fast-check";
import type { Settings } from "../../lib/core/settings.ts";
import type { Subject } from "../../lib/core/event.ts";
import type { Behaviour } from "./envoys.ts";
import { World } from "./world.ts";

export type Action =
  | { readonly kind: "hangup" }
  | { readonly kind: "request"; readonly force: boolean; readonly drained?: boolean }
  | { readonly kind: "edit"; readonly subject: Subject; readonly behaviour: Behaviour }
  /** Back to what was there before, or to the first. */
  | { readonly kind: "revert"; readonly subject: Subject; readonly steps: number }
  | { readonly kind: "spoil"; readonly subject: Subject }
  | { readonly kind: "kill"; readonly which: number; readonly signal: "SIGKILL" | "SIGTERM" }
  | { readonly kind: "freeze"; readonly which: number; readonly how: "stopped" | "dead_locked" }
  | { readonly kind: "thaw" }
  | { readonly kind: "marker"; readonly works: boolean }
  | { readonly kind: "repair"; readonly works: boolean }
  | { readonly kind: "kill_stand_in" }
  | { readonly kind: "stand_in"; readonly works: boolean }
  | { readonly kind: "control_plane"; readonly is: "none" | "connected" | "away" }
  | { readonly kind: "connections"; readonly count: number }
  | { readonly kind: "reopen" }
  | { readonly kind: "stop" };

export interface Scenario {
  readonly seed: number;
  readonly settings: Settings;
  readonly actions: readonly { readonly afterMs: number; readonly action: Action }[];
}

const behaviour = fc.constantFrom<Behaviour>(
  "good",
  "good",
  "good",
  "slow",
  "refused",
  "unreadable",
  "not_spawned",
  "dies_early",
  "dies_late",
  "stuck",
  "dies_after_live",
);
const subject = fc.constantFrom<Subject>("bootstrap", "bootstrap", "binary");
const which = fc.nat({ max: 3 });

const disturbances: fc.WeightedArbitrary<Action>[] = [
  { weight: 4, arbitrary: fc.constant({ kind: "hangup" } as const) },
  { weight: 4, arbitrary: fc.record({ kind: fc.constant("request" as const), force: fc.boolean() }) },
  { weight: 8, arbitrary: fc.record({ kind: fc.constant("edit" as const), subject, behaviour }) },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant("revert" as const), subject, steps: fc.nat({ max: 3 }) }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant("spoil" as const), subject }) },
  {
    weight: 4,
    arbitrary: fc.record({
      kind: fc.constant("kill" as const),
      which,
      signal: fc.constantFrom("SIGKILL" as const, "SIGTERM" as const),
    }),
  },
  {
    weight: 2,
    arbitrary: fc.record({
      kind: fc.constant("freeze" as const),
      which,
      how: fc.constantFrom("stopped" as const, "dead_locked" as const),
    }),
  },
  { weight: 2, arbitrary: fc.constant({ kind: "thaw" } as const) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant("marker" as const), works: fc.boolean() }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant("repair" as const), works: fc.boolean() }) },
  {
    weight: 2,
    arbitrary: fc.record({
      kind: fc.constant("control_plane" as const),
      is: fc.constantFrom("none" as const, "connected" as const, "away" as const),
    }),
  },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant("connections" as const), count: fc.nat({ max: 2 }) }) },
  { weight: 1, arbitrary: fc.constant({ kind: "reopen" } as const) },
  { weight: 1, arbitrary: fc.constant({ kind: "kill_stand_in" } as const) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant("stand_in" as const), works: fc.boolean() }) },
];

const drained = { kind: "request", force: false, drained: true } as const;

const withStops: fc.WeightedArbitrary<Action>[] = [
  ...disturbances,
  { weight: 3, arbitrary: fc.constant(drained) },
  { weight: 2, arbitrary: fc.constant({ kind: "stop" } as const) },
];

export const anySettings: fc.Arbitrary<Settings> = fc.record({
  debounceMs: fc.constantFrom(0, 500),
  debounceMaxMs: fc.constantFrom(1_000, 5_000),
  drainTimeMs: fc.constantFrom(1_000, 4_000),
  parentShutdownTimeMs: fc.constantFrom(2_000, 8_000),
  liveTimeoutMs: fc.constantFrom(2_000, 6_000),
  watchdogMs: fc.constantFrom(600, 3_000),
  markerRefreshMs: fc.constant(2_000),
  minGapMs: fc.constantFrom("parent_shutdown_time" as const, "parent_shutdown_time" as const, 0, 3_000),
  onCrash: fc.constantFrom("exit" as const, "restart" as const),
  crashBudget: fc.constantFrom(0, 1, 3),
  crashWindowMs: fc.constant(600_000),
  onLostAdmin: fc.constantFrom("handoff" as const, "handoff" as const, "keep" as const),
  onHang: fc.constantFrom("report" as const, "kill" as const),
  preDrainDelayMs: fc.constantFrom(0, 0, 2_000),
  controlPlaneWaitMs: fc.constantFrom(0, 3_000),
  rollbackWithinMs: fc.constantFrom(0, 0, 10_000),
  binaryTrialMs: fc.constantFrom(0, 10_000),
  retryLimit: fc.constantFrom(0, 1, 3),
  retryBackoffMs: fc.constantFrom(200, 2_000),
  jitterMs: fc.constantFrom(0, 0, 2_000),
  crossPod: fc.constant(false),
  whenSuperseded: fc.constant("wait" as const),
  gracePeriodMs: fc.constant(0),
  onSupervisorDeath: fc.constant("end" as const),
});

function actions(of: fc.WeightedArbitrary<Action>[]) {
  // Pauses that fall into a start, into a handoff, into a drain, and far behind them.
  const afterMs = fc.oneof(
    { weight: 3, arbitrary: fc.nat({ max: 100 }) },
    { weight: 4, arbitrary: fc.nat({ max: 1_200 }) },
    { weight: 2, arbitrary: fc.nat({ max: 12_000 }) },
  );
  return fc.array(fc.record({ afterMs, action: fc.oneof(...of) }), { maxLength: 14 });
}

/** Whatever may happen. */
export const anyScenario: fc.Arbitrary<Scenario> = fc.record({
  seed: fc.nat(),
  settings: anySettings,
  actions: actions(withStops),
});

/** Nobody asks for a stop. */
export const unstopped: fc.Arbitrary<Scenario> = fc.record({
  seed: fc.nat(),
  settings: anySettings,
  actions: actions(disturbances),
});

/** Everything but the kills of a serving epoch from outside: whatever is wrong is wrong with the next one. */
export const onlySuccessorsFail: fc.Arbitrary<Scenario> = fc.record({
  seed: fc.nat(),
  settings: anySettings,
  actions: actions(disturbances.filter(({ arbitrary }) => {
    const [sample] = fc.sample(arbitrary, { numRuns: 1, seed: 1 });
    return sample?.kind !== "kill" && sample?.kind !== "freeze";
  })),
});

/** Plays the actions, and goes on for `restMs`. */
export function play(scenario: Scenario, restMs: number, keepsTrace = true): World {
  const world = new World(scenario.settings, scenario.seed, keepsTrace);
  const history: Record<Subject, [string, Behaviour][]> = { bootstrap: [["b0", "good"]], binary: [["x0", "good"]] };
  let count = 0;
  for (const { afterMs, action } of scenario.actions) {
    world.runFor(afterMs);
    count++;
    perform(world, action, count, history);
  }
  world.runFor(restMs);
  return world;
}

function perform(world: World, action: Action, count: number, history: Record<Subject, [string, Behaviour][]>): void {
  const living = world.envoys.living;
  switch (action.kind) {
    case "hangup":
      return world.trigger("signal");
    case "request":
      return world.trigger("api", [`r${count}`], action.force, action.drained);
    case "edit": {
      const digest = `${action.subject === "bootstrap" ? "b" : "x"}${count}`;
      history[action.subject].push([digest, action.behaviour]);
      return world.edit(action.subject, digest, action.behaviour);
    }
    case "revert": {
      const past = history[action.subject];
      const [digest, behaviour] = past[Math.max(0, past.length - 2 - action.steps)]!;
      past.push([digest, behaviour]);
      return world.edit(action.subject, digest, behaviour);
    }
    case "spoil":
      return world.spoil(action.subject);
    case "kill": {
      const envoy = living[living.length - 1 - action.which];
      return envoy && world.envoys.signal(envoy, action.signal, "outside");
    }
    case "freeze": {
      const envoy = living[living.length - 1 - action.which];
      return envoy && world.envoys.freeze(envoy, action.how);
    }
    case "thaw":
      return living.forEach((envoy) => world.envoys.thaw(envoy));
    case "marker":
      world.markerWorks = action.works;
      return;
    case "repair":
      world.repairWorks = action.works;
      return;
    case "kill_stand_in":
      return world.standIns.kill();
    case "stand_in":
      world.standIns.works = action.works;
      return;
    case "control_plane":
      world.controlPlane = action.is;
      return;
    case "connections":
      world.connections = action.count;
      return;
    case "reopen":
      return world.submit({ kind: "reopen_logs" });
    case "stop":
      return world.stop();
  }
}
