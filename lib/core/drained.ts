// Owns: a restart without a handoff: the serving epoch drains and ends, then epoch 0 of the new plan starts in its place.
// Must not: be anybody's default: connections end and new ones are refused for a moment, so it is asked for by its name.

import type { Draft } from "./draft.ts";
import type { Exit, Plan } from "./epoch.ts";
import type { Connections } from "./event.ts";
import type { Comeback, DrainedRestart, Phase, Replacing, Stopping } from "./state.ts";
import { REFUSED_KEPT } from "./state.ts";
import { beginAfresh } from "./comeback.ts";
import { type Refusal, refusal } from "./refusal.ts";
import { drainBoundMs, enterStopping } from "./stopping.ts";
import { beginTrial } from "./trial.ts";

/** The plan has passed: who would be cut is counted before anything is done. */
export function count(d: Draft, phase: Replacing, attempt: number, plan: Plan): void {
  d.to({ ...phase, step: { kind: "counting", attempt, plan } });
  d.do({ kind: "ask_connections", attempt: phase.from.attempt, admin: phase.from.plan.admin });
}

/** Counted, or not to be asked: the drain begins as on the way out, and goes on to `startAfterDrain`. */
export function counted(d: Draft, phase: Replacing, plan: Plan, connections: Connections | undefined): void {
  const { handoff, from, predecessor } = phase;
  d.say({
    kind: "drained_restart",
    handoff: handoff.id,
    epoch: from.number,
    connections: connections?.active,
    boundMs: drainBoundMs(d, from),
    requests: handoff.requests,
  });
  // Its file may hold something else by now, and its process is gone when it would be needed again.
  const { attempt, plan: { binaryDigest: digest, binaryPath: path } } = from;
  const keepDigests = [...new Set([digest, ...d.state.proven.map((one) => one.binaryDigest)])];
  d.do({ kind: "keep_binary", attempt, digest, path, keepDigests });
  enterStopping(d, {
    kind: "stopping",
    exitCode: 0,
    reason: "drained restart",
    times: 0,
    child: undefined,
    newest: from,
    predecessor,
    after: { handoff, from, plan, sinceMs: d.nowMs },
    step: { kind: "ending_child" },
  });
}

/** The last Envoy is gone, so nothing of it has to fit to the next one. */
export function startAfterDrain(d: Draft, drained: DrainedRestart): void {
  const after: DrainedRestart = { ...drained, endedAtMs: d.nowMs };
  beginAfresh(d, { ...alone(d, drained.plan), cause: "drained", drained: after });
}

/** It serves: both outcomes at once, since nobody is left to drain. */
export function tellServes(d: Draft, { handoff, from, plan, sinceMs, endedAtMs }: DrainedRestart, to: number): void {
  beginTrial(d, handoff, from.plan, plan);
  const of = { handoff: handoff.id, from: from.number, to, requests: handoff.requests };
  d.say(
    { kind: "handoff_live", ...of, tookMs: d.nowMs - handoff.beganAtMs, drainedFirst: true },
    { kind: "handoff_done", ...of, drainedMs: (endedAtMs ?? d.nowMs) - sinceMs },
  );
}

/** The new plan did not come up: what served before does, or nothing can. False: that is what has just failed. */
export function goBack(d: Draft, drained: DrainedRestart, why: Refusal, exit: Exit): boolean {
  const { from, plan } = drained;
  tellFailed(d, drained, why);
  const { bootstrapDigest, binaryDigest } = plan;
  if (plan.key === from.plan.key) return false;
  // Without a try left: each one costs its users what this one did.
  const entry = { refusal: why, bootstrapDigest, binaryDigest, atMs: d.nowMs, tries: d.settings.retryLimit };
  d.set({ refused: [entry, ...d.state.refused].slice(0, REFUSED_KEPT) });
  d.say({ kind: "newest_died", epoch: 0, exit, answer: "rollback" });
  beginAfresh(d, { ...alone(d, from.plan), gapSinceMs: drained.endedAtMs ?? d.nowMs });
  return true;
}

/** To be told to whoever waits for it, where the way of this phase ends here. */
export function drainedRestartOf(phase: Phase): DrainedRestart | undefined {
  switch (phase.kind) {
    case "stopping":
      return phase.after;
    case "starting":
    case "pausing":
      return phase.comeback.drained;
    case "detecting":
      return phase.wish?.drained;
    default:
      return undefined;
  }
}

/** Somebody wants the service to stop, or another supervisor has taken it. */
export function abandon(d: Draft, phase: Phase, name: "stopping" | "superseded"): void {
  const drained = drainedRestartOf(phase);
  if (drained === undefined) return;
  const why = name === "stopping" ? "supervisor is stopping" : "another supervisor's epoch came first";
  tellFailed(d, drained, refusal(name, why));
}

/** A stop that began as this restart is a real one from now on. */
export function becomeStop(phase: Stopping, reason: string): Stopping {
  const { after: _, ...rest } = phase;
  return { ...rest, times: 1, reason };
}

function tellFailed(d: Draft, { handoff, from }: DrainedRestart, why: Refusal): void {
  d.say({
    kind: "handoff_failed",
    handoff: handoff.id,
    from: from.number,
    to: 0,
    requests: handoff.requests,
    refusal: why,
    tookMs: d.nowMs - handoff.beganAtMs,
  });
}

function alone(d: Draft, plan: Plan): Comeback {
  return { cause: "crash", number: 0, plan, parent: undefined, foreign: undefined, gapSinceMs: d.nowMs, tries: 0 };
}
