// Owns: the trial of another executable: what it has to prove itself against, for how long, and what comes back where it does not.
// Must not: start anything; comeback.ts does.

import type { Epoch, Plan } from "./epoch.ts";
import type { Draft } from "./draft.ts";
import type { Handoff, Pending } from "./state.ts";

/** Whether what waits would bring an executable that has not proved itself. */
export function isTrial(d: Draft, { sources }: Pending): boolean {
  return d.settings.binaryTrialMs > 0 && (sources.includes("push") || sources.includes("binary"));
}

/** Counts from LIVE on. A later epoch of the same executable goes on with the trial, one of another ends it. */
export function beginTrial(
  d: Draft,
  { onTrial, drained = false }: Handoff,
  before: Plan,
  { binaryDigest }: Plan,
): void {
  // A push moves the link before it asks: a handoff that began in between has read it, and is that push's whoever asked for it.
  const { pending } = d.state;
  const isNew = onTrial || (pending !== undefined && isTrial(d, pending));
  if (isNew && before.binaryDigest !== binaryDigest) {
    const untilMs = d.nowMs + d.settings.binaryTrialMs;
    return d.set({ trial: { binaryDigest, before, untilMs, drained } });
  }
  if (d.state.trial?.binaryDigest !== binaryDigest) d.set({ trial: undefined });
}

/** Undefined: not on trial, or its time is over. `afresh`: what comes back can't be handed over to, as it could not hand over. */
export function trialOf(d: Draft, { plan }: Epoch): { readonly back: Plan; readonly afresh: boolean } | undefined {
  const { trial } = d.state;
  if (trial === undefined || trial.binaryDigest !== plan.binaryDigest || d.nowMs > trial.untilMs) return undefined;
  return { back: trial.before, afresh: trial.drained };
}
