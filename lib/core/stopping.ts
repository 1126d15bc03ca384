// Owns: the way out: end what is not LIVE, drain, end what serves, in an order that never cuts a protocol.
// Must not: signal an epoch while its successor lives.

import type { Child, Epoch, Exit } from "./epoch.ts";
import type { Connections, Event } from "./event.ts";
import type { Draft } from "./draft.ts";
import type { ExitCode } from "./fact.ts";
import type { Predecessor, Stopping } from "./state.ts";
import { CONNECTIONS_POLL_MS, KILL_AFTER_MS, QUIET_POLLS } from "./bounds.ts";
import { endChild, exited, predecessorEnded, predecessorOverdue } from "./arrive.ts";

export function end(d: Draft, exitCode: ExitCode, reason: string): void {
  d.say({ kind: "ended", exitCode, reason });
  d.to({ kind: "ended", exitCode, reason });
}

/** What is alive when the stop begins. */
interface Alive {
  readonly child?: Child;
  readonly newest?: Epoch;
  readonly predecessor?: Predecessor | undefined;
}

function alive(d: Draft): Alive {
  const { phase } = d.state;
  switch (phase.kind) {
    case "idle":
    case "ended":
    case "stopping":
      return {};
    case "serving":
      return { newest: phase.epoch, predecessor: phase.predecessor };
    case "replacing": {
      const { step } = phase;
      const child = step.kind === "initialising" || step.kind === "ending" ? step.child : undefined;
      return { newest: phase.from, predecessor: phase.predecessor, ...(child === undefined ? {} : { child }) };
    }
    case "starting": {
      const { step, comeback } = phase;
      const child = step.kind === "initialising" || step.kind === "ending" ? step.child : undefined;
      // A parent without a living successor is the newest there is.
      return {
        ...(child === undefined ? {} : { child }),
        ...(comeback.parent === undefined ? {} : { newest: comeback.parent.epoch }),
      };
    }
    case "pausing":
      return phase.comeback.parent === undefined ? {} : { newest: phase.comeback.parent.epoch };
  }
}

export function stopAsked(d: Draft, source: string): void {
  const { phase, pending, attempts } = d.state;
  if (phase.kind === "ended") return;
  if (phase.kind === "stopping") return askedAgain(d, phase, source);
  d.say({ kind: "stop_asked", source, times: 1 });
  if (pending !== undefined) d.set({ pending: undefined });
  d.stopTimers(
    "debounce",
    "debounce_max",
    "jitter",
    "min_gap",
    "watchdog",
    "poll",
    "deadline",
    "retry",
    "backoff",
    "kill",
  );
  d.set({ debouncing: undefined, retry: undefined });
  d.do({ kind: "cancel_preflight", attempt: attempts });
  const { child, newest, predecessor } = alive(d);
  const stopping: Stopping = {
    kind: "stopping",
    exitCode: 0,
    reason: `stopped by ${source}`,
    times: 1,
    child,
    newest,
    predecessor,
    step: { kind: "ending_child" },
  };
  d.to(stopping);
  // The child first: until it is gone the serving epoch has a successor attached.
  if (child !== undefined) endChild(d, child, "child", "SIGTERM", KILL_AFTER_MS);
  else drain(d, stopping);
}

function askedAgain(d: Draft, phase: Stopping, source: string): void {
  const times = phase.times + 1;
  d.say({ kind: "stop_asked", source, times });
  const again = { ...phase, times };
  d.to(again);
  switch (phase.step.kind) {
    case "pre_drain":
    case "draining":
    case "awaiting_predecessor":
      if (phase.newest !== undefined) {
        const connections = phase.step.kind === "draining" ? phase.step.last?.active : undefined;
        d.say({ kind: "drain_ended", epoch: phase.newest.number, connections, why: "asked_twice" });
      }
      return terminate(d, again);
    case "ending_child":
      if (phase.child !== undefined) endChild(d, phase.child, "child", "SIGKILL", KILL_AFTER_MS);
      return;
    case "terminating":
      if (phase.newest !== undefined) endChild(d, phase.newest, "newest", "SIGKILL", KILL_AFTER_MS);
      return;
  }
}

function drain(d: Draft, phase: Stopping): void {
  const { newest } = phase;
  if (newest === undefined) return finish(d, phase);
  const { attempt, number: epoch, plan: { admin } } = newest;
  if (d.settings.preDrainDelayMs > 0 && phase.step.kind !== "pre_drain") {
    d.to({ ...phase, step: { kind: "pre_drain" } });
    d.do({ kind: "drain", attempt, admin, form: "fail_health" });
    d.timer("pre_drain", d.settings.preDrainDelayMs);
    return d.say({ kind: "drain_began", epoch, boundMs: d.settings.preDrainDelayMs, form: "fail_health" });
  }
  d.to({ ...phase, step: { kind: "draining", last: undefined, quietPolls: 0 } });
  d.do({ kind: "drain", attempt, admin, form: "listeners" });
  d.timer("drain", d.settings.drainTimeMs);
  d.timer("connections", CONNECTIONS_POLL_MS);
  d.say({ kind: "drain_began", epoch, boundMs: d.settings.drainTimeMs, form: "listeners" });
}

function terminate(d: Draft, phase: Stopping): void {
  d.stopTimers("drain", "connections", "pre_drain");
  if (phase.newest === undefined) return finish(d, phase);
  d.to({ ...phase, step: { kind: "terminating" } });
  endChild(d, phase.newest, "newest", "SIGTERM", KILL_AFTER_MS);
}

function finish(d: Draft, phase: Stopping): void {
  d.stopTimers("drain", "connections", "pre_drain", "kill", "predecessor");
  end(d, phase.exitCode, phase.reason);
}

function drained(d: Draft, phase: Stopping, why: "quiet" | "time_over", last: Connections | undefined): void {
  if (phase.newest === undefined) return finish(d, phase);
  d.stopTimers("drain", "connections");
  d.say({ kind: "drain_ended", epoch: phase.newest.number, connections: last?.active, why });
  // The newest is what ends the predecessor by protocol, so it must outlive it.
  if (phase.predecessor !== undefined) return d.to({ ...phase, step: { kind: "awaiting_predecessor" } });
  terminate(d, phase);
}

export function stopping(d: Draft, phase: Stopping, event: Event): void {
  switch (event.kind) {
    case "child_exited":
      return childExited(d, phase, event.attempt, event.exit);
    case "connections":
      if (event.attempt === phase.newest?.attempt) counted(d, phase, event.connections);
      return;
    case "drain_answered":
      if (event.attempt === phase.newest?.attempt && !event.ok) {
        d.say({ kind: "drain_unanswered", epoch: phase.newest.number, detail: event.detail });
      }
      return;
    case "timer":
      return timer(d, phase, event.name);
    default:
      return;
  }
}

function timer(d: Draft, phase: Stopping, name: string): void {
  const { step } = phase;
  if (name === "predecessor") return predecessorOverdue(d, phase.predecessor);
  if (name === "pre_drain" && step.kind === "pre_drain") return drain(d, phase);
  if (name === "drain" && step.kind === "draining") return drained(d, phase, "time_over", step.last);
  if (name === "connections" && step.kind === "draining" && phase.newest !== undefined) {
    return d.do({ kind: "ask_connections", attempt: phase.newest.attempt, admin: phase.newest.plan.admin });
  }
  if (name !== "kill") return;
  if (step.kind === "ending_child" && phase.child !== undefined) {
    endChild(d, phase.child, "child", "SIGKILL", KILL_AFTER_MS);
  } else if (step.kind === "terminating" && phase.newest !== undefined) {
    endChild(d, phase.newest, "newest", "SIGKILL", KILL_AFTER_MS);
  }
}

/** Quiet is no open connection and no new one for several counts: a client that connects anew each time shows in the total. */
function counted(d: Draft, phase: Stopping, connections: Connections | undefined): void {
  const { step } = phase;
  if (step.kind !== "draining") return;
  d.timer("connections", CONNECTIONS_POLL_MS);
  // No answer is no proof of quiet: the drain time bounds it.
  if (connections === undefined) return d.to({ ...phase, step: { ...step, quietPolls: 0 } });
  const quiet = connections.active === 0 && (step.last === undefined || step.last.total === connections.total);
  const quietPolls = quiet ? step.quietPolls + 1 : 0;
  if (quietPolls >= QUIET_POLLS) return drained(d, phase, "quiet", connections);
  d.to({ ...phase, step: { kind: "draining", last: connections, quietPolls } });
}

function childExited(d: Draft, phase: Stopping, attempt: number, exit: Exit): void {
  if (attempt === phase.child?.attempt) {
    d.stopTimers("kill");
    d.say(exited(d, phase.child, exit, "child"));
    // Another supervisor's epoch may come to this base id: it must not find the flag that this child left.
    d.do({ kind: "repair_segment", attempt });
    const rest = { ...phase, child: undefined };
    d.to(rest);
    return phase.times > 1 ? terminate(d, rest) : drain(d, rest);
  }
  if (attempt === phase.predecessor?.epoch.attempt) {
    predecessorEnded(d, phase.predecessor, exit, phase.newest?.number ?? phase.predecessor.epoch.number);
    const rest = { ...phase, predecessor: undefined };
    d.to(rest);
    return phase.step.kind === "awaiting_predecessor" ? terminate(d, rest) : undefined;
  }
  if (attempt !== phase.newest?.attempt) return;
  d.stopTimers("kill", "drain", "connections", "pre_drain");
  d.say(exited(d, phase.newest, exit, "newest"));
  const { predecessor } = phase;
  if (predecessor === undefined) return finish(d, { ...phase, newest: undefined });
  // Its successor is gone, so nothing will end it by protocol any more, and ending it aborts nobody.
  d.stopTimers("predecessor");
  terminate(d, { ...phase, newest: predecessor.epoch, predecessor: undefined });
}
