// Owns: how wishes for a new epoch gather until their turn: content, debounce, coalescing, gap.
// Must not: start anything; replacing.ts does.

import type { Plan } from "./epoch.ts";
import type { Content, Subject, Trigger } from "./event.ts";
import type { Draft } from "./draft.ts";
import type { Pending, State } from "./state.ts";
import { refusal } from "./refusal.ts";

const SUBJECTS: readonly Subject[] = ["bootstrap", "binary"];

/** The plan that is running or, past its preflight, about to run: what a change is a change from. */
export function targetPlan(state: State): Plan | undefined {
  const phase = state.phase;
  switch (phase.kind) {
    case "serving":
      return phase.epoch.plan;
    case "replacing":
      switch (phase.step.kind) {
        case "preflight":
        case "checking_admin":
        case "repairing":
          return phase.from.plan;
        case "awaiting_control_plane":
          return phase.step.plan;
        case "initialising":
        case "ending":
          return phase.step.child.plan;
      }
      break;
    case "starting":
    case "pausing":
      return phase.comeback.plan;
    case "stopping":
    case "idle":
    case "ended":
      return undefined;
  }
}

function digestOf(plan: Plan, subject: Subject): string {
  return subject === "bootstrap" ? plan.bootstrapDigest : plan.binaryDigest;
}

function differs(state: State, subject: Subject): boolean {
  const content = state.seen[subject];
  const plan = targetPlan(state);
  return content?.kind === "usable" && plan !== undefined && content.digest !== digestOf(plan, subject);
}

/** True when every watched path holds just what the newest plan runs. */
export function unchanged(state: State): boolean {
  return SUBJECTS.some((subject) => state.seen[subject] !== undefined) &&
    SUBJECTS.every((subject) => state.seen[subject]?.kind !== "unusable" && !differs(state, subject));
}

/** The watched content that was refused already, and why. */
export function refusedBefore(state: State, bootstrapDigest: string, binaryDigest: string) {
  return state.refused.find((r) => r.bootstrapDigest === bootstrapDigest && r.binaryDigest === binaryDigest);
}

export function contentSeen(d: Draft, subject: Subject, content: Content, jitter: number): void {
  const before = d.state.seen[subject];
  d.set({ seen: { ...d.state.seen, [subject]: content } });
  if (content.kind === "unusable") {
    if (before?.kind !== "unusable" || before.problem !== content.problem) {
      d.say({ kind: "content_unusable", subject, problem: content.problem });
    }
    return;
  }
  if (before?.kind === "unusable") d.say({ kind: "content_back", subject, digest: content.digest });
  else if (before !== undefined && before.digest !== content.digest) {
    d.say({ kind: "content_changed", subject, digest: content.digest });
  }
  if (d.state.debouncing === undefined) {
    if (!differs(d.state, subject)) return;
    d.set({ debouncing: { jitter } });
    d.timer("debounce_max", d.settings.debounceMaxMs);
  }
  d.timer("debounce", d.settings.debounceMs);
}

export function debounceOver(d: Draft): void {
  const debouncing = d.state.debouncing;
  if (debouncing === undefined) return;
  d.set({ debouncing: undefined });
  d.stopTimers("debounce", "debounce_max");
  const changed = SUBJECTS.filter((subject) => differs(d.state, subject));
  if (changed.length === 0) {
    // Edited and put back, or caught up by a handoff meanwhile.
    d.say({
      kind: "trigger_dropped",
      source: "bootstrap",
      requests: [],
      refusal: refusal("unchanged", "content is what the newest epoch runs"),
    });
    return;
  }
  for (const source of changed) {
    accept(d, { source, requests: [], when: "changed", force: false, jitter: debouncing.jitter });
  }
}

export function accept(d: Draft, trigger: Trigger): void {
  const { phase, pending } = d.state;
  if (phase.kind === "stopping" || phase.kind === "ended") {
    d.say({
      kind: "trigger_dropped",
      source: trigger.source,
      requests: trigger.requests,
      refusal: refusal("stopping", "supervisor is stopping, no new epoch is started"),
    });
    return;
  }
  // Whoever asks anew takes over from epochd's own plan to try again.
  if (trigger.source !== "retry") {
    d.stopTimers("retry");
    d.set({ retry: undefined });
  }
  const byContent = trigger.source === "bootstrap" || trigger.source === "binary";
  const jitterMs = byContent ? Math.round(trigger.jitter * d.settings.jitterMs) : 0;
  if (pending === undefined) {
    d.say({ kind: "trigger_accepted", source: trigger.source, requests: trigger.requests });
    d.set({ pending: fresh(d, trigger, jitterMs) });
  } else {
    const sources = pending.sources.includes(trigger.source) ? pending.sources : [...pending.sources, trigger.source];
    const requests = [...pending.requests, ...trigger.requests];
    d.say({ kind: "trigger_coalesced", source: trigger.source, requests: trigger.requests, waiting: requests.length });
    d.set({
      pending: {
        ...pending,
        sources,
        requests,
        when: pending.when === "always" ? "always" : trigger.when,
        force: pending.force || trigger.force,
        // A person does not wait for a fleet's jitter.
        notBeforeMs: byContent ? pending.notBeforeMs : Math.min(pending.notBeforeMs, d.nowMs),
      },
    });
  }
}

function fresh(d: Draft, trigger: Trigger, jitterMs: number): Pending {
  return {
    sources: [trigger.source],
    requests: trigger.requests,
    when: trigger.when,
    force: trigger.force,
    sinceMs: d.nowMs,
    notBeforeMs: d.nowMs + jitterMs,
    told: undefined,
  };
}

/** Takes the waiting triggers out; their turn has come. */
export function take(d: Draft, pending: Pending): Pending {
  d.set({ pending: undefined });
  d.stopTimers("jitter", "min_gap");
  return pending;
}
