// Purity and totality: the same step from the same input, nothing changed in place, and no event that throws anywhere.

import assert from "node:assert/strict";
import fc from "fast-check";
import type { Event, Happening, TimerName } from "../../lib/core/event.ts";
import type { Plan } from "../../lib/core/epoch.ts";
import { refusal } from "../../lib/core/refusal.ts";
import type { Settings } from "../../lib/core/settings.ts";
import type { Sighting } from "../../lib/core/sighting.ts";
import { initialState, type State } from "../../lib/core/state.ts";
import { transition } from "../../lib/core/transition.ts";
import { view } from "../../lib/core/view.ts";
import { property } from "./check.ts";
import { anyScenario, anySettings, play } from "./scenario.ts";

function deepFreeze<T>(value: T): T {
  if (typeof value === "object" && value !== null && !Object.isFrozen(value)) {
    Object.freeze(value);
    Object.values(value).forEach(deepFreeze);
  }
  return value;
}

property("a step + same input, same output, input untouched", anyScenario, { runs: 150 }, (scenario) => {
  const { settings } = scenario;
  for (const { before, event, after, effects, facts } of play(scenario, 20_000).trace) {
    const again = transition(deepFreeze(before), deepFreeze(event), settings);
    assert.deepEqual(again, { state: after, effects, facts });
  }
});

const TIMERS: readonly TimerName[] = [
  "backoff",
  "connections",
  "deadline",
  "debounce",
  "debounce_max",
  "drain",
  "heartbeat",
  "jitter",
  "kill",
  "leaving",
  "look",
  "marker",
  "min_gap",
  "poll",
  "pre_drain",
  "predecessor",
  "retry",
  "watchdog",
];

const plan: fc.Arbitrary<Plan> = fc.constantFrom("b0", "b1", "b2").map((digest) => ({
  key: `${digest}+x0`,
  bootstrapDigest: digest,
  binaryDigest: "x0",
  bootstrapPath: `/state/${digest}`,
  binaryPath: "/envoy",
  admin: { kind: "tcp", host: "127.0.0.1", port: 9901 },
}));
const attempt = fc.nat({ max: 9 });
const text = fc.constantFrom("", "why");
const why = fc.constantFrom(refusal("child_died", "why"), refusal("bootstrap_invalid", "why"));
const digest = fc.constantFrom("b0", "b1", "x0", "x1");
const subject = fc.constantFrom("bootstrap" as const, "binary" as const);
const exit = fc.constantFrom(
  { code: 0 },
  { code: 1 },
  { code: 137, signal: "SIGKILL" },
  { code: "unknown" as const },
);
const kind = <K extends string>(name: K) => fc.constant(name);

const epoch = fc.nat({ max: 4 });
const sighting: fc.Arbitrary<Sighting> = fc.record({
  heartbeat: fc.oneof(
    fc.record({ kind: kind("none") }),
    fc.record({ kind: kind("beat"), epoch, ageMs: fc.constantFrom(-5_000, 0, 20_000) }),
  ),
  mine: fc.boolean(),
  slots: fc.uniqueArray(fc.nat({ max: 2 }), { maxLength: 3 }),
  identity: fc.record({ epoch, state: fc.constantFrom("LIVE" as const, "DRAINING" as const), hotRestartVersion: text }),
  handoffUnderWay: fc.boolean(),
  launches: fc.record({
    unfinished: fc.record({ epoch, pid: fc.nat(), ageMs: fc.nat({ max: 200_000 }), isOrphan: fc.boolean() }),
    orphans: fc.array(fc.record({ epoch, pid: fc.nat() }), { maxLength: 2 }),
  }, { requiredKeys: ["orphans"] }),
}, { requiredKeys: ["heartbeat", "mine", "slots"] });

/** Each kind of event, as anybody could send it at any time. */
const happenings: Record<Happening["kind"], fc.Arbitrary<Happening>> = {
  start: fc.record({ kind: kind("start") }),
  trigger: fc.record({
    kind: kind("trigger"),
    trigger: fc.record({
      source: fc.constantFrom("signal" as const, "bootstrap" as const, "api" as const, "retry" as const),
      requests: fc.array(fc.constantFrom("r1", "r2"), { maxLength: 2 }),
      when: fc.constantFrom("always" as const, "changed" as const),
      force: fc.boolean(),
      jitter: fc.constantFrom(0, 0.5, 1),
    }),
  }),
  content: fc.record({
    kind: kind("content"),
    subject,
    content: fc.oneof(
      fc.record({ kind: kind("usable"), digest }),
      fc.record({ kind: kind("unusable"), problem: text }),
    ),
    jitter: fc.constantFrom(0, 1),
  }),
  watch: fc.record({
    kind: kind("watch"),
    subject,
    mode: fc.constantFrom("events" as const, "polling" as const),
    why: text,
  }),
  stop: fc.record({ kind: kind("stop"), source: text }),
  reopen_logs: fc.record({ kind: kind("reopen_logs") }),
  preflight_passed: fc.record({ kind: kind("preflight_passed"), attempt, plan, cached: fc.boolean() }),
  preflight_refused: fc.record(
    {
      kind: kind("preflight_refused"),
      attempt,
      refusal: why,
      looked: fc.record({ bootstrapDigest: digest, binaryDigest: digest }),
    },
    { requiredKeys: ["kind", "attempt", "refusal"] },
  ),
  stand_in_began: fc.record({ kind: kind("stand_in_began"), attempt, pid: fc.nat() }),
  stand_in_ended: fc.record({
    kind: kind("stand_in_ended"),
    attempt,
    end: fc.oneof(
      fc.record({ kind: kind("terminated") }),
      fc.record({ kind: kind("bound_over") }),
      fc.record({ kind: kind("failed"), problem: text }),
    ),
  }),
  spawned: fc.record({ kind: kind("spawned"), attempt, pid: fc.nat() }),
  spawn_failed: fc.record({ kind: kind("spawn_failed"), attempt, refusal: why }),
  child_exited: fc.record({ kind: kind("child_exited"), attempt, exit }),
  identity: fc.record({
    kind: kind("identity"),
    attempt,
    askedAtMs: fc.nat({ max: 200_000 }),
    answer: fc.oneof(
      fc.record({
        kind: kind("answered"),
        identity: fc.record({
          epoch: fc.nat({ max: 4 }),
          state: fc.constantFrom("LIVE" as const, "DRAINING" as const, "INITIALIZING" as const),
          version: text,
          hotRestartVersion: text,
        }),
      }),
      fc.record({
        kind: kind("silent"),
        why: fc.constantFrom("refused" as const, "timeout" as const, "garbage" as const),
        detail: text,
      }),
    ),
  }),
  inventory: fc.record({
    kind: kind("inventory"),
    attempt,
    inventory: fc.option(
      fc.record({ controlPlaneConnected: fc.boolean(), listeners: fc.nat({ max: 2 }), clusters: fc.nat({ max: 2 }) }),
      { nil: undefined },
    ),
  }),
  connections: fc.record({
    kind: kind("connections"),
    attempt,
    connections: fc.option(fc.record({ active: fc.nat({ max: 1 }), total: fc.nat({ max: 1 }) }), { nil: undefined }),
  }),
  vitals: fc.record({
    kind: kind("vitals"),
    attempt,
    alive: fc.boolean(),
    detail: text,
    listens: fc.record({ admin: fc.boolean(), traffic: fc.boolean() }),
  }, { requiredKeys: ["kind", "attempt", "alive", "detail"] }),
  drain_answered: fc.record({ kind: kind("drain_answered"), attempt, ok: fc.boolean(), detail: text }),
  segment_repaired: fc.record({
    kind: kind("segment_repaired"),
    attempt,
    outcome: fc.oneof(
      fc.record({ kind: fc.constantFrom("clean" as const, "cleared" as const) }),
      fc.record({ kind: kind("failed"), detail: text }),
    ),
  }),
  binary_not_kept: fc.record({ kind: kind("binary_not_kept"), attempt, problem: text }),
  marker: fc.record({ kind: kind("marker"), problem: fc.option(text, { nil: undefined }) }),
  unwatched: fc.record({ kind: kind("unwatched"), subject }),
  settings: fc.record({ kind: kind("settings") }),
  handoff_lock: fc.record({ kind: kind("handoff_lock"), attempt, taken: fc.boolean() }),
  sighted: fc.record({ kind: kind("sighted"), askedAtMs: fc.nat({ max: 200_000 }), sighting }),
  published: fc.record({ kind: kind("published"), problem: fc.option(text, { nil: undefined }) }),
  timer: fc.record({ kind: kind("timer"), name: fc.constantFrom(...TIMERS) }),
};

/** Whatever can be said of every state. */
function isSound(state: State): void {
  const { phase } = state;
  view(state, 1_000_000);
  assert.ok(state.refused.length <= 16 && state.proven.length <= 2);
  if (phase.kind === "serving" && phase.predecessor) {
    assert.notEqual(phase.predecessor.epoch.attempt, phase.epoch.attempt);
  }
  assert.deepEqual(JSON.parse(JSON.stringify(state)), JSON.parse(JSON.stringify(structuredClone(state))));
}

const anyHappening = fc.oneof(...Object.values(happenings));

/** Attempts of the state's own, so that strays hit as well as miss. */
function aimed(happening: Happening, state: State, aim: number): Happening {
  if (!("attempt" in happening) || aim < 0) return happening;
  return { ...happening, attempt: Math.max(0, state.attempts - aim) };
}

property(
  "events out of the blue + no exception, from the first to the fortieth",
  fc.record({
    settings: fc.record({
      base: anySettings,
      crossPod: fc.boolean(),
      whenSuperseded: fc.constantFrom("wait", "exit"),
      onSupervisorDeath: fc.constantFrom("end", "serve"),
    }).map(({ base, ...others }) => ({ ...base, ...others }) as Settings),
    events: fc.array(
      fc.record({ happening: anyHappening, aim: fc.integer({ min: -1, max: 3 }), afterMs: fc.nat({ max: 4_000 }) }),
      { maxLength: 60 },
    ),
  }),
  { runs: 2_000 },
  ({ settings, events }) => {
    let atMs = 1_000;
    let state = transition(initialState, { kind: "start", atMs }, settings).state;
    for (const { happening, aim, afterMs } of events) {
      atMs += afterMs;
      const event: Event = { ...aimed(happening, state, aim), atMs };
      state = transition(deepFreeze(state), event, settings).state;
      isSound(state);
    }
  },
);

property(
  "every kind of event in every state of a run + no exception",
  fc.record({ scenario: anyScenario, happenings: fc.record(happenings), at: fc.nat() }),
  { runs: 60 },
  ({ scenario, happenings, at }) => {
    const { trace } = play(scenario, 20_000);
    const kinds = new Map(trace.map((taken) => [stepName(taken.after), taken]));
    const states = [...kinds.values(), trace[at % trace.length]!];
    for (const { after, event: { atMs } } of states) {
      for (const happening of Object.values(happenings)) {
        for (let aim = -1; aim < 3; aim++) {
          isSound(transition(deepFreeze(after), { ...aimed(happening, after, aim), atMs }, scenario.settings).state);
        }
      }
      for (const name of TIMERS) isSound(transition(after, { kind: "timer", name, atMs }, scenario.settings).state);
    }
  },
);

function stepName({ phase }: State): string {
  return "step" in phase ? `${phase.kind} ${phase.step.kind}` : phase.kind;
}

property(
  "an answer to nobody + counted, and nothing else",
  fc.record({ scenario: anyScenario, happening: anyHappening, at: fc.nat() }),
  { runs: 400 },
  ({ scenario, happening, at }) => {
    const { trace } = play(scenario, 5_000);
    const { after, event: { atMs } } = trace[at % trace.length]!;
    if (!("attempt" in happening) || after.phase.kind === "ended") return;
    // A repair may outlive its attempt, and a lock that came too late is let go.
    if (happening.kind === "segment_repaired" || happening.kind === "handoff_lock") return;
    const step = transition(after, { ...happening, attempt: 9_999, atMs }, scenario.settings);
    assert.deepEqual(step.state, { ...after, lateAnswers: after.lateAnswers + 1 });
    assert.deepEqual([step.effects, step.facts.map((fact) => fact.kind)], [[], ["late_answer"]]);
  },
);
