// Owns: the start of a supervisor that shares its base id with another pod: lock, look, check, repair, join or start afresh.
// Must not: hold the table (predecessor.ts), or start anything without the lock.

import type { Event } from "./event.ts";
import type { Draft } from "./draft.ts";
import type { Plan } from "./epoch.ts";
import type { Sighting } from "./sighting.ts";
import type { Detecting } from "./pod_phases.ts";
import type { Comeback, Foreign } from "./state.ts";
import { CONTROL_PLANE_POLL_MS, GIVE_WAY_MS, LOOK_FAST_MS, PREDECESSOR_MARGIN_MS, SEEK_MS, SEEN_MS } from "./bounds.ts";
import { begin } from "./comeback.ts";
import { abandon } from "./drained.ts";
import { awaitUnfinished } from "./orphans.ts";
import { epochToJoin, newestSlot, type Verdict, verdict } from "./predecessor.ts";
import { tellRepair } from "./failing.ts";
import { standBy } from "./stand_in.ts";
import { beginFirst } from "./starting.ts";
import { end } from "./stopping.ts";

type StepOf<K extends Detecting["step"]["kind"]> = Extract<Detecting["step"], { kind: K }>;

/** `wish`: what to start where nobody is there, or nobody but the foreign predecessor that it had. */
export function beginDetecting(d: Draft, tries: number, wish?: Comeback): void {
  const attempt = d.nextAttempt();
  d.stopTimers("look");
  d.to({
    kind: "detecting",
    attempt,
    sinceMs: d.nowMs,
    tries,
    told: false,
    newestSlot: undefined,
    wish,
    adopted: undefined,
    step: { kind: "locking" },
  });
  d.do({ kind: "take_handoff_lock", attempt, waitMs: d.settings.liveTimeoutMs });
}

/** Every event while it is looked for somebody else's epoch. */
export function detecting(d: Draft, phase: Detecting, event: Event): void {
  const { step, attempt } = phase;
  if (event.kind === "timer") {
    if (step.kind === "looking" && event.name === "look") d.do({ kind: "look", askOwner: true, probeLock: false });
    if (step.kind === "deciding" && event.name === "look") lookAgain(d, step.plan);
    if (step.kind === "giving_way" && event.name === "look") beginDetecting(d, phase.tries);
    if (step.kind === "awaiting_control_plane" && event.name === "poll") ask(d, attempt, step);
    return;
  }
  if (!("attempt" in event)) {
    if (event.kind !== "sighted" || event.askedAtMs < phase.sinceMs) return;
    if (step.kind !== "looking" && step.kind !== "deciding") return;
    const orphan = awaitUnfinished(d, phase, event.sighting);
    if (orphan === "waiting") return;
    if (orphan !== "nobody") return end(d, 4, orphan);
    const { awaited: _, ...now } = phase;
    // What stood by for it is not needed any more.
    if (phase.awaited !== undefined) d.to(now);
    return step.kind === "looking" ? looked(d, now, event.sighting) : decide(d, now, step, event.sighting);
  }
  if (event.attempt !== attempt) return;
  if (step.kind === "locking" && event.kind === "handoff_lock") return locked(d, phase, event.taken, event.problem);
  if (step.kind === "preflight" && event.kind === "preflight_refused") {
    d.say({ kind: "preflight_refused", refusal: event.refusal, tookMs: d.nowMs - step.beganAtMs });
    return end(d, 3, `${event.refusal.name}: ${event.refusal.detail}`);
  }
  if (step.kind === "preflight" && event.kind === "preflight_passed") {
    const { plan, cached } = event;
    const { bootstrapDigest, binaryDigest } = plan;
    const tookMs = d.nowMs - step.beganAtMs;
    d.say({ kind: "preflight_passed", cached, tookMs, bootstrapDigest, binaryDigest });
    const now: Detecting = { ...phase, sinceMs: d.nowMs };
    const next = { kind: "deciding", plan, controlPlane: "unasked" } as const;
    d.to({ ...now, step: next });
    // The lock is ours: what was seen a moment ago has had no time to become something else.
    const isFresh = tookMs < SEEN_MS && verdict(step.seen) === "join_by_admin";
    return isFresh ? decide(d, now, next, step.seen) : lookAgain(d, plan);
  }
  if (step.kind === "awaiting_control_plane" && event.kind === "inventory") {
    return heard(d, phase, step, event.inventory?.controlPlaneConnected !== false);
  }
  if (step.kind === "repairing" && event.kind === "segment_repaired") {
    if (event.outcome.kind !== "clean") tellRepair(d, event.outcome);
    return begin(d, step.comeback);
  }
}

function lookAgain(d: Draft, { admin }: Plan): void {
  d.do({ kind: "look", admin, askOwner: true, probeLock: false });
}

function locked(d: Draft, phase: Detecting, taken: boolean, problem: string | undefined): void {
  if (problem !== undefined) return end(d, 3, problem);
  const waitedMs = d.nowMs - phase.sinceMs;
  if (!taken) {
    if (waitedMs >= 2 * d.settings.liveTimeoutMs) {
      return end(d, 4, `another supervisor has held handoff.lock for ${Math.round(waitedMs / 1000)} s`);
    }
    d.say({ kind: "handoff_lock_awaited", waitedMs });
    return d.do({ kind: "take_handoff_lock", attempt: phase.attempt, waitMs: d.settings.liveTimeoutMs });
  }
  d.to({ ...phase, sinceMs: d.nowMs, step: { kind: "looking" } });
  d.do({ kind: "look", askOwner: true, probeLock: false });
}

/** Nobody there: an ordinary start. Somebody: what he said of himself is taken over before the checks. */
function looked(d: Draft, phase: Detecting, seen: Sighting): void {
  const { wish, tries } = phase;
  if (seen.otherBase !== undefined) {
    const { baseId, pod } = seen.otherBase;
    const todo = "another base id takes a state directory of its own, or a delete-first roll";
    return end(d, 3, `the state directory is that of base id ${baseId}, where an Envoy of ${pod} lives: ${todo}`);
  }
  if (verdict(seen) === "fresh_start") {
    if (wish === undefined) return beginAlone(d);
    // Its predecessor is gone together with it.
    return begin(d, wish.foreign === undefined ? wish : { ...wish, cause: "crash", number: 0, foreign: undefined });
  }
  const foreign = wish?.foreign;
  if (wish !== undefined && foreign !== undefined && isAlone(seen, foreign.epoch)) return repair(d, phase, wish);
  abandon(d, phase, "superseded");
  preflight(d, { ...phase, wish: undefined, tries }, seen);
}

/** What was taken over from somebody who is gone binds no longer. */
function beginAlone(d: Draft): void {
  d.do({ kind: "adopt" });
  beginFirst(d);
}

function isAlone({ slots }: Sighting, epoch: number): boolean {
  return slots.length === 1 && slots[0] === epoch % 3;
}

/**
 * Concurrency must be equal in every epoch. The parent ends when this child's parent-shutdown-time says so (a parent started with 3 s
 * under a child with 9 s ended after 9.2 s), so it must fit into what the other pod's grace period bears.
 */
function preflight(d: Draft, phase: Detecting, seen: Sighting): void {
  const { identity } = seen;
  const owner = seen.sameBoot === true ? seen.owner : undefined;
  const concurrency = identity?.concurrency ?? owner?.concurrency;
  if (concurrency !== undefined) {
    const graceMs = owner?.gracePeriodMs ?? 0;
    const bearsMs = graceMs > 0 ? Math.max(1_000, wholeSeconds(graceMs - PREDECESSOR_MARGIN_MS / 2)) : Infinity;
    const parentShutdownTimeMs = Math.min(d.settings.parentShutdownTimeMs, bearsMs);
    const pod = owner?.pod ?? "unknown";
    d.say({ kind: "settings_adopted", concurrency, parentShutdownTimeMs, pod });
    d.do({ kind: "adopt", concurrency, parentShutdownTimeMs });
  }
  const { attempt } = phase;
  d.to({ ...phase, adopted: concurrency, step: { kind: "preflight", beganAtMs: d.nowMs, seen } });
  const { hotRestartVersion } = identity ?? {};
  // By its admin it is certain that what owner.json speaks of serves.
  const proven = verdict(seen) === "join_by_admin" && owner?.epoch === identity?.epoch ? owner?.proof : undefined;
  d.do({
    kind: "preflight",
    attempt,
    depth: "full",
    provenKeys: [],
    joining: true,
    ...(hotRestartVersion === undefined ? {} : { hotRestartVersion }),
    ...(proven === undefined ? {} : { proven }),
  });
}

function wholeSeconds(ms: number): number {
  return Math.floor(ms / 1_000) * 1_000;
}

function decide(d: Draft, phase: Detecting, step: StepOf<"deciding">, seen: Sighting): void {
  const how = verdict(seen);
  const { tries } = phase;
  const { plan } = step;
  const comeback: Comeback = {
    cause: "first",
    number: 0,
    plan,
    parent: undefined,
    foreign: undefined,
    gapSinceMs: undefined,
    tries,
  };
  if (how === "fresh_start") return beginAlone(d);
  if (phase.newestSlot !== undefined && !seen.slots.includes(phase.newestSlot)) {
    d.to({ ...phase, step: { kind: "giving_way" } });
    return d.timer("look", GIVE_WAY_MS);
  }
  const boundMs = seekMs(d, seen);
  const mayWait = how.startsWith("wait") && d.nowMs - phase.sinceMs < boundMs;
  if (mayWait) {
    if (!phase.told) d.say({ kind: "predecessor_sought", slots: seen.slots, boundMs, why: how });
    d.to({ ...phase, told: true, newestSlot: seen.slots.length > 1 ? newestSlot(seen.slots) : undefined });
    return d.timer("look", LOOK_FAST_MS);
  }
  const isNews = seen.identity?.concurrency !== undefined && seen.identity.concurrency !== phase.adopted;
  // The first look knew no address to ask at: without an owner only the bootstrap names one.
  if (isNews) return preflight(d, phase, seen);
  const epoch = epochToJoin(seen, how) ?? 0;
  if (plan.controlPlaneClusters !== undefined && step.controlPlane === "unasked" && proofOf(how) === "admin") {
    const admin = seen.sameBoot === true && seen.owner !== undefined ? seen.owner.admin : plan.admin;
    const asking = { kind: "awaiting_control_plane", plan, admin, epoch, sinceMs: d.nowMs, told: false } as const;
    d.to({ ...phase, step: asking });
    return ask(d, phase.attempt, asking);
  }
  const orphan = seen.launches?.orphans.find((one) => one.epoch % 3 === epoch % 3);
  if (orphan !== undefined && !standBy(d, epoch, seen)) return d.timer("look", LOOK_FAST_MS);
  const pod = seen.owner === undefined ? {} : { pod: seen.owner.pod };
  d.say({ kind: "predecessor_found", epoch, by: proofOf(how), ...pod });
  const orphaned = orphan === undefined ? {} : { orphanPid: orphan.pid };
  const foreign: Foreign = { epoch, sinceMs: d.nowMs, boundMs: boundOf(d, seen), ...orphaned };
  repair(d, phase, { ...comeback, cause: "join", number: epoch + 1, foreign });
}

function ask(
  d: Draft,
  attempt: number,
  { admin, plan: { controlPlaneClusters } }: StepOf<"awaiting_control_plane">,
): void {
  const clusters = controlPlaneClusters === undefined ? {} : { controlPlaneClusters };
  d.do({ kind: "ask_inventory", attempt, admin, ...clusters });
}

/** A successor that is made while the control plane is away would be LIVE without clusters while its parent drains. */
function heard(d: Draft, phase: Detecting, step: StepOf<"awaiting_control_plane">, isThere: boolean): void {
  if (isThere) {
    const { plan } = step;
    // Much may have happened meanwhile.
    d.to({ ...phase, sinceMs: d.nowMs, step: { kind: "deciding", plan, controlPlane: "there" } });
    return lookAgain(d, plan);
  }
  const boundMs = d.settings.controlPlaneWaitMs;
  if (d.nowMs - step.sinceMs >= boundMs) {
    const who = `epoch ${step.epoch} of another supervisor`;
    return end(d, 4, `control_plane_away: ${who} has been disconnected from its control plane for ${boundMs / 1000} s`);
  }
  if (!step.told) {
    d.say({ kind: "control_plane_awaited", epoch: step.epoch, boundMs });
    d.to({ ...phase, step: { ...step, told: true } });
  }
  d.timer("poll", CONTROL_PLANE_POLL_MS);
}

function seekMs(d: Draft, { slots, owner, identity }: Sighting): number {
  if (slots.length > 1) {
    return (owner?.parentShutdownTimeMs ?? d.settings.parentShutdownTimeMs) + PREDECESSOR_MARGIN_MS;
  }
  // Started by somebody who knows no handoff.lock, and not LIVE yet.
  const starts = identity?.state === "INITIALIZING" || identity?.state === "PRE_INITIALIZING";
  return starts ? d.settings.liveTimeoutMs : SEEK_MS;
}

/**
 * Somebody may have been killed while his child started, and its flag would end every other child. The lock is ours and one Envoy
 * is there, which serves: nobody else initialises.
 */
function repair(d: Draft, phase: Detecting, comeback: Comeback): void {
  d.to({ ...phase, step: { kind: "repairing", comeback } });
  d.do({ kind: "repair_segment", attempt: phase.attempt });
}

/** How long after LIVE its sockets may be there: this child's parent-shutdown-time rules. */
function boundOf(d: Draft, seen: Sighting): number {
  const grace = seen.owner?.gracePeriodMs ?? 0;
  const ownMs = d.settings.parentShutdownTimeMs;
  return (grace > 0 ? Math.min(ownMs, grace) : ownMs) + PREDECESSOR_MARGIN_MS;
}

function proofOf(how: Verdict): "admin" | "beat" | "sockets" {
  if (how === "join_by_admin" || how === "wait_then_by_admin") return "admin";
  return how === "join_by_beat" || how === "wait_then_by_beat" ? "beat" : "sockets";
}
