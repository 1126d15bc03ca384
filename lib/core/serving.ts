// Owns: the phase in which one epoch serves: watchdog, the predecessor's end.
// Must not: know how a successor is made.

import { type Epoch, type Exit, mayBeClean } from "./epoch.ts";
import type { Event, IdentityAnswer, Inventory, Vitals } from "./event.ts";
import type { Draft } from "./draft.ts";
import type { Health, Serving } from "./state.ts";
import { predecessorEnded, predecessorOverdue, wake, watchdogTickMs } from "./arrive.ts";
import { newestDied, rejoin } from "./comeback.ts";
import { EARLY_MS, LATE_WORD_MS, LOOK_FAST_MS, RECOVERY_TRIES, REVIVAL_TRIES } from "./bounds.ts";
import { planRecovery } from "./failing.ts";
import { beginRecovery } from "./handoff.ts";
import { hasForeignSuccessor, lookOut } from "./company.ts";
import type { Sighting } from "./sighting.ts";
import { afterPredecessor, standBy, standIn } from "./stand_in.ts";
import { mayFork } from "./settle.ts";
import { enterYielding, supersede } from "./yielding.ts";

/** Every event while one epoch serves and no handoff is under way. */
export function serving(d: Draft, phase: Serving, event: Event): void {
  switch (event.kind) {
    case "child_exited":
      if (event.attempt === phase.epoch.attempt) {
        return newestExited(d, phase, event.exit);
      }
      if (event.attempt === phase.predecessor?.epoch.attempt) {
        predecessorEnded(d, phase.predecessor, event.exit, phase.epoch.number);
        // Whoever took the admin, and failed, has had it ended.
        const isTold = phase.health.kind === "admin_lost";
        afterPredecessor(d, phase.predecessor.epoch.number, phase.epoch, event.exit, isTold);
        d.to({ ...phase, predecessor: undefined });
      }
      return;
    case "sighted":
      return sighted(d, phase, event.askedAtMs, event.sighting);
    case "identity":
      if (event.attempt !== phase.epoch.attempt) return;
      if (event.answer.kind === "silent") wakeAll(d, phase);
      return d.to({ ...phase, health: judge(d, phase.epoch, phase.health, event.askedAtMs, event.answer) });
    case "vitals":
      if (event.attempt === phase.epoch.attempt) vitals(d, phase, event);
      return;
    case "inventory":
      if (event.attempt !== phase.epoch.attempt || phase.compare === undefined) return;
      if (event.inventory !== undefined) tellFewer(d, phase.epoch.number, phase.compare, event.inventory);
      return d.to({ ...phase, compare: undefined });
    case "timer":
      if (event.name === "watchdog") watch(d, phase);
      else if (event.name === "look") lookOut(d, phase.epoch);
      else if (event.name === "predecessor") predecessorOverdue(d, phase.predecessor);
      else if (event.name === "backoff" && phase.health.kind === "admin_lost") recover(d, phase);
      return;
    default:
      return;
  }
}

/** Its own predecessor, or an orphan that nobody else would wake. */
function wakeAll(d: Draft, { predecessor, foreign }: Serving): void {
  wake(d, predecessor);
  if (foreign?.orphanPid !== undefined) {
    d.do({ kind: "signal_orphan", pid: foreign.orphanPid, signal: "SIGCONT", unlessLive: false });
  }
}

function newestExited(d: Draft, phase: Serving, exit: Exit): void {
  const { epoch, predecessor, foreign, rejoins = 0 } = phase;
  if (!d.settings.crossPod || predecessor !== undefined) return newestDied(d, epoch, exit, predecessor);
  const isOrphan = d.state.standIn?.step.kind === "given_up";
  // One that dies soon after each LIVE would be started for ever.
  if ((foreign !== undefined || isOrphan) && rejoins < REVIVAL_TRIES) {
    return rejoin(d, epoch, exit, foreign, rejoins + 1);
  }
  // Ended by protocol between two looks, or by itself: the next look tells.
  if (mayBeClean(exit) && foreign === undefined) return supersede(d, epoch, exit, undefined, false);
  newestDied(d, epoch, exit, undefined);
}

/** Shared base id: is another pod's predecessor gone, has another pod's successor come? */
function sighted(d: Draft, phase: Serving, askedAtMs: number, seen: Sighting): void {
  const { epoch, predecessor, foreign } = phase;
  if (askedAtMs < epoch.liveAtMs) return;
  if (foreign !== undefined) {
    const drainedMs = d.nowMs - foreign.sinceMs;
    const isGone = !seen.slots.includes(foreign.epoch % 3);
    if (!isGone && drainedMs < foreign.boundMs) return;
    const boundMs = epoch.plan.parentShutdownTimeMs ?? d.settings.parentShutdownTimeMs;
    const isEarly = isGone && drainedMs < boundMs - EARLY_MS;
    if (isEarly) d.say({ kind: "foreign_lost", epoch: foreign.epoch, drainedMs });
    else if (isGone) d.say({ kind: "foreign_ended", epoch: foreign.epoch, drainedMs });
    // It can't be ended from here; that it hangs does not make this one less ready.
    else d.say({ kind: "foreign_overdue", epoch: foreign.epoch, boundMs: foreign.boundMs });
    if (!isGone && foreign.orphanPid !== undefined) {
      d.do({ kind: "signal_orphan", pid: foreign.orphanPid, signal: "SIGKILL", unlessLive: false });
    }
    if (isEarly) standIn(d, foreign.epoch, epoch);
    // It may have been killed between two looks, just before its time.
    else if (isGone) standBy(d, epoch.number, seen, LATE_WORD_MS);
    return d.to({ ...phase, foreign: undefined });
  }
  if (hasForeignSuccessor(d.state, epoch, seen)) return enterYielding(d, { epoch, predecessor, stop: undefined });
  if (seen.handoffUnderWay === true) d.timer("look", LOOK_FAST_MS);
}

/** For an epoch without an admin: the word of process and sockets. */
function vitals(d: Draft, phase: Serving, seen: Vitals): void {
  const { epoch } = phase;
  const { detail, listens } = seen;
  const health = lostAdmin(d, epoch, phase.health, seen);
  if (health !== phase.health) {
    d.to({ ...phase, health });
    return planRecovery(d);
  }
  // A parent that listens nowhere was told to by a successor that was LIVE.
  const isDraining = listens !== undefined && !listens.admin && !listens.traffic;
  const alive = seen.alive && !isDraining;
  if (health.kind === "admin_lost") {
    // `on_lost_admin: keep` keeps what serves; nobody accepts here, and a new epoch takes over from it as from any parent.
    if (seen.alive && isDraining && health.recoveries < RECOVERY_TRIES && mayFork(d, epoch.number + 1)) {
      return beginRecovery(d, phase);
    }
    // Not at the first look: a process that just ended is reaped in a moment.
    const sinceMs = alive ? undefined : health.unwellSinceMs ?? d.nowMs;
    const lost = { ...health, unwellSinceMs: sinceMs };
    if (sinceMs === undefined || d.nowMs - sinceMs < d.settings.watchdogMs) return d.to({ ...phase, health: lost });
    return d.to({ ...phase, health: { ...hung(d, epoch, sinceMs, detail), by: "vitals", lost } });
  }
  if (health.kind !== "hung" || health.by !== "vitals" || !alive) return;
  d.to({ ...phase, health: health.lost ?? { kind: "answering" } });
  planRecovery(d);
}

function recover(d: Draft, phase: Serving): void {
  if (mayFork(d, phase.epoch.number + 1)) beginRecovery(d, phase);
  else planRecovery(d);
}

function watch(d: Draft, phase: Serving): void {
  const { epoch, health } = phase;
  d.timer("watchdog", watchdogTickMs(d.settings.watchdogMs));
  // Admin is asked even when it was lost: it may come back by an epoch started behind epochd's back, and it costs nothing.
  const { attempt, number, plan: { admin } } = epoch;
  if (health.kind !== "answering") d.do({ kind: "ask_vitals", attempt, epoch: number, admin });
  d.do({ kind: "ask_identity", attempt, admin });
}

/**
 * An Envoy that hangs still holds its admin's socket. One that runs and does not hold it has given it to a successor, whoever answers
 * there now: it is not hung, it has lost its admin.
 */
export function lostAdmin(d: Draft, epoch: Epoch, health: Health, { alive, listens }: Vitals): Health {
  const isMute = health.kind === "silent" || (health.kind === "hung" && health.by === "admin");
  if (!isMute || !alive || listens === undefined || listens.admin || health.lost !== undefined) return health;
  d.say({ kind: "admin_lost", epoch: epoch.number, policy: d.settings.onLostAdmin });
  return { kind: "admin_lost", sinceMs: health.sinceMs, recoveries: 0, unwellSinceMs: undefined };
}

/** What an answer, or none, says about the newest epoch. */
export function judge(d: Draft, epoch: Epoch, health: Health, askedAtMs: number, answer: IdentityAnswer): Health {
  // Asked of its parent, or before the admin was lost: late, and it says nothing about now.
  if (askedAtMs < (health.kind === "answering" ? epoch.liveAtMs : health.sinceMs)) return health;
  if (answer.kind === "answered" && answer.identity.epoch === epoch.number) {
    if (health.kind === "hung" || health.kind === "admin_lost") {
      d.say({ kind: "admin_back", epoch: epoch.number, silentMs: d.nowMs - health.sinceMs });
    }
    return { kind: "answering" };
  }
  if (health.kind === "admin_lost" || health.kind === "hung") return health;
  if (answer.kind === "silent" && answer.why === "unasked") return health;
  // Counted from the first unanswered question, so a supervisor that was itself stopped does not blame Envoy.
  const sinceMs = health.kind === "silent" ? health.sinceMs : askedAtMs;
  // The epoch may have been silent for one tick before it was asked.
  const { watchdogMs } = d.settings;
  if (d.nowMs - sinceMs < watchdogMs - watchdogTickMs(watchdogMs)) return { kind: "silent", sinceMs, lost: undefined };
  return hung(d, epoch, sinceMs, answer.kind === "silent" ? answer.detail : `epoch ${answer.identity.epoch} answers`);
}

/** The word of the watchdog, and what `on_hang` does about it. */
export function hung(d: Draft, epoch: Epoch, sinceMs: number, detail: string): Extract<Health, { kind: "hung" }> {
  const policy = d.settings.onHang;
  d.say({ kind: "epoch_hung", epoch: epoch.number, silentMs: d.nowMs - sinceMs, policy, detail });
  // The newest epoch has no successor, so ending it breaks no protocol; SIGKILL, since a stopped process takes no SIGTERM.
  if (policy === "kill") d.do({ kind: "signal", attempt: epoch.attempt, signal: "SIGKILL" });
  return { kind: "hung", sinceMs, by: "admin", lost: undefined };
}

function tellFewer(d: Draft, epoch: number, before: Inventory, now: Inventory): void {
  if (now.listeners >= before.listeners && now.clusters >= before.clusters) return;
  d.say({
    kind: "successor_has_fewer",
    epoch,
    listeners: [before.listeners, now.listeners],
    clusters: [before.clusters, now.clusters],
  });
}
