// Owns: a handoff under way, until the successor is LIVE. Must not: touch the serving epoch; what goes wrong is failing.ts.

import type { Epoch, Exit } from "./epoch.ts";
import type { Event, Inventory } from "./event.ts";
import type { Draft } from "./draft.ts";
import type { Replacing } from "./state.ts";
import { CONTROL_PLANE_POLL_MS } from "./bounds.ts";
import { enterLive, exited, predecessorEnded, predecessorOverdue, watchdogTickMs } from "./arrive.ts";
import { adoptChild, newestDied } from "./comeback.ts";
import { checkAdmin, checkedAdmin, endSuccessor, failBeforeFork, handoffFailed, reaped, repaired } from "./failing.ts";
import { fork } from "./handoff.ts";
import { progress } from "./initialising.ts";
import { refusal } from "./refusal.ts";
import { refusedBefore } from "./triggers.ts";

type StepOf<K extends Replacing["step"]["kind"]> = Extract<Replacing["step"], { kind: K }>;

export function replacing(d: Draft, phase: Replacing, event: Event): void {
  if (event.kind === "child_exited") return childExited(d, phase, event.attempt, event.exit);
  if (event.kind === "timer" && event.name === "watchdog") return watch(d, phase);
  if (event.kind === "timer" && event.name === "predecessor") return predecessorOverdue(d, phase.predecessor);
  if (event.kind === "vitals" && event.attempt === phase.from.attempt) {
    return judgeVitals(d, phase, event.alive, event.detail);
  }
  const step = phase.step;
  switch (step.kind) {
    case "preflight":
      return preflight(d, phase, step, event);
    case "awaiting_control_plane":
      return awaiting(d, phase, step, event);
    case "initialising":
      return initialising(d, phase, step, event);
    case "ending":
      if (event.kind === "timer" && event.name === "kill") endSuccessor(d, phase, step.child, step.refusal, "SIGKILL");
      return;
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
      return failBeforeFork(d, phase, refusal("refused_before", detail), undefined);
    }
  }
  d.to({ ...phase, step: { kind: "awaiting_control_plane", attempt: step.attempt, plan, told: false } });
  d.do({ kind: "ask_inventory", attempt: phase.from.attempt, admin: phase.from.plan.admin });
}

/** A successor made while the control plane is away would be LIVE without clusters, and answer 503 while the parent drains. */
function awaiting(
  d: Draft,
  phase: Replacing,
  step: StepOf<"awaiting_control_plane">,
  event: Event,
): void {
  if (event.kind === "timer" && event.name === "poll") {
    return d.do({ kind: "ask_inventory", attempt: phase.from.attempt, admin: phase.from.plan.admin });
  }
  if (event.kind === "timer" && event.name === "deadline") {
    const seconds = d.settings.controlPlaneWaitMs / 1000;
    return failBeforeFork(
      d,
      phase,
      refusal(
        "control_plane_away",
        `epoch ${phase.from.number} is disconnected from its control plane since ${seconds} s`,
      ),
      { bootstrapDigest: step.plan.bootstrapDigest, binaryDigest: step.plan.binaryDigest },
    );
  }
  if (event.kind !== "inventory" || event.attempt !== phase.from.attempt) return;
  const away = event.inventory?.controlPlaneConnected === false;
  if (!away || phase.handoff.force) return fork(d, step.plan, event.inventory);
  if (!step.told) {
    d.say({ kind: "control_plane_awaited", epoch: phase.from.number, boundMs: d.settings.controlPlaneWaitMs });
    d.timer("deadline", d.settings.controlPlaneWaitMs);
    d.to({ ...phase, step: { ...step, told: true } });
  }
  d.timer("poll", CONTROL_PLANE_POLL_MS);
}

function initialising(
  d: Draft,
  phase: Replacing,
  step: StepOf<"initialising">,
  event: Event,
): void {
  const { child } = step;
  const outcome = progress(d, child, step.told, event);
  switch (outcome.kind) {
    case "nothing":
      return;
    case "going":
      return d.to({ ...phase, step: { ...step, child: outcome.child, told: outcome.told } });
    case "live":
      return live(d, phase, outcome.epoch, step.before);
    case "not_spawned":
      return failBeforeFork(d, phase, outcome.refusal, child.plan);
    case "too_late":
      return endSuccessor(d, phase, child, outcome.refusal, "SIGTERM");
  }
}

function live(d: Draft, phase: Replacing, epoch: Epoch, before: Inventory | undefined): void {
  const { handoff, from } = phase;
  // With a third generation asked for, N+2's start has made N+1 end N; N is still ours to reap.
  d.say({
    kind: "handoff_live",
    handoff: handoff.id,
    from: from.number,
    to: epoch.number,
    requests: handoff.requests,
    tookMs: d.nowMs - handoff.beganAtMs,
  });
  enterLive(d, { epoch, predecessor: { epoch: from, handoff, drainsSinceMs: d.nowMs }, compare: before });
}

function childExited(d: Draft, phase: Replacing, attempt: number, exit: Exit): void {
  if (attempt === phase.predecessor?.epoch.attempt) {
    predecessorEnded(d, phase.predecessor, exit, phase.from.number);
    return d.to({ ...phase, predecessor: undefined });
  }
  const { step } = phase;
  if (attempt === phase.from.attempt) {
    // The serving epoch is gone. A child that is under way may still come up (--skip-hot-restart-on-no-parent).
    if (step.kind === "initialising") return adoptChild(d, phase, step.child, exit);
    d.do({ kind: "cancel_preflight", attempt: d.state.attempts });
    handoffFailed(
      d,
      phase,
      refusal("superseded_by_crash", `epoch ${phase.from.number} died before its successor was started`),
    );
    return newestDied(d, phase.from, exit, phase.predecessor);
  }
  if ((step.kind === "initialising" || step.kind === "ending") && attempt === step.child.attempt) {
    d.say(exited(d, step.child, exit, "child"));
    reaped(d, phase, step, exit);
  }
}

/** While a child initialises it may have taken the admin, so the serving epoch is judged by its process. */
function watch(d: Draft, phase: Replacing): void {
  d.timer("watchdog", watchdogTickMs(d.settings.watchdogMs));
  d.do({ kind: "ask_vitals", attempt: phase.from.attempt, epoch: phase.from.number });
}

function judgeVitals(d: Draft, phase: Replacing, alive: boolean, detail: string): void {
  const { health } = phase;
  if (alive) {
    if (health.kind === "hung") d.to({ ...phase, health: { kind: "answering" } });
    return;
  }
  if (health.kind === "hung") return;
  const sinceMs = health.kind === "silent" ? health.sinceMs : d.nowMs;
  if (d.nowMs - sinceMs < d.settings.watchdogMs) return d.to({ ...phase, health: { kind: "silent", sinceMs } });
  // No `kill` here: it may have an attached successor, which the protocol ends together with it.
  d.say({ kind: "epoch_hung", epoch: phase.from.number, silentMs: d.nowMs - sinceMs, policy: "report", detail });
  d.to({ ...phase, health: { kind: "hung", sinceMs } });
}
