// Owns: the stand-in for a predecessor that died while it drained: its successor would abort some ten seconds later (1.38.3 to 1.40.0).
// Must not: end it while its successor may still ask.

import type { Draft } from "./draft.ts";
import type { Child, Epoch, Exit } from "./epoch.ts";
import type { Event, StandInEnd } from "./event.ts";
import type { StandIn } from "./standing.ts";
import type { Sighting } from "./sighting.ts";
import type { Phase, State } from "./state.ts";
import { backoffMs, EARLY_MS, PREDECESSOR_MARGIN_MS, STAND_IN_TRIES } from "./bounds.ts";
import { epochsOf } from "./view.ts";

/** When the successor tells its parent to terminate: its own flag rules, from LIVE on. */
function terminatesAtMs(d: Draft, successor: Child | Epoch): number {
  const liveAtMs = "liveAtMs" in successor ? successor.liveAtMs : successor.spawnedAtMs + d.settings.liveTimeoutMs;
  return liveAtMs + (successor.plan.parentShutdownTimeMs ?? d.settings.parentShutdownTimeMs);
}

/**
 * Its predecessor has ended. Where that was not by its word, somebody takes its place: an orderly end before its time is somebody
 * else's SIGTERM, unless the successor has had reason to end it (`isTold`: its own successor, or its own end). One that is killed
 * when its time is over was told to end by then.
 */
export function afterPredecessor(d: Draft, epoch: number, successor: Epoch, exit: Exit, isTold = false): void {
  const isOrderly = exit.code === 0 && exit.signal === undefined;
  const atMs = terminatesAtMs(d, successor);
  const isEarly = isOrderly ? !isTold && d.nowMs < atMs - EARLY_MS : d.nowMs < atMs + EARLY_MS;
  if (isEarly) standIn(d, epoch, successor);
}

/** From now on until `successor` tells its parent to terminate. */
export function standIn(d: Draft, epoch: number, successor: Child | Epoch): void {
  const before = d.state.standIn;
  // Of an older generation: told to terminate when the next one came.
  if (before !== undefined) d.do({ kind: "end_stand_in", attempt: before.attempt });
  const untilMs = Math.max(d.nowMs, terminatesAtMs(d, successor)) + PREDECESSOR_MARGIN_MS;
  begin(d, { epoch, sinceMs: d.nowMs, untilMs, tries: 0 });
}

/**
 * Nobody knows whether an orphan still has a word for its predecessor, of which nothing is left: as its own successor comes, or is
 * ended, it would tell that one to terminate, in vain for ten seconds, and abort. One that has no such word is not disturbed.
 * False while an older stand-in is on its way out.
 */
export function standBy(
  d: Draft,
  orphan: number,
  { slots }: Sighting,
  boundMs: number = d.settings.liveTimeoutMs + PREDECESSOR_MARGIN_MS,
): boolean {
  const epoch = orphan - 1;
  if (d.state.standIn !== undefined && d.state.standIn.epoch !== epoch) endStandIn(d);
  if (d.state.standIn !== undefined) return d.state.standIn.epoch === epoch;
  if (epoch < 0 || slots.includes(epoch % 3)) return true;
  begin(d, { epoch, sinceMs: d.nowMs, untilMs: d.nowMs + boundMs, tries: 0, isPrecaution: true });
  return true;
}

function begin(d: Draft, from: Omit<StandIn, "attempt" | "step">): void {
  const attempt = d.nextAttempt();
  d.set({ standIn: { ...from, attempt, step: { kind: "starting" } } });
  const { epoch, isPrecaution, untilMs } = from;
  const boundMs = Math.max(1, untilMs - d.nowMs);
  d.do({ kind: "stand_in", attempt, epoch, boundMs, ...(isPrecaution === undefined ? {} : { isPrecaution }) });
}

/** True when the event was about a stand-in. */
export function standInHeard(d: Draft, event: Event): boolean {
  const { standIn: now } = d.state;
  if (event.kind === "timer" && event.name === "stand_in") {
    if (now?.step.kind === "pausing") begin(d, now);
    else if (now !== undefined && d.nowMs >= now.untilMs) endStandIn(d);
    return true;
  }
  if (event.kind !== "stand_in_began" && event.kind !== "stand_in_ended") return false;
  if (now === undefined) return true;
  if (event.kind === "stand_in_ended") ended(d, now, event.end);
  else if (now.step.kind === "starting") {
    const { epoch, isPrecaution, untilMs } = now;
    d.set({ standIn: { ...now, step: { kind: "standing", pid: event.pid, sinceMs: d.nowMs } } });
    if (isPrecaution !== true) d.say({ kind: "stand_in_began", epoch, pid: event.pid, boundMs: untilMs - d.nowMs });
  }
  return true;
}

function ended(d: Draft, now: StandIn, end: StandInEnd): void {
  const { epoch, isPrecaution = false, sinceMs, step, tries, untilMs } = now;
  const isEnding = step.kind === "ending";
  const hasFailed = end.kind === "failed" || end.kind === "name_taken";
  // As a precaution it is not needed for certain; that of a supervisor that is gone may stand already.
  if (!hasFailed || isEnding || isPrecaution) {
    d.set({ standIn: undefined });
    const why = hasFailed ? "not_needed" : end.kind;
    if (isPrecaution && end.kind !== "terminated") return;
    return d.say({ kind: "stand_in_ended", epoch, why, stoodMs: d.nowMs - sinceMs });
  }
  const isOver = tries + 1 >= STAND_IN_TRIES;
  const waitMs = backoffMs(tries);
  d.set({ standIn: { ...now, tries: tries + 1, step: { kind: isOver ? "given_up" : "pausing" } } });
  d.say({ kind: "stand_in_failed", epoch, problem: end.problem, ...(isOver ? {} : { waitMs }) });
  d.timer("stand_in", isOver ? Math.max(0, untilMs - d.nowMs) : waitMs);
}

/** Its successor would collide with the socket name of a stand-in that is still there: that one is of no use by then. */
export function isInTheWay(state: State, epoch: number): boolean {
  const { standIn: now } = state;
  return now !== undefined && now.step.kind !== "given_up" && now.epoch % 3 === epoch % 3;
}

/** Ends it; what waits for its name goes on when it is gone. */
export function endStandIn(d: Draft): void {
  const { standIn: now } = d.state;
  if (now === undefined || now.step.kind === "ending") return;
  d.stopTimers("stand_in");
  if (now.step.kind === "pausing" || now.step.kind === "given_up") return d.set({ standIn: undefined });
  d.set({ standIn: { ...now, step: { kind: "ending" } } });
  d.do({ kind: "end_stand_in", attempt: now.attempt });
}

/** Its successor is LIVE only now, which tells when it will be told to terminate. */
export function timeStandIn(d: Draft, successor: Epoch): void {
  const { standIn: now } = d.state;
  if (now === undefined || now.epoch + 1 !== successor.number || now.step.kind === "pausing") return;
  const untilMs = terminatesAtMs(d, successor) + PREDECESSOR_MARGIN_MS;
  if (untilMs >= now.untilMs) return;
  d.set({ standIn: { ...now, untilMs } });
  d.timer("stand_in", untilMs - d.nowMs);
}

/** Called after every step: it is of no use to anybody but the successor of the one whose place it takes. */
export function keepStandIn(d: Draft): void {
  const { standIn: now } = d.state;
  if (now === undefined || (now.isPrecaution && isStoodBy(d.state.phase, now))) return;
  if (!epochsOf(d.state).some(([{ number }]) => number === now.epoch + 1)) endStandIn(d);
}

/** Its successor is an orphan that another one is about to join, or is joining. */
function isStoodBy(phase: Phase, { epoch }: StandIn): boolean {
  switch (phase.kind) {
    case "detecting":
      return phase.awaited !== undefined ||
        (phase.step.kind === "repairing" && phase.step.comeback.foreign?.epoch === epoch + 1);
    case "starting":
    case "pausing":
      return phase.comeback.foreign?.epoch === epoch + 1;
    default:
      return false;
  }
}
