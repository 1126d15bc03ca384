// Owns: a handoff under way, until the successor is LIVE. Must not: touch the serving epoch; what goes wrong is failing.ts.

import type { Epoch, Exit } from "./epoch.ts";
import type { Event, Inventory, Vitals } from "./event.ts";
import type { Draft } from "./draft.ts";
import type { Replacing } from "./state.ts";
import { CONTROL_PLANE_POLL_MS } from "./bounds.ts";
import {
  askInventory,
  enterLive,
  exited,
  killChild,
  predecessorEnded,
  predecessorOverdue,
  watchdogTickMs,
} from "./arrive.ts";
import { adoptChild, newestDied, type Remains } from "./comeback.ts";
import {
  checkAdmin,
  checkedAdmin,
  endSuccessor,
  failBeforeFork,
  handoffFailed,
  reaped,
  repaired,
  tellRepair,
} from "./failing.ts";
import { fork, spawnSuccessor } from "./handoff.ts";
import { hasForeignSuccessor, lookOut } from "./company.ts";
import { count, counted } from "./drained.ts";
import { progress } from "./initialising.ts";
import { leave } from "./leaving.ts";
import { refusal } from "./refusal.ts";
import { judge, lostAdmin } from "./serving.ts";
import { afterPredecessor } from "./stand_in.ts";
import { enterYielding } from "./yielding.ts";
import { beginTrial } from "./trial.ts";
import { refusedBefore } from "./triggers.ts";

type StepOf<K extends Replacing["step"]["kind"]> = Extract<Replacing["step"], { kind: K }>;

/** Every event while a handoff is under way. */
export function replacing(d: Draft, phase: Replacing, event: Event): void {
  if (event.kind === "child_exited") return childExited(d, phase, event.attempt, event.exit);
  if (event.kind === "timer" && event.name === "watchdog") return watch(d, phase);
  if (event.kind === "timer" && event.name === "predecessor") return predecessorOverdue(d, phase.predecessor);
  if (event.kind === "vitals" && event.attempt === phase.from.attempt) {
    return judgeVitals(d, phase, event);
  }
  if (event.kind === "timer" && event.name === "look") return lookOut(d, phase.from);
  if (preempted(d, phase, event)) return;
  const step = phase.step;
  if (event.kind === "identity" && event.attempt === phase.from.attempt && !isForked(step)) {
    return d.to({ ...phase, health: judge(d, phase.from, phase.health, event.askedAtMs, event.answer) });
  }
  switch (step.kind) {
    case "preflight":
      return preflight(d, phase, step, event);
    case "counting":
      if (event.kind !== "connections" || event.attempt !== phase.from.attempt) return;
      return counted(d, phase, step.plan, event.connections);
    case "awaiting_control_plane":
      return awaiting(d, phase, step, event);
    case "locking":
      return locking(d, phase, step, event);
    case "initialising":
      return initialising(d, phase, step, event);
    case "ending":
      return ending(d, phase, step, event);
    case "repairing":
      if (event.kind === "segment_repaired" && event.attempt === step.attempt) repaired(d, phase, step, event.outcome);
      return;
    case "checking_admin":
      if (event.kind === "identity" && event.attempt === phase.from.attempt) {
        checkedAdmin(d, phase, step, event.askedAtMs, event.answer);
      } else if (event.kind === "timer" && event.name === "poll") checkAdmin(d, phase);
      return;
  }
}

function preflight(
  d: Draft,
  phase: Replacing,
  step: StepOf<"preflight">,
  event: Event,
): void {
  if (event.kind === "preflight_refused" && event.attempt === step.attempt) {
    d.say({ kind: "preflight_refused", refusal: event.refusal, tookMs: d.nowMs - step.beganAtMs });
    return failBeforeFork(d, phase, event.refusal, event.looked);
  }
  if (event.kind !== "preflight_passed" || event.attempt !== step.attempt) return;
  const { plan } = event;
  const { bootstrapDigest, binaryDigest } = plan;
  d.say({
    kind: "preflight_passed",
    cached: event.cached,
    tookMs: d.nowMs - step.beganAtMs,
    bootstrapDigest,
    binaryDigest,
  });
  if (phase.handoff.when === "changed") {
    if (plan.key === phase.from.plan.key) {
      return failBeforeFork(d, phase, refusal("unchanged", "content is what the newest epoch runs"), undefined);
    }
    const before = refusedBefore(d.state, bootstrapDigest, binaryDigest);
    if (before !== undefined && phase.handoff.source !== "retry") {
      const detail = `${before.refusal.name}: ${before.refusal.detail}`;
      return failBeforeFork(d, phase, refusal("refused_before", detail), plan);
    }
  }
  const { attempt } = step;
  if (phase.handoff.drained) return count(d, phase, attempt, plan);
  const isRepairing = d.state.flagLeft;
  d.to({ ...phase, step: { kind: "awaiting_control_plane", attempt, plan, told: false, isRepairing } });
  if (isRepairing) d.do({ kind: "repair_segment", attempt });
  else askInventory(d, phase.from);
}

/** A successor made while the control plane is away would be LIVE without clusters, and answer 503 while the parent drains. */
function awaiting(
  d: Draft,
  phase: Replacing,
  step: StepOf<"awaiting_control_plane">,
  event: Event,
): void {
  if (event.kind === "segment_repaired" && event.attempt === step.attempt && step.isRepairing) {
    tellRepair(d, event.outcome);
    d.to({ ...phase, step: { ...step, isRepairing: false } });
    return phase.handoff.source === "recovery" ? fork(d, step.plan, undefined) : askInventory(d, phase.from);
  }
  if (step.isRepairing) return;
  if (event.kind === "timer" && event.name === "poll") return askInventory(d, phase.from);
  if (event.kind === "timer" && event.name === "deadline") {
    const seconds = d.settings.controlPlaneWaitMs / 1000;
    return failBeforeFork(
      d,
      phase,
      refusal(
        "control_plane_away",
        `epoch ${phase.from.number} has been disconnected from its control plane for ${seconds} s`,
      ),
      step.plan,
    );
  }
  if (event.kind !== "inventory" || event.attempt !== phase.from.attempt) return;
  const away = event.inventory?.controlPlaneConnected === false;
  if (!away || phase.handoff.force) return fork(d, step.plan, event.inventory);
  if (d.state.pending?.force === true) {
    // Who does not want to wait comes next.
    const detail = `epoch ${phase.from.number} is disconnected from its control plane, a forced handoff follows`;
    return failBeforeFork(d, phase, refusal("control_plane_away", detail), step.plan);
  }
  if (!step.told) {
    d.say({ kind: "control_plane_awaited", epoch: phase.from.number, boundMs: d.settings.controlPlaneWaitMs });
    d.timer("deadline", d.settings.controlPlaneWaitMs);
    d.to({ ...phase, step: { ...step, told: true } });
  }
  d.timer("poll", CONTROL_PLANE_POLL_MS);
}

/** The lock is ours: nobody else starts a successor. One that came before it is seen by its socket. */
function locking(d: Draft, phase: Replacing, step: StepOf<"locking">, event: Event): void {
  if (event.kind === "handoff_lock" && event.attempt === step.attempt) {
    if (!event.taken) {
      const why = event.problem ?? "another supervisor holds handoff.lock";
      return failBeforeFork(d, phase, refusal("handoff_elsewhere", why), undefined);
    }
    d.to({ ...phase, step: { ...step, lockedAtMs: d.nowMs } });
    return d.do({ kind: "look", probeLock: false });
  }
  const { isRepairing, lockedAtMs } = step;
  if (isRepairing) {
    if (event.kind !== "segment_repaired" || event.attempt !== step.attempt) return;
    if (event.outcome.kind !== "clean") tellRepair(d, event.outcome);
    return spawnSuccessor(d, phase, step);
  }
  if (event.kind !== "sighted" || lockedAtMs === undefined || event.askedAtMs < lockedAtMs) return;
  // Another supervisor may have been killed while its child started, and the flag of that one would end this one's.
  d.to({ ...phase, step: { ...step, isRepairing: true } });
  d.do({ kind: "repair_segment", attempt: step.attempt });
}

/** Shared base id: another pod's successor came first; the wish behind this handoff is that one's now. */
function preempted(d: Draft, phase: Replacing, event: Event): boolean {
  if (event.kind !== "sighted" || !hasForeignSuccessor(d.state, phase.from, event.sighting)) return false;
  if (!["preflight", "counting", "awaiting_control_plane", "locking"].includes(phase.step.kind)) return false;
  if (phase.step.kind === "preflight") d.do({ kind: "cancel_preflight", attempt: phase.step.attempt });
  handoffFailed(d, phase, refusal("superseded", `another supervisor started epoch ${phase.from.number + 1} first`));
  enterYielding(d, { epoch: phase.from, predecessor: phase.predecessor, stop: undefined });
  return true;
}

function initialising(
  d: Draft,
  phase: Replacing,
  step: StepOf<"initialising">,
  event: Event,
): void {
  const { child } = step;
  const outcome = progress(d, step, event);
  switch (outcome.kind) {
    case "nothing":
      return;
    case "going":
      return d.to({ ...phase, step: { ...outcome.seen, before: step.before } });
    case "live":
      return live(d, phase, outcome.epoch, step.before);
    case "not_spawned":
      return failBeforeFork(d, phase, outcome.refusal, child.plan);
    case "too_late":
      return endSuccessor(d, phase, child, outcome.refusal, step.told !== "");
  }
}

function ending(d: Draft, phase: Replacing, step: StepOf<"ending">, event: Event): void {
  const { child, refusal, tookAdmin } = step;
  if (event.kind === "timer" && event.name === "kill") {
    return endSuccessor(d, phase, child, refusal, tookAdmin);
  }
  if (event.kind !== "identity" || event.attempt !== child.attempt || event.answer.kind !== "answered") return;
  if (event.answer.identity.epoch === child.number) d.to({ ...phase, step: { ...step, tookAdmin: true } });
}

function live(d: Draft, phase: Replacing, epoch: Epoch, before: Inventory | undefined): void {
  const { handoff, from } = phase;
  leave(d, phase.predecessor);
  d.say({
    kind: "handoff_live",
    handoff: handoff.id,
    from: from.number,
    to: epoch.number,
    requests: handoff.requests,
    tookMs: d.nowMs - handoff.beganAtMs,
  });
  beginTrial(d, handoff, from.plan, epoch.plan);
  enterLive(d, { epoch, predecessor: { epoch: from, handoff, drainsSinceMs: d.nowMs, revivals: 0 }, compare: before });
}

function childExited(d: Draft, phase: Replacing, attempt: number, exit: Exit): void {
  if (attempt === phase.predecessor?.epoch.attempt) {
    predecessorEnded(d, phase.predecessor, exit, phase.from.number);
    const isTold = hasTakenAdmin(phase.step) || phase.health.kind === "admin_lost";
    afterPredecessor(d, phase.predecessor.epoch.number, phase.from, exit, isTold);
    return d.to({ ...phase, predecessor: undefined });
  }
  const { step } = phase;
  if (attempt === phase.from.attempt) {
    // The serving epoch is gone. A child that has not attached may still come up (--skip-hot-restart-on-no-parent).
    if (step.kind === "initialising" && step.told === "") return adoptChild(d, phase, step, exit);
    if (step.kind === "initialising") {
      // It has attached, and would abort in the middle of its next talk with its parent (1.38.3 to 1.40.0).
      killChild(d, step.child);
      leave(d, phase.predecessor);
    }
    if (step.kind === "preflight") d.do({ kind: "cancel_preflight", attempt: step.attempt });
    const when = step.kind === "initialising" ? "while its successor started" : "before its successor was started";
    handoffFailed(d, phase, refusal("superseded_by_crash", `epoch ${phase.from.number} died ${when}`));
    const predecessor = step.kind === "initialising" ? undefined : phase.predecessor;
    return newestDied(d, phase.from, exit, predecessor, remainsOf(step));
  }
  if ((step.kind === "initialising" || step.kind === "ending") && attempt === step.child.attempt) {
    d.say(exited(d, step.child, exit, "child"));
    reaped(d, phase, step, exit);
  }
}

/** Together with its admin the serving epoch gives up the predecessor that it still has. */
function hasTakenAdmin(step: Replacing["step"]): boolean {
  return step.kind === "initialising" ? step.told !== "" : "tookAdmin" in step && step.tookAdmin;
}

/** What a failed successor has left so far. */
function remainsOf(step: Replacing["step"]): Remains | undefined {
  if (step.kind === "ending" || step.kind === "initialising") return { attempt: step.child.attempt, child: step.child };
  const isRepairing = step.kind === "repairing" ||
    ((step.kind === "awaiting_control_plane" || step.kind === "locking") && step.isRepairing);
  return isRepairing ? { attempt: step.attempt, child: undefined } : undefined;
}

function isForked(step: Replacing["step"]): boolean {
  return step.kind !== "preflight" && step.kind !== "counting" && step.kind !== "awaiting_control_plane";
}

/** While a child initialises it may have taken the admin, so the serving epoch is judged by its process. */
function watch(d: Draft, phase: Replacing): void {
  d.timer("watchdog", watchdogTickMs(d.settings.watchdogMs));
  const { from, step } = phase;
  d.do({ kind: "ask_vitals", attempt: from.attempt, epoch: from.number, admin: from.plan.admin });
  if (!isForked(step)) d.do({ kind: "ask_identity", attempt: from.attempt, admin: from.plan.admin });
}

function judgeVitals(d: Draft, phase: Replacing, vitals: Vitals): void {
  const { alive, detail } = vitals;
  // A child takes the admin on its way, which is no loss yet.
  const health = isForked(phase.step) ? phase.health : lostAdmin(d, phase.from, phase.health, vitals);
  if (health !== phase.health) return d.to({ ...phase, health });
  if (alive) {
    // A live process proves nothing where it was the admin that fell silent.
    const isCured = (health.kind === "silent" && isForked(phase.step)) ||
      (health.kind === "hung" && health.by === "vitals");
    if (isCured) d.to({ ...phase, health: health.lost ?? { kind: "answering" } });
    return;
  }
  if (health.kind === "hung") return;
  const lost = health.kind === "admin_lost" ? health : health.kind === "silent" ? health.lost : undefined;
  const sinceMs = health.kind === "silent" ? health.sinceMs : d.nowMs;
  if (d.nowMs - sinceMs < d.settings.watchdogMs) return d.to({ ...phase, health: { kind: "silent", sinceMs, lost } });
  // No `kill` here: it may have an attached successor, which the protocol ends together with it.
  d.say({ kind: "epoch_hung", epoch: phase.from.number, silentMs: d.nowMs - sinceMs, policy: "report", detail });
  d.to({ ...phase, health: { kind: "hung", sinceMs, by: "vitals", lost } });
}
