// Owns: third generations, which the protocol ends when a successor's successor starts. Must not: touch the two that remain.

import type { Event } from "./event.ts";
import type { Draft } from "./draft.ts";
import type { Predecessor } from "./state.ts";
import { endChild, overdueAfterMs, tellEnded } from "./arrive.ts";
import { KILL_AFTER_MS, PREDECESSOR_MARGIN_MS } from "./bounds.ts";

/** From now on it is only reaped, or killed when it is as overdue as any predecessor. */
export function leave(d: Draft, predecessor: Predecessor | undefined): void {
  if (predecessor === undefined) return;
  d.set({ leaving: [...d.state.leaving, predecessor] });
  d.timer("leaving", Math.max(0, overdueAtMs(d, predecessor) - d.nowMs));
}

/** True when the event was about one that leaves. */
export function leaving(d: Draft, event: Event): boolean {
  if (event.kind === "timer" && event.name === "leaving") {
    killOverdue(d);
    return true;
  }
  if (event.kind !== "child_exited") return false;
  const gone = d.state.leaving.find(({ epoch }) => epoch.attempt === event.attempt);
  if (gone === undefined) return false;
  d.set({ leaving: d.state.leaving.filter((one) => one !== gone) });
  if (d.state.leaving.length === 0) d.stopTimers("leaving");
  tellEnded(d, gone, event.exit, gone.epoch.number + 1);
  return true;
}

/** Nobody else lives, so nobody is attached to them and nobody else will end them. */
export function killLeaving(d: Draft): void {
  for (const { epoch } of d.state.leaving) endChild(d, epoch, "predecessor", "SIGKILL", KILL_AFTER_MS);
}

function overdueAtMs(d: Draft, { drainsSinceMs, epoch }: Predecessor): number {
  return drainsSinceMs + overdueAfterMs(d, epoch.plan);
}

function killOverdue(d: Draft): void {
  for (const one of d.state.leaving) {
    if (overdueAtMs(d, one) > d.nowMs) continue;
    const boundMs = d.settings.parentShutdownTimeMs + PREDECESSOR_MARGIN_MS;
    d.say({ kind: "predecessor_overdue", epoch: one.epoch.number, boundMs });
    d.do({ kind: "signal", attempt: one.epoch.attempt, signal: "SIGKILL" });
  }
  if (d.state.leaving.length > 0) d.timer("leaving", PREDECESSOR_MARGIN_MS);
}
