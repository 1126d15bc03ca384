// Owns: the way out: end what is not LIVE, drain, end what serves, in an order that never cuts a protocol.
// Must not: signal an epoch while its successor lives.

import type { Epoch, Exit } from "./epoch.ts";
import type { Connections, Event } from "./event.ts";
import type { Draft } from "./draft.ts";
import type { ExitCode, Role } from "./fact.ts";
import type { Stopping } from "./state.ts";
import type { Sighting } from "./sighting.ts";
import { CONNECTIONS_POLL_MS, KILL_AFTER_MS, QUIET_POLLS, VERIFY_LOCK_MS } from "./bounds.ts";
import { alive, NOBODY } from "./alive.ts";
import { endChild, exited, killChild, predecessorEnded, predecessorOverdue } from "./arrive.ts";
import { hasForeignSuccessor, lookOut, successorBoundMs } from "./company.ts";
import { abandon, becomeStop, startAfterDrain } from "./drained.ts";
import { handoffFailed } from "./failing.ts";
import { killLeaving } from "./leaving.ts";
import { endingOrphans, hurry, leavesOrphans } from "./orphans.ts";
import { refusal } from "./refusal.ts";
import { afterPredecessor } from "./stand_in.ts";
import { dropPending } from "./triggers.ts";
import { enterYielding } from "./yielding.ts";

/** Nothing lives any more. */
export function end(d: Draft, exitCode: ExitCode, reason: string): void {
  dropPending(d, refusal("stopping", `supervisor ends: ${reason}`));
  d.say({ kind: "ended", exitCode, reason });
  d.to({ kind: "ended", exitCode, reason });
}

/** SIGTERM or SIGINT, the first or one more. */
export function stopAsked(d: Draft, source: string): void {
  const { phase } = d.state;
  if (phase.kind === "ended") return;
  abandon(d, phase, "stopping");
  if (phase.kind === "stopping" && phase.after !== undefined) {
    d.say({ kind: "stop_asked", source, times: 1 });
    d.to(becomeStop(phase, `stopped by ${source}`));
    return dropPending(d, refusal("stopping", "supervisor is stopping, no new epoch is started"));
  }
  if (phase.kind === "stopping") return askedAgain(d, phase, source);
  if (phase.kind === "yielding") {
    // Its protocol ends it, however often one asks; kubelet bounds the wait.
    const times = (phase.stop?.times ?? 0) + 1;
    d.say({ kind: "stop_asked", source, times });
    return d.to({ ...phase, stop: { reason: `stopped by ${source}`, times } });
  }
  d.say({ kind: "stop_asked", source, times: 1 });
  if (phase.kind === "replacing") handoffFailed(d, phase, refusal("stopping", "supervisor is stopping"));
  const isPreparing = (phase.kind === "replacing" && phase.step.kind === "preflight") ||
    (phase.kind === "detecting" && phase.step.kind === "preflight") ||
    (phase.kind === "starting" && (phase.step.kind === "preflight" || phase.step.kind === "diagnosing"));
  if (isPreparing) d.do({ kind: "cancel_preflight", attempt: d.state.attempts });
  enterStopping(d, {
    kind: "stopping",
    exitCode: 0,
    reason: `stopped by ${source}`,
    times: 1,
    ...alive(phase),
    step: { kind: "ending_child" },
  });
}

/** No new epoch from here on. The child goes first: until it is gone the serving epoch has a successor attached. */
export function enterStopping(d: Draft, stopping: Stopping): void {
  if (stopping.after === undefined) {
    dropPending(d, refusal("stopping", "supervisor is stopping, no new epoch is started"));
  }
  d.stopTimers("debounce", "debounce_max", "jitter", "min_gap", "watchdog", "poll", "deadline", "retry", "backoff");
  d.stopTimers("kill");
  d.set({ debouncing: undefined, retry: undefined });
  d.to(stopping);
  if (stopping.child !== undefined) killChild(d, stopping.child);
  else childIsGone(d, stopping);
}

function childIsGone(d: Draft, phase: Stopping): void {
  const isDrained = phase.times > 1 || phase.exitCode !== 0;
  if (isDrained) return terminate(d, phase);
  const last = next(phase)?.epoch;
  if (!d.settings.crossPod || last === undefined) return drain(d, phase);
  d.to({ ...phase, step: { kind: "awaiting_successor", sinceMs: d.nowMs, told: false } });
  lookOut(d, last);
}

/** Whoever is ended next: nothing that lives is attached to it. */
function next(phase: Stopping): { readonly epoch: Epoch; readonly role: Role } | undefined {
  if (phase.newest !== undefined) return { epoch: phase.newest, role: "newest" };
  return phase.predecessor && { epoch: phase.predecessor.epoch, role: "predecessor" };
}

function askedAgain(d: Draft, phase: Stopping, source: string): void {
  const times = phase.times + 1;
  d.say({ kind: "stop_asked", source, times });
  const again = { ...phase, times };
  d.to(again);
  switch (phase.step.kind) {
    case "pre_drain":
    case "draining": {
      const connections = phase.step.kind === "draining" ? phase.step.last?.active : undefined;
      const epoch = next(phase)?.epoch.number;
      if (epoch !== undefined) d.say({ kind: "drain_ended", epoch, connections, why: "asked_twice" });
      return terminate(d, again);
    }
    case "awaiting_predecessor":
    case "awaiting_successor":
      return terminate(d, again);
    case "verifying":
      return;
    case "ending_child":
      if (phase.child !== undefined) killChild(d, phase.child);
      return;
    case "terminating":
      return kill(d, phase);
    case "ending_orphans":
      return hurry(d, again, phase.step);
  }
}

function kill(d: Draft, phase: Stopping): void {
  const last = next(phase);
  if (last === undefined) return killLeaving(d);
  endChild(d, last.epoch, last.role, "SIGKILL", KILL_AFTER_MS);
}

function drain(d: Draft, phase: Stopping): void {
  const { newest, predecessor } = phase;
  if (newest === undefined) {
    if (predecessor === undefined) return finish(d, phase);
    // Its dead successor took the admin along, so nobody can be asked: it drains since then and gets its time.
    d.to({ ...phase, step: { kind: "draining", last: undefined, quietPolls: 0 } });
    d.timer("drain", d.settings.drainTimeMs);
    const epoch = predecessor.epoch.number;
    return d.say({ kind: "drain_began", epoch, boundMs: d.settings.drainTimeMs, form: "without_admin" });
  }
  const { attempt, number: epoch, plan: { admin } } = newest;
  if (d.settings.preDrainDelayMs > 0 && phase.step.kind !== "pre_drain") {
    d.to({ ...phase, step: { kind: "pre_drain" } });
    d.do({ kind: "drain", attempt, admin, form: "fail_health" });
    d.timer("pre_drain", d.settings.preDrainDelayMs);
    return d.say({ kind: "drain_began", epoch, boundMs: d.settings.preDrainDelayMs, form: "fail_health" });
  }
  d.to({ ...phase, step: { kind: "draining", last: undefined, quietPolls: 0 } });
  d.do({ kind: "drain", attempt, admin, form: "listeners" });
  const boundMs = drainBoundMs(d, newest);
  d.timer("drain", boundMs);
  d.timer("connections", CONNECTIONS_POLL_MS);
  d.say({ kind: "drain_began", epoch, boundMs, form: "listeners" });
}

/** Envoy takes the time that its own flags say, whatever was set since. */
export function drainBoundMs(d: Draft, { plan }: Epoch): number {
  return Math.max(d.settings.drainTimeMs, plan.drainTimeMs ?? 0);
}

function terminate(d: Draft, phase: Stopping): void {
  d.stopTimers("drain", "connections", "pre_drain");
  const last = next(phase);
  if (last === undefined) return finish(d, phase);
  if (d.settings.crossPod && phase.step.kind !== "verifying") {
    return verify(d, phase, last.epoch);
  }
  d.to({ ...phase, step: { kind: "terminating" } });
  endChild(d, last.epoch, last.role, "SIGTERM", KILL_AFTER_MS);
}

function finish(d: Draft, phase: Stopping): void {
  d.stopTimers("drain", "connections", "pre_drain", "kill", "predecessor");
  if (d.state.leaving.length === 0) {
    if (phase.after !== undefined) return startAfterDrain(d, phase.after);
    return leavesOrphans(d, phase) ? undefined : end(d, phase.exitCode, phase.reason);
  }
  d.to({ ...phase, ...NOBODY, step: { kind: "terminating" } });
  killLeaving(d);
}

/** The last third generation was reaped: where it was all that lived, that is the end. */
export function lastLeft(d: Draft): void {
  const { phase } = d.state;
  const isAlone = phase.kind === "stopping" && phase.child === undefined && next(phase) === undefined;
  if (isAlone && d.state.leaving.length === 0) finish(d, phase);
}

function drained(d: Draft, phase: Stopping, why: "quiet" | "time_over", last: Connections | undefined): void {
  const epoch = next(phase)?.epoch.number;
  if (epoch === undefined) return finish(d, phase);
  d.stopTimers("drain", "connections");
  d.say({ kind: "drain_ended", epoch, connections: last?.active, why });
  // The newest is what ends the predecessor by protocol, so it must outlive it.
  if (phase.newest !== undefined && (phase.predecessor !== undefined || phase.foreign !== undefined)) {
    return d.to({ ...phase, step: { kind: "awaiting_predecessor" } });
  }
  terminate(d, phase);
}

/** Every event on the way out. */
export function stopping(d: Draft, phase: Stopping, event: Event): void {
  if (phase.step.kind === "ending_orphans") {
    if (endingOrphans(d, phase, phase.step, event)) finish(d, phase);
    return;
  }
  switch (event.kind) {
    case "child_exited":
      return childExited(d, phase, event.attempt, event.exit);
    case "sighted":
      return sighted(d, phase, event.askedAtMs, event.sighting);
    case "handoff_lock":
      if (phase.step.kind !== "verifying" || event.attempt !== next(phase)?.epoch.attempt) return;
      d.to({ ...phase, step: { kind: "verifying", lockedAtMs: d.nowMs } });
      return look(d, phase);
    case "segment_repaired":
      return d.to({ ...phase, isRepairing: false });
    case "connections":
      if (event.attempt === phase.newest?.attempt) counted(d, phase, event.connections);
      return;
    case "drain_answered":
      if (event.attempt === phase.newest?.attempt && !event.ok) {
        d.say({ kind: "drain_unanswered", epoch: phase.newest.number, detail: event.detail });
      }
      return;
    case "timer":
      return timer(d, phase, event.name);
    default:
      return;
  }
}

function timer(d: Draft, phase: Stopping, name: string): void {
  const { step } = phase;
  if (name === "predecessor") return predecessorOverdue(d, phase.predecessor);
  if (name === "look") return look(d, phase);
  if (name === "pre_drain" && step.kind === "pre_drain") return drain(d, phase);
  if (name === "drain" && step.kind === "draining") return drained(d, phase, "time_over", step.last);
  if (name === "connections" && step.kind === "draining" && phase.newest !== undefined) {
    return d.do({ kind: "ask_connections", attempt: phase.newest.attempt, admin: phase.newest.plan.admin });
  }
  if (name !== "kill") return;
  if (step.kind === "ending_child" && phase.child !== undefined) killChild(d, phase.child);
  else if (step.kind === "terminating") kill(d, phase);
}

/** Shared base id: a successor that is attached ends the newest by protocol, one that is on its way is waited for. */
function sighted(d: Draft, phase: Stopping, askedAtMs: number, seen: Sighting): void {
  const { newest, step, reason, times, child } = phase;
  const last = next(phase)?.epoch;
  if (last === undefined || child !== undefined || step.kind === "terminating") return;
  const predecessor = newest === undefined ? undefined : phase.predecessor;
  if (hasForeignSuccessor(d.state, last, seen)) {
    const isDeaf = newest === undefined || step.kind !== "awaiting_successor";
    abandon(d, phase, "superseded");
    const stop = phase.after === undefined ? { reason, times } : undefined;
    return enterYielding(d, { epoch: last, predecessor, stop, isDeaf });
  }
  if (step.kind === "verifying") {
    if (step.lockedAtMs !== undefined && askedAtMs >= step.lockedAtMs) terminate(d, phase);
    return;
  }
  const { foreign } = phase;
  const isGone = foreign !== undefined &&
    (!seen.slots.includes(foreign.epoch % 3) || d.nowMs - foreign.sinceMs >= foreign.boundMs);
  if (isGone) {
    const rest = { ...phase, foreign: undefined };
    d.to(rest);
    if (step.kind === "awaiting_predecessor" && predecessor === undefined) return terminate(d, rest);
  }
  if (step.kind !== "awaiting_successor" || askedAtMs < step.sinceMs) return;
  const boundMs = successorBoundMs(d);
  if (seen.handoffUnderWay !== true || d.nowMs - step.sinceMs >= boundMs) return drain(d, phase);
  if (step.told) return;
  d.say({ kind: "successor_awaited", epoch: last.number, boundMs });
  d.to({ ...phase, step: { ...step, told: true } });
}

/**
 * One last look, under handoff.lock: between it and the signal nobody can attach. Somebody who holds the lock and has not attached in
 * all the time before is not waited for again.
 */
function verify(d: Draft, phase: Stopping, { attempt }: Epoch): void {
  d.to({ ...phase, step: { kind: "verifying", lockedAtMs: undefined } });
  d.do({ kind: "take_handoff_lock", attempt, waitMs: VERIFY_LOCK_MS });
}

function look(d: Draft, phase: Stopping): void {
  const last = next(phase)?.epoch;
  if (d.settings.crossPod && last !== undefined) lookOut(d, last);
}

/** The successor that this stop waited for has vanished: an ordinary end. */
export function resumeStop(
  d: Draft,
  stop: Pick<Stopping, "reason" | "times" | "newest" | "predecessor">,
): void {
  enterStopping(d, { kind: "stopping", exitCode: 0, child: undefined, ...stop, step: { kind: "ending_child" } });
}

/** Quiet is no open connection and no new one for several counts: a client that connects anew each time shows in the total. */
function counted(d: Draft, phase: Stopping, connections: Connections | undefined): void {
  const { step } = phase;
  if (step.kind !== "draining") return;
  const isSteady = step.last === undefined || step.last.total === connections?.total;
  // No answer is no proof of quiet: the drain time bounds it.
  const quietPolls = connections?.active === 0 && isSteady ? step.quietPolls + 1 : 0;
  if (quietPolls >= QUIET_POLLS) return drained(d, phase, "quiet", connections);
  d.timer("connections", CONNECTIONS_POLL_MS);
  d.to({ ...phase, step: { kind: "draining", last: connections, quietPolls } });
}

function childExited(d: Draft, phase: Stopping, attempt: number, exit: Exit): void {
  if (attempt === phase.child?.attempt) {
    d.stopTimers("kill");
    d.say(exited(d, phase.child, exit, "child"));
    // Another supervisor's epoch may come to this base id: it must not find the flag that this child left.
    d.do({ kind: "repair_segment", attempt });
    const rest = { ...phase, child: undefined, isRepairing: true };
    d.to(rest);
    return childIsGone(d, rest);
  }
  if (attempt === phase.predecessor?.epoch.attempt) {
    const { newest, child, predecessor: { epoch: { number } }, step } = phase;
    predecessorEnded(d, phase.predecessor, exit, number + 1);
    const rest = { ...phase, predecessor: undefined };
    d.to(rest);
    if (newest === undefined) return child === undefined ? finish(d, rest) : undefined;
    afterPredecessor(d, number, newest, exit, child !== undefined || step.kind === "terminating");
    return step.kind === "awaiting_predecessor" ? terminate(d, rest) : undefined;
  }
  if (attempt !== phase.newest?.attempt) return;
  d.say(exited(d, phase.newest, exit, "newest"));
  const rest = { ...phase, newest: undefined };
  d.to(rest);
  // A child on its way out may still be attached to the predecessor of the one that died.
  if (phase.child !== undefined) return;
  // Its successor is gone, so nothing will end the predecessor by protocol any more, and ending it aborts nobody.
  d.stopTimers("kill");
  terminate(d, rest);
}
