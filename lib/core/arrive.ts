// Owns: the moments every path shares: a child becomes LIVE, an epoch serves, a predecessor has ended.
// Must not: decide whether any of them should happen.

import type { Child, Epoch, Exit, Plan } from "./epoch.ts";
import type { Inventory } from "./event.ts";
import type { Fact, Role } from "./fact.ts";
import type { Draft } from "./draft.ts";
import type { Foreign, Health, Predecessor } from "./state.ts";
import { KILL_AFTER_MS, PREDECESSOR_MARGIN_MS } from "./bounds.ts";
import { timeStandIn } from "./stand_in.ts";
import { catchUp } from "./triggers.ts";

/** How often the watchdog asks: three chances within the bound. */
export function watchdogTickMs(watchdogMs: number): number {
  return Math.max(100, Math.floor(watchdogMs / 3));
}

/** What is known of an epoch on its way into serving. */
export interface Arrival {
  readonly epoch: Epoch;
  readonly predecessor: Predecessor | undefined;
  readonly foreign?: Foreign | undefined;
  readonly rejoins?: number;
  readonly health?: Health;
  readonly compare?: Inventory | undefined;
}

/** Every way into serving goes through here, so that its timers always run. */
export function enterServing(d: Draft, arrival: Arrival): void {
  d.stopTimers("deadline", "poll", "kill", "backoff");
  d.to({
    kind: "serving",
    epoch: arrival.epoch,
    predecessor: arrival.predecessor,
    foreign: arrival.foreign,
    health: arrival.health ?? { kind: "answering" },
    compare: arrival.compare,
    ...(arrival.rejoins === undefined ? {} : { rejoins: arrival.rejoins }),
  });
  d.timer("watchdog", watchdogTickMs(d.settings.watchdogMs));
}

/** A child became LIVE: it serves, its plan is proven, older snapshots go. */
export function enterLive(d: Draft, arrival: Arrival): void {
  const { plan } = arrival.epoch;
  const proven = [plan, ...d.state.proven.filter((p) => p.key !== plan.key)].slice(0, 2);
  const refused = d.state.refused.filter((r) =>
    r.bootstrapDigest !== plan.bootstrapDigest || r.binaryDigest !== plan.binaryDigest
  );
  d.set({ proven, refused });
  enterServing(d, arrival);
  if (arrival.predecessor !== undefined) {
    d.timer("predecessor", overdueAfterMs(d, plan));
  }
  if (arrival.compare !== undefined) askInventory(d, arrival.epoch);
  timeStandIn(d, arrival.epoch);
  // What may still be started again.
  const kept = d.state.trial === undefined ? proven : [...proven, d.state.trial.before];
  d.do({ kind: "prune_snapshots", keepDigests: [...new Set(kept.map((p) => p.bootstrapDigest))] });
  if (d.settings.rollbackWithinMs > 0 || d.settings.binaryTrialMs > 0) {
    const { attempt, plan: { binaryDigest: digest, binaryPath: path } } = arrival.epoch;
    const keepDigests = [...new Set(kept.map((p) => p.binaryDigest))];
    d.do({ kind: "keep_binary", attempt, digest, path, keepDigests });
  }
  catchUp(d);
}

/** What is loaded, and whether the control plane is there. */
export function askInventory(d: Draft, { attempt, plan: { admin, controlPlaneClusters } }: Epoch): void {
  d.do({
    kind: "ask_inventory",
    attempt,
    admin,
    ...(controlPlaneClusters === undefined ? {} : { controlPlaneClusters }),
  });
}

/** When a predecessor is overdue that an epoch of this plan ends. */
export function overdueAfterMs(d: Draft, plan: Plan): number {
  return Math.max(d.settings.parentShutdownTimeMs, plan.parentShutdownTimeMs ?? 0) + PREDECESSOR_MARGIN_MS;
}

/** The fact of an exit; each attempt has exactly one. */
export function exited(d: Draft, child: Child, exit: Exit, role: Role): Fact {
  return {
    kind: "epoch_exited",
    epoch: child.number,
    attempt: child.attempt,
    ...(child.pid === undefined ? {} : { pid: child.pid }),
    exit,
    role,
    livedMs: d.nowMs - child.spawnedAtMs,
  };
}

/** The predecessor was reaped, and its bound with it. */
export function predecessorEnded(d: Draft, predecessor: Predecessor, exit: Exit, successor: number): void {
  d.stopTimers("predecessor");
  tellEnded(d, predecessor, exit, successor);
}

/** The handoff that began with this predecessor is done. */
export function tellEnded(d: Draft, predecessor: Predecessor, exit: Exit, successor: number): void {
  const { epoch, handoff, drainsSinceMs } = predecessor;
  d.say(exited(d, epoch, exit, "predecessor"), {
    kind: "handoff_done",
    handoff: handoff.id,
    from: epoch.number,
    to: successor,
    requests: handoff.requests,
    drainedMs: d.nowMs - drainsSinceMs,
  });
}

/**
 * Its successor has told it to terminate and closed the relation at parent-shutdown-time; an Envoy that still lives so long after
 * is stopped or dead-locked, drains nobody, and would block every later handoff (docs/adr/0003).
 */
export function predecessorOverdue(d: Draft, predecessor: Predecessor | undefined): void {
  if (predecessor === undefined) return;
  const { number: epoch, attempt } = predecessor.epoch;
  d.say({ kind: "predecessor_overdue", epoch, boundMs: d.settings.parentShutdownTimeMs + PREDECESSOR_MARGIN_MS });
  d.do({ kind: "signal", attempt, signal: "SIGKILL" });
  d.timer("predecessor", PREDECESSOR_MARGIN_MS);
}

/** Asks a child to end, and says so; `kill` is armed for one that does not. */
export function endChild(d: Draft, child: Child, role: Role, signal: "SIGTERM" | "SIGKILL", killAfterMs: number): void {
  d.say({
    kind: "epoch_ending",
    epoch: child.number,
    ...(child.pid === undefined ? {} : { pid: child.pid }),
    signal,
    role,
  });
  d.do({ kind: "signal", attempt: child.attempt, signal });
  d.timer("kill", killAfterMs);
}

/**
 * A child that is not LIVE has nothing to drain and gets no SIGTERM: it would end its parent, which serves, together with itself
 * (1.38.3 to 1.40.0, once it has attached).
 */
export function killChild(d: Draft, child: Child): void {
  endChild(d, child, "child", "SIGKILL", KILL_AFTER_MS);
}

/** A stopped predecessor would hold its successor up, which asks it for counters and waits: going on harms nobody. */
export function wake(d: Draft, predecessor: Predecessor | undefined): void {
  if (predecessor !== undefined) d.do({ kind: "signal", attempt: predecessor.epoch.attempt, signal: "SIGCONT" });
}
