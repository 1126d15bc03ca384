// Owns: the phase in which one epoch serves: watchdog, the predecessor's end.
// Must not: know how a successor is made.

import type { Epoch } from "./epoch.ts";
import type { Event, IdentityAnswer, Inventory } from "./event.ts";
import type { Draft } from "./draft.ts";
import type { Health, Serving } from "./state.ts";
import { predecessorEnded, predecessorOverdue, watchdogTickMs } from "./arrive.ts";
import { newestDied } from "./comeback.ts";
import { beginRecovery } from "./handoff.ts";

export function serving(d: Draft, phase: Serving, event: Event): void {
  switch (event.kind) {
    case "child_exited":
      if (event.attempt === phase.epoch.attempt) return newestDied(d, phase.epoch, event.exit, phase.predecessor);
      if (event.attempt === phase.predecessor?.epoch.attempt) {
        predecessorEnded(d, phase.predecessor, event.exit, phase.epoch.number);
        d.to({ ...phase, predecessor: undefined });
      }
      return;
    case "identity":
      if (event.attempt !== phase.epoch.attempt) return;
      return d.to({ ...phase, health: judge(d, phase.epoch, phase.health, event.askedAtMs, event.answer) });
    case "vitals":
      if (event.attempt !== phase.epoch.attempt || phase.health.kind !== "admin_lost") return;
      if (!event.alive) d.to({ ...phase, health: hung(d, phase.epoch, phase.health.sinceMs, event.detail) });
      return;
    case "inventory":
      if (event.attempt !== phase.epoch.attempt || phase.compare === undefined) return;
      if (event.inventory !== undefined) tellFewer(d, phase.epoch.number, phase.compare, event.inventory);
      return d.to({ ...phase, compare: undefined });
    case "timer":
      if (event.name === "watchdog") watch(d, phase);
      else if (event.name === "predecessor") predecessorOverdue(d, phase.predecessor);
      else if (event.name === "backoff" && phase.health.kind === "admin_lost") beginRecovery(d, phase);
      return;
    default:
      return;
  }
}

function watch(d: Draft, phase: Serving): void {
  const { epoch, health } = phase;
  d.timer("watchdog", watchdogTickMs(d.settings.watchdogMs));
  // Admin is asked even when it was lost: it may come back by an epoch started behind epochd's back, and it costs nothing.
  if (health.kind === "admin_lost") d.do({ kind: "ask_vitals", attempt: epoch.attempt, epoch: epoch.number });
  d.do({ kind: "ask_identity", attempt: epoch.attempt, admin: epoch.plan.admin });
}

/** What an answer, or none, says about the newest epoch. */
export function judge(d: Draft, epoch: Epoch, health: Health, askedAtMs: number, answer: IdentityAnswer): Health {
  if (answer.kind === "answered" && answer.identity.epoch === epoch.number) {
    if (health.kind === "hung" || health.kind === "admin_lost") {
      d.say({ kind: "admin_back", epoch: epoch.number, silentMs: d.nowMs - health.sinceMs });
    }
    return { kind: "answering" };
  }
  if (health.kind === "admin_lost" || health.kind === "hung") return health;
  // Counted from the first unanswered question, so a supervisor that was itself stopped does not blame Envoy.
  const sinceMs = health.kind === "silent" ? health.sinceMs : askedAtMs;
  if (d.nowMs - sinceMs < d.settings.watchdogMs) return { kind: "silent", sinceMs };
  return hung(d, epoch, sinceMs, answer.kind === "silent" ? answer.detail : `epoch ${answer.identity.epoch} answers`);
}

function hung(d: Draft, epoch: Epoch, sinceMs: number, detail: string): Health {
  const policy = d.settings.onHang;
  d.say({ kind: "epoch_hung", epoch: epoch.number, silentMs: d.nowMs - sinceMs, policy, detail });
  // The newest epoch has no successor, so ending it breaks no protocol; SIGKILL, since a stopped process takes no SIGTERM.
  if (policy === "kill") d.do({ kind: "signal", attempt: epoch.attempt, signal: "SIGKILL" });
  return { kind: "hung", sinceMs };
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
