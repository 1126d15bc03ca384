// Owns: how wishes for a new epoch gather until their turn: content, debounce, coalescing, gap.
// Must not: start anything; replacing.ts does.

import type { Plan } from "./epoch.ts";
import type { Content, Subject, Trigger } from "./event.ts";
import type { Draft } from "./draft.ts";
import type { Pending, Refused, State } from "./state.ts";
import { type Refusal, refusal } from "./refusal.ts";

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
        case "counting":
        case "checking_admin":
        case "repairing":
          return phase.from.plan;
        case "awaiting_control_plane":
        case "locking":
          return phase.step.plan;
        case "initialising":
        case "ending":
          return phase.step.child.plan;
      }
      break;
    case "starting":
    case "pausing":
      return phase.comeback.plan;
    case "yielding":
    case "superseded":
      return phase.epoch.plan;
    case "stopping":
      return phase.after?.plan;
    case "detecting":
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
export function refusedBefore(state: State, bootstrapDigest: string, binaryDigest: string): Refused | undefined {
  return state.refused.find((r) => r.bootstrapDigest === bootstrapDigest && r.binaryDigest === binaryDigest);
}

/** A watched path holds something else, or can't be used: told, and debounced where it is a change. */
export function contentSeen(d: Draft, subject: Subject, content: Content, jitter: number): void {
  const before = d.state.seen[subject];
  d.set({ seen: { ...d.state.seen, [subject]: content }, seenChangedAtMs: d.nowMs });
  if (content.kind === "unusable") {
    if (before?.kind !== "unusable" || before.problem !== content.problem) {
      d.say({ kind: "content_unusable", subject, problem: content.problem });
    }
    return;
  }
  const { digest } = content;
  // What returns may be something else by now.
  if (before?.kind === "unusable" && !differs(d.state, subject)) d.say({ kind: "content_back", subject, digest });
  else if (before !== undefined && (before.kind === "unusable" || before.digest !== digest)) {
    d.say({ kind: "content_changed", subject, digest });
  }
  if (d.state.debouncing === undefined) {
    // The other one may have been refused together with what this one held until now.
    if (!SUBJECTS.some((one) => differs(d.state, one))) return;
    d.set({ debouncing: { jitter, subject } });
    d.timer("debounce_max", d.settings.debounceMaxMs);
  }
  d.timer("debounce", d.settings.debounceMs);
}

/**
 * An edit that came while a preflight was reading the one before it was no change then and is one now: what became LIVE is compared
 * with what was seen last.
 */
export function catchUp(d: Draft): void {
  const { debouncing, pending, seen } = d.state;
  const plan = targetPlan(d.state);
  const subject = SUBJECTS.find((one) => differs(d.state, one));
  if (debouncing !== undefined || pending !== undefined || subject === undefined || plan === undefined) return;
  const digest = (one: Subject) => {
    const content = seen[one];
    return content?.kind === "usable" ? content.digest : digestOf(plan, one);
  };
  if (refusedBefore(d.state, digest("bootstrap"), digest("binary")) !== undefined) return;
  d.set({ debouncing: { jitter: 0, subject } });
  d.timer("debounce", d.settings.debounceMs);
}

/** The content has rested, or never does: one trigger for each subject that differs now. */
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
      source: debouncing.subject,
      requests: [],
      refusal: refusal("unchanged", unchangedDetail(d.state)),
    });
    return;
  }
  for (const source of changed) {
    accept(d, { source, requests: [], when: "changed", force: false, jitter: debouncing.jitter });
  }
}

function unchangedDetail(state: State): string {
  for (const subject of SUBJECTS) {
    const content = state.seen[subject];
    if (content?.kind === "unusable") return `${subject} can't be used: ${content.problem}`;
  }
  return "content is what the newest epoch runs";
}

/** Whoever waits for an answer gets one, also when no turn will come. */
export function dropPending(d: Draft, why: Refusal): void {
  const { pending } = d.state;
  if (pending === undefined) return;
  const { sources, requests } = take(d, pending);
  d.say({ kind: "trigger_dropped", source: sources[0] ?? "signal", requests, refusal: why });
}

/** Takes a wish in: the first one waits for its turn, later ones join it. */
export function accept(d: Draft, trigger: Trigger): void {
  const { phase, pending } = d.state;
  if ((phase.kind === "stopping" && phase.after === undefined) || phase.kind === "ended") {
    d.say({
      kind: "trigger_dropped",
      source: trigger.source,
      requests: trigger.requests,
      refusal: refusal("stopping", "supervisor is stopping, no new epoch is started"),
    });
    return;
  }
  if (phase.kind === "yielding" || phase.kind === "superseded") {
    // It sees the same files, or is asked in the same way.
    const why = refusal("superseded", `epoch ${phase.epoch.number + 1} of another supervisor takes over`);
    return d.say({ kind: "trigger_dropped", source: trigger.source, requests: trigger.requests, refusal: why });
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
    // epochd's own second try is no reason of its own beside somebody's wish.
    const wishes = pending.sources.filter((source) => source !== "retry");
    const sources = wishes.length > 0 && (trigger.source === "retry" || wishes.includes(trigger.source))
      ? wishes
      : [...wishes, trigger.source];
    const requests = [...pending.requests, ...trigger.requests];
    d.say({ kind: "trigger_coalesced", source: trigger.source, requests: trigger.requests, waiting: requests.length });
    d.set({
      pending: {
        ...pending,
        sources,
        requests,
        when: pending.when === "always" ? "always" : trigger.when,
        force: pending.force || trigger.force,
        ...(pending.drained || trigger.drained ? { drained: true } : {}),
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
    ...(trigger.drained ? { drained: true } : {}),
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
