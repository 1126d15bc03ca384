// Owns: Envoys that have outlived their supervisor: one that still initialises when the next supervisor comes, and those that a stop
// must not leave behind. Must not: signal one that a living supervisor's Envoy succeeds; that one ends it by protocol.

import type { Draft } from "./draft.ts";
import type { Event } from "./event.ts";
import type { Orphan, Unfinished } from "./orphan.ts";
import type { Detecting } from "./pod_phases.ts";
import type { Sighting } from "./sighting.ts";
import type { Stopping, StopStep } from "./state.ts";
import { KILL_AFTER_MS, LOOK_FAST_MS } from "./bounds.ts";
import { standBy } from "./stand_in.ts";

/** The step of a stop in which they are ended. */
export type Leaving = Extract<StopStep, { kind: "ending_orphans" }>;

/** How long an orphan may initialise whose parent is gone: as long as a start takes that waits for nobody. */
const ALONE_MS = 3_000;
/** A process that SIGKILL does not end within this is stuck in the kernel. */
const UNENDING_MS = 3 * KILL_AFTER_MS;

/**
 * An Envoy that was started last and is not LIVE: its flag must not be cleared, nor another one be started. It gets what is left of its
 * live_timeout, since its control plane may come back as anybody's; then it is killed (docs/adr/0007). Returns whether it is waited for,
 * or why that is over.
 */
export function awaitUnfinished(d: Draft, phase: Detecting, seen: Sighting): "nobody" | "waiting" | string {
  const unfinished = seen.launches?.unfinished;
  // One that answers LIVE is: the flag is that of a child which nobody has recorded (without `serve`), and which is dead.
  if (unfinished === undefined || isLive(seen, unfinished.epoch)) return "nobody";
  const { epoch, pid, ageMs, isOrphan } = unfinished;
  // Without its parent it waits for that one's answers for ever, and while it is waited for nobody serves.
  const isAlone = isOrphan && epoch > 0 && !seen.slots.some((slot) => slot !== epoch % 3);
  const leftMs = (isAlone ? Math.min(ALONE_MS, d.settings.liveTimeoutMs) : d.settings.liveTimeoutMs) - ageMs;
  if (leftMs < -UNENDING_MS - (isOrphan ? 0 : d.settings.liveTimeoutMs)) {
    return `epoch ${epoch} (pid ${pid}) of another supervisor initialises for ${
      Math.round(ageMs / 1000)
    } s and can't be ended`;
  }
  // The parent of this one may have lost its own; that is asked once.
  if (isOrphan && epoch > 0 && phase.awaited !== pid && seen.slots.includes((epoch - 1) % 3)) {
    standBy(d, epoch - 1, seen);
  }
  if (isOrphan && leftMs <= 0) endUnfinished(d, unfinished);
  else if (phase.awaited !== pid) d.say({ kind: "orphan_awaited", epoch, pid, boundMs: Math.max(0, leftMs) });
  // What is decided next begins when it is LIVE, or gone.
  d.to({ ...phase, awaited: pid, sinceMs: d.nowMs });
  d.timer("look", LOOK_FAST_MS);
  return "waiting";
}

function isLive({ identity }: Sighting, epoch: number): boolean {
  return identity?.epoch === epoch && identity.state === "LIVE";
}

/** The successor of an epoch that yields: its supervisor was killed and nobody else will end it. */
export function endStuckSuccessor(d: Draft, seen: Sighting): void {
  const unfinished = seen.launches?.unfinished;
  if (unfinished?.isOrphan === true && unfinished.ageMs >= d.settings.liveTimeoutMs) endUnfinished(d, unfinished);
}

function endUnfinished(d: Draft, { epoch, pid }: Unfinished, why: "not_live" | "stop" = "not_live"): void {
  d.say({ kind: "orphan_ending", epoch, pid, signal: "SIGKILL", why });
  d.do({ kind: "signal_orphan", pid, signal: "SIGKILL", unlessLive: true });
}

/** Nothing of this supervisor lives any more. Returns false where no orphan can be there either. */
export function leavesOrphans(d: Draft, phase: Stopping): boolean {
  const isAsked = phase.times > 0 && phase.exitCode === 0;
  if (d.settings.onSupervisorDeath !== "serve" || !isAsked || phase.step.kind === "ending_orphans") return false;
  d.to({
    ...phase,
    step: { kind: "ending_orphans", sinceMs: d.nowMs, attempt: undefined, newest: undefined, stage: "looking" },
  });
  lookForOrphans(d);
  return true;
}

function lookForOrphans(d: Draft): void {
  d.do({ kind: "look", askOwner: true, probeLock: true });
  d.timer("look", LOOK_FAST_MS);
}

/** Every event while orphans are drained and ended. Returns true when nobody is left, or somebody else is in charge. */
export function endingOrphans(d: Draft, phase: Stopping, step: Leaving, event: Event): boolean {
  if (event.kind === "timer" && event.name === "look") lookForOrphans(d);
  if (event.kind === "timer" && (event.name === "drain" || event.name === "kill")) hurry(d, phase, step);
  if (event.kind !== "sighted" || event.askedAtMs < step.sinceMs) return false;
  const { launches, handoffUnderWay } = event.sighting;
  const newest = launches?.orphans[0];
  const isOver = step.stage !== "draining" && d.nowMs - step.sinceMs > d.settings.drainTimeMs + UNENDING_MS;
  // Whoever starts now takes over from it.
  if (newest === undefined || handoffUnderWay === true || isOver) {
    d.stopTimers("look", "drain", "kill");
    return true;
  }
  if (step.stage === "looking") drain(d, phase, step, newest, event.sighting);
  return false;
}

/** As an epoch of one's own: its listeners close gracefully, and at the end of the drain time it is told to end. */
function drain(
  d: Draft,
  phase: Stopping,
  step: Leaving,
  newest: Orphan,
  { owner, sameBoot, launches }: Sighting,
): void {
  // By SIGTERM it would take the one that serves along, undrained (docs/adr/0007).
  if (launches?.unfinished !== undefined) return endUnfinished(d, launches.unfinished, "stop");
  const isDrained = phase.times > 1;
  if (isDrained || owner === undefined || sameBoot !== true) return tell(d, phase, step, newest, "SIGTERM");
  const attempt = d.nextAttempt();
  const boundMs = Math.max(d.settings.drainTimeMs, owner.drainTimeMs);
  d.to({ ...phase, step: { ...step, attempt, newest, stage: "draining" } });
  d.do({ kind: "drain", attempt, admin: owner.admin, form: "listeners" });
  d.timer("drain", boundMs);
  d.say({ kind: "drain_began", epoch: newest.epoch, boundMs, form: "listeners" });
}

/** The drain is over, or shall be; then what SIGTERM has not ended is killed. */
export function hurry(d: Draft, phase: Stopping, step: Leaving): void {
  const { newest } = step;
  if (newest !== undefined) tell(d, phase, step, newest, step.stage === "draining" ? "SIGTERM" : "SIGKILL");
}

/** By SIGTERM it ends the one that drains under it as well (1.38.3 to 1.40.0). */
function tell(d: Draft, phase: Stopping, step: Leaving, newest: Orphan, signal: "SIGTERM" | "SIGKILL"): void {
  const { epoch, pid } = newest;
  d.stopTimers("drain");
  d.to({ ...phase, step: { ...step, newest, stage: signal === "SIGTERM" ? "ending" : "looking" } });
  d.say({ kind: "orphan_ending", epoch, pid, signal, why: "stop" });
  d.do({ kind: "signal_orphan", pid, signal, unlessLive: false });
  d.timer("kill", KILL_AFTER_MS);
}
