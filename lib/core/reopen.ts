// Owns: SIGUSR1, forwarded so that Envoy reopens its access logs. Must not: reach an epoch whose successor may be attached.

import type { Draft } from "./draft.ts";

/** Kept until the newest epoch is nobody's parent; a child that opened its logs before the rotation gets it as well. */
export function reopenLogs(d: Draft): void {
  const { phase, reopenWanted } = d.state;
  if (!reopenWanted || phase.kind !== "serving") return;
  d.set({ reopenWanted: false });
  d.do({ kind: "signal", attempt: phase.epoch.attempt, signal: "SIGUSR1" });
  d.say({ kind: "logs_reopened", epochs: [phase.epoch.number] });
}
