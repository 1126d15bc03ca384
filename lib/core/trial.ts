// Owns: the trial of another executable: what it has to prove itself against, for how long, and what comes back where it does not.
// Must not: start anything; comeback.ts does.

import type { Epoch, Plan } from "./epoch.ts";
import type { Draft } from "./draft.ts";
import type { Handoff } from "./state.ts";

/** Counts from LIVE on. A later epoch of the same executable goes on with the trial, one of another ends it. */
export function beginTrial(
  d: Draft,
  { onTrial, drained = false }: Handoff,
  before: Plan,
  { binaryDigest }: Plan,
): void {
  if (onTrial && before.binaryDigest !== binaryDigest) {
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
