// Owns: a story of several supervisors on one model node: what is done when, and what must hold whatever it was. Must not: be a test.

import assert from "node:assert/strict";
import fc from "fast-check";
import type { Settings } from "../../../lib/core/settings.ts";
import { DEFAULTS } from "../../transcripts/script.ts";
import { Agenda } from "../agenda.ts";
import { Random } from "../random.ts";
import { Node } from "./node.ts";
import { Pod } from "./pod.ts";

export type Action =
  | { readonly kind: "start" }
  | { readonly kind: "stop"; readonly which: number }
  | { readonly kind: "hangup"; readonly which: number }
  | { readonly kind: "kill_pod"; readonly which: number }
  | { readonly kind: "kill_envoy"; readonly which: number }
  /** The newest supervisor is killed, and the next one started. */
  | { readonly kind: "replace" }
  /** The newest Envoy, whoever's it is. */
  | { readonly kind: "kill_newest" };

export interface Scenario {
  readonly seed: number;
  readonly whenSuperseded: "wait" | "exit";
  readonly stuck: readonly number[];
  readonly actions: readonly { readonly afterMs: number; readonly action: Action }[];
}

export const SETTINGS: Settings = {
  ...DEFAULTS,
  crossPod: true,
  drainTimeMs: 2_000,
  parentShutdownTimeMs: 4_000,
  liveTimeoutMs: 10_000,
  gracePeriodMs: 40_000,
};
/** Starts, waits, locks and drains of four pods, one after the other. */
export const REST_MS = 240_000;
/** The watchdog's bound and what is under way: as long a marker may be wrong. */
const NOTICE_MS = 3_500;

export const which = fc.nat({ max: 3 });
export const starts = fc.constant<Action>({ kind: "start" });
export const peaceful = fc.oneof(
  { weight: 4, arbitrary: starts },
  { weight: 2, arbitrary: which.map((index): Action => ({ kind: "hangup", which: index })) },
);
export const stops = which.map((index): Action => ({ kind: "stop", which: index }));
export const violent = fc.oneof(
  { weight: 4, arbitrary: peaceful },
  { weight: 2, arbitrary: stops },
  { weight: 1, arbitrary: which.map((index): Action => ({ kind: "kill_pod", which: index })) },
  { weight: 1, arbitrary: which.map((index): Action => ({ kind: "kill_envoy", which: index })) },
);

export function scenarioOf(
  action: fc.Arbitrary<Action>,
  stuck: fc.Arbitrary<readonly number[]>,
): fc.Arbitrary<Scenario> {
  const afterMs = fc.oneof(fc.nat({ max: 50 }), fc.nat({ max: 1_500 }), fc.nat({ max: 12_000 }));
  return fc.record({
    seed: fc.nat(),
    whenSuperseded: fc.constantFrom("wait" as const, "exit" as const),
    stuck,
    actions: fc.array(fc.record({ afterMs, action }), { minLength: 1, maxLength: 8 }),
  });
}

export class Play {
  readonly agenda = new Agenda();
  readonly node: Node;
  readonly pods: Pod[] = [];
  readonly hollow: string[] = [];
  /** When traffic was served last, when it was not served although it had been, and for how long. */
  gapMs = 0;
  readonly gaps: string[] = [];
  #hollowMs = 0;

  constructor(readonly scenario: Scenario, readonly settings: Settings = SETTINGS) {
    this.node = new Node(this.agenda, new Random(scenario.seed), settings.parentShutdownTimeMs);
    this.node.isAlive = (index) => this.pods[index]?.isOver === false;
    this.node.outlives = settings.onSupervisorDeath === "serve";
    this.start();
    for (const { afterMs, action } of scenario.actions) {
      this.runFor(afterMs);
      this.#act(action);
    }
  }

  runFor(ms: number): void {
    for (let left = ms; left > 0; left -= 50) {
      const untilMs = this.agenda.nowMs + Math.min(50, left);
      while (this.agenda.next(untilMs)) { /* one at a time */ }
      this.#sample(Math.min(50, left));
    }
  }

  #sample(ms: number): void {
    const { serves } = this.node;
    const ready = this.pods.filter((pod) => pod.isReady);
    this.#hollowMs = ready.length > 0 && !serves ? this.#hollowMs + ms : 0;
    if (this.#hollowMs > NOTICE_MS) {
      this.hollow.push(`at ${this.agenda.nowMs}: pod ${ready[0]?.index} is Ready, nobody serves`);
    }
    const hasServed = this.node.envoys.some(({ state, accepts }) => accepts || state === "live");
    if (hasServed && !serves) this.gapMs += ms;
    if (hasServed && !serves) this.gaps.push(String(this.agenda.nowMs));
  }

  start(): void {
    const settings = { ...this.settings, whenSuperseded: this.scenario.whenSuperseded };
    if (this.pods.filter((pod) => !pod.isOver).length >= 4) return;
    const pod = new Pod(this.node, this.pods.length, settings);
    pod.isStuck = this.scenario.stuck.includes(pod.index);
    this.pods.push(pod);
  }

  #act(action: Action): void {
    if (action.kind === "start") return this.start();
    if (action.kind === "replace") {
      this.pods.at(-1)?.kill();
      return this.start();
    }
    if (action.kind === "kill_newest") {
      const newest = this.node.living.at(-1);
      return newest === undefined ? undefined : this.node.signal(newest, "SIGKILL");
    }
    const pod = action.which < 0 ? this.pods.at(-1) : this.pods[action.which % this.pods.length];
    if (pod === undefined || pod.isOver) return;
    switch (action.kind) {
      case "stop":
        return pod.submit({ kind: "stop", source: "SIGTERM" });
      case "hangup":
        return pod.submit({
          kind: "trigger",
          trigger: { source: "signal", requests: [], when: "always", force: false, jitter: 0 },
        });
      case "kill_pod":
        return pod.kill();
      case "kill_envoy": {
        const newest = [...pod.envoys].sort((a, b) => b.number - a.number)[0];
        if (newest !== undefined) this.node.signal(newest, "SIGKILL");
        return;
      }
    }
  }

  story(): string {
    const told = this.pods.flatMap((pod) =>
      pod.told.map((line) => [Number(line.split(" ")[0]), `pod ${pod.index} ${line}`] as const)
    );
    const lines = told.sort(([a], [b]) => a - b).map(([, line]) => line);
    const phases = this.pods.map((pod) =>
      `pod ${pod.index}: ${pod.isKilled ? "killed" : JSON.stringify(pod.state.phase)}`
    );
    return [...lines.slice(-60), ...phases, ...this.node.broken, ...this.hollow.slice(0, 3)].join("\n");
  }
}

export function unharmed(play: Play): void {
  assert.deepEqual(play.node.broken, [], play.story());
  assert.deepEqual(play.hollow, [], play.story());
}

/** Pods that are not on their way out. */
export function standing(play: Play): readonly Pod[] {
  return play.pods.filter((pod) => !pod.isOver);
}

/** After all has settled: where anybody is left, exactly one Envoy serves, exactly its pod is Ready, and the next one could come. */
export function atRest(play: Play): void {
  const left = standing(play);
  // All were stopped, or ended with 1 for kubelet to start them again.
  if (left.length === 0) return;
  const serving = play.node.living.filter(({ accepts }) => accepts);
  assert.equal(serving.length, 1, play.story());
  assert.equal(play.node.living.length, 1, play.story());
  assert.deepEqual(left.filter((pod) => pod.isReady).map(({ index }) => index), [serving[0]?.pod], play.story());
  assert.equal(play.node.lockedBy, undefined, play.story());
}
