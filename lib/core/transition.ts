// Owns: the one step: (state, event, settings) -> next state, effects, facts. Pure: no clock, no promise, no randomness.
// Must not: know a phase's rules; each phase has its file.

import type { Event, TimerName } from "./event.ts";
import type { Settings } from "./settings.ts";
import type { State } from "./state.ts";
import { Draft, type Step } from "./draft.ts";
import { isKnown } from "./known.ts";
import { leaving } from "./leaving.ts";
import { keepCompany, publish } from "./company.ts";
import { beginDetecting, detecting } from "./detecting.ts";
import { superseded, yielding } from "./yielding.ts";
import { readiness, refreshMarker } from "./ready.ts";
import { beginFirst, pausing, starting } from "./starting.ts";
import { replacing } from "./replacing.ts";
import { reopenLogs } from "./reopen.ts";
import { serving } from "./serving.ts";
import { retune, unwatched } from "./retune.ts";
import { settle, waited } from "./settle.ts";
import { keepStandIn, standInHeard } from "./stand_in.ts";
import { lastLeft, stopAsked, stopping } from "./stopping.ts";
import { accept, contentSeen, debounceOver } from "./triggers.ts";

/** One step. An ended service takes no more events. */
export function transition(state: State, event: Event, settings: Settings): Step {
  const d = new Draft(state, event.atMs, settings);
  if (state.phase.kind === "ended") return d.step();
  if (isKnown(state, event)) dispatch(d, event);
  else {
    d.set({ lateAnswers: state.lateAnswers + 1 });
    d.say({ kind: "late_answer", of: event.kind, attempt: "attempt" in event ? event.attempt : 0 });
  }
  keepStandIn(d);
  settle(d);
  reopenLogs(d);
  readiness(d, state);
  keepCompany(d, state);
  return d.step();
}

function dispatch(d: Draft, event: Event): void {
  switch (event.kind) {
    case "start":
      if (d.state.phase.kind !== "idle") return;
      return d.settings.crossPod ? beginDetecting(d, 0) : beginFirst(d);
    case "trigger":
      return accept(d, event.trigger);
    case "content":
      return contentSeen(d, event.subject, event.content, event.jitter);
    case "watch":
      d.set({ watch: { ...d.state.watch, [event.subject]: event.mode } });
      return d.say({ kind: "watch_changed", subject: event.subject, mode: event.mode, why: event.why });
    case "unwatched":
      return unwatched(d, event.subject);
    case "settings":
      return retune(d);
    case "stop":
      return stopAsked(d, event.source);
    case "reopen_logs":
      return d.set({ reopenWanted: true });
    case "handoff_lock":
      if (event.taken) d.set({ handoffLock: true });
      return byPhase(d, event);
    case "marker":
      return markerAnswered(d, event.problem);
    case "binary_not_kept":
      return d.say({ kind: "binary_not_kept", problem: event.problem });
    case "published":
      return publishAnswered(d, event.problem);
    case "timer":
      return timer(d, event, event.name);
    default:
      if (standInHeard(d, event)) return byPhase(d, event);
      if (leaving(d, event)) return lastLeft(d);
      return byPhase(d, event);
  }
}

function timer(d: Draft, event: Event, name: TimerName): void {
  switch (name) {
    case "debounce":
    case "debounce_max":
      return debounceOver(d);
    case "jitter":
    case "min_gap":
      return waited(d);
    case "marker":
      return refreshMarker(d);
    case "heartbeat":
      return publish(d);
    case "retry":
      return retry(d);
    case "leaving":
      leaving(d, event);
      return;
    case "stand_in":
      standInHeard(d, event);
      return;
    default:
      return byPhase(d, event);
  }
}

function byPhase(d: Draft, event: Event): void {
  const { phase } = d.state;
  switch (phase.kind) {
    case "idle":
    case "ended":
      return;
    case "starting":
      return starting(d, phase, event);
    case "pausing":
      return pausing(d, phase, event);
    case "serving":
      return serving(d, phase, event);
    case "replacing":
      return replacing(d, phase, event);
    case "stopping":
      return stopping(d, phase, event);
    case "detecting":
      return detecting(d, phase, event);
    case "yielding":
      return yielding(d, phase, event);
    case "superseded":
      return superseded(d, phase, event);
  }
}

function retry(d: Draft): void {
  const { retry } = d.state;
  if (retry === undefined) return;
  accept(d, { source: "retry", requests: [], when: retry.when, force: false, jitter: 0 });
}

function publishAnswered(d: Draft, problem: string | undefined): void {
  if (problem === d.state.publishProblem) return;
  d.set({ publishProblem: problem });
  if (problem === undefined) d.say({ kind: "publish_back" });
  else d.say({ kind: "publish_failed", problem });
}

function markerAnswered(d: Draft, problem: string | undefined): void {
  if (problem === d.state.markerProblem) return;
  d.set({ markerProblem: problem });
  if (problem === undefined) d.say({ kind: "marker_back" });
  else d.say({ kind: "marker_failed", problem });
}
