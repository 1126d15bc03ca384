// Owns: level and text of every fact of the core, one row a kind. Must not: write or filter.

import type { Fact } from "../core/fact.ts";
import { foreignCatalogue } from "./foreign_catalogue.ts";
import type { Rows } from "./row.ts";
import { standInRows } from "./stand_in_rows.ts";
import { envoyVersion, plural, shortDigest, showExit, showMs } from "./words.ts";

const subjectText = { bootstrap: "bootstrap", binary: "Envoy's executable" } as const;

const deferredText = {
  handoff: "a handoff is under way",
  predecessor_drains: "the predecessor drains",
  hung: "the serving epoch does not answer",
  min_gap: "min_gap is not over",
  jitter: "its random delay runs",
} as const;

const deathText = {
  exit: "epochd ends",
  restart: "a fresh epoch follows",
  revival: "its predecessor still drains, the same epoch starts again",
  budget_used_up: "the crash budget is used up, epochd ends",
  rollback: "the last good bootstrap and executable follow",
} as const;

export const catalogue: Rows<Fact> = {
  trigger_accepted: {
    level: "info",
    fields: { source: "text", requests: "list" },
    message: (fact) => `accepted a trigger by ${fact.source}`,
  },
  trigger_coalesced: {
    level: "info",
    fields: { source: "text", requests: "list", waiting: "number" },
    message: (fact) => `joined a trigger by ${fact.source} to the ${fact.waiting} that wait`,
  },
  trigger_deferred: {
    level: "info",
    fields: { reason: "text", waitMs: "ms" },
    message: (fact) =>
      `trigger waits: ${deferredText[fact.reason]}${fact.waitMs === undefined ? "" : ` (${showMs(fact.waitMs)})`}`,
  },
  trigger_dropped: {
    level: "warn",
    fields: { source: "text", requests: "list", refusal: "refusal" },
    message: (fact) => `dropped a trigger by ${fact.source}: ${fact.refusal.detail}`,
  },
  content_changed: {
    level: "info",
    fields: { subject: "text", digest: "digest" },
    message: (fact) => `${subjectText[fact.subject]} changed to ${shortDigest(fact.digest)}`,
  },
  content_unusable: {
    level: "warn",
    fields: { subject: "text", problem: "text" },
    message: (fact) => `${subjectText[fact.subject]} can't be used: ${fact.problem}`,
  },
  content_back: {
    level: "info",
    fields: { subject: "text", digest: "digest" },
    message: (fact) => `${subjectText[fact.subject]} is what already runs (${shortDigest(fact.digest)})`,
  },
  watch_changed: {
    level: (fact) => fact.mode === "events" ? "info" : "warn",
    fields: { subject: "text", mode: "text", why: "text" },
    message: (fact) => `watching ${subjectText[fact.subject]} by ${fact.mode}: ${fact.why}`,
  },
  start_began: {
    level: "info",
    fields: { epoch: "number", cause: "text" },
    message: (fact) => `starting epoch ${fact.epoch}${fact.cause === "first" ? "" : ` (${fact.cause})`}`,
  },
  handoff_began: {
    level: "info",
    fields: { handoff: "number", from: "number", to: "number", source: "text", requests: "list" },
    message: (fact) => `handoff ${fact.handoff} began: epoch ${fact.from} to ${fact.to}, by ${fact.source}`,
  },
  preflight_passed: {
    level: "info",
    fields: { cached: "boolean", tookMs: "ms", bootstrapDigest: "digest", binaryDigest: "digest" },
    message: (fact) =>
      `preflight passed in ${showMs(fact.tookMs)}${fact.cached ? " (cached)" : ""}: bootstrap ${
        shortDigest(fact.bootstrapDigest)
      }, executable ${shortDigest(fact.binaryDigest)}`,
  },
  preflight_refused: {
    level: "warn",
    fields: { refusal: "refusal", tookMs: "ms" },
    message: (fact) => `preflight refused: ${fact.refusal.detail}`,
  },
  control_plane_awaited: {
    level: "warn",
    fields: { epoch: "number", boundMs: "ms" },
    message: (fact) =>
      `handoff waits up to ${showMs(fact.boundMs)} for the control plane, which epoch ${fact.epoch} has lost`,
  },
  epoch_spawned: {
    level: "info",
    fields: { epoch: "number", attempt: "number", pid: "number" },
    message: (fact) => `epoch ${fact.epoch} has pid ${fact.pid}`,
  },
  epoch_progress: {
    level: "info",
    fields: { epoch: "number", state: "text", tookMs: "ms" },
    message: (fact) => `epoch ${fact.epoch} is ${fact.state} after ${showMs(fact.tookMs)}`,
  },
  epoch_live: {
    level: "info",
    fields: { epoch: "number", pid: "number", version: "text", tookMs: "ms" },
    message: (fact) =>
      `epoch ${fact.epoch} is LIVE after ${showMs(fact.tookMs)} (pid ${fact.pid}, Envoy ${envoyVersion(fact.version)})`,
  },
  epoch_exited: {
    // Envoy that was asked to end exits with 0; one that was not is told by newest_died as well.
    level: ({ role, exit }) => role === "child" ? "warn" : role === "newest" && exit.code !== 0 ? "error" : "info",
    fields: { epoch: "number", attempt: "number", pid: "number", exit: "exit", role: "text", livedMs: "ms" },
    message: (fact) =>
      `epoch ${fact.epoch} (${fact.role}) has ended after ${showMs(fact.livedMs)}: ${showExit(fact.exit)}`,
  },
  epoch_ending: {
    level: ({ role, signal }) => role === "newest" && signal === "SIGTERM" ? "info" : "warn",
    fields: { epoch: "number", pid: "number", signal: "text", role: "text" },
    message: (fact) => `sent ${fact.signal} to epoch ${fact.epoch} (${fact.role})`,
  },
  drained_restart: {
    level: "warn",
    fields: { handoff: "number", epoch: "number", connections: "number", boundMs: "ms", requests: "list" },
    message: (fact) => {
      const held = fact.connections === undefined ? "its connections" : plural(fact.connections, "connection");
      const when = `after a drain of up to ${showMs(fact.boundMs)}`;
      return `handoff ${fact.handoff} is a drained restart: epoch ${fact.epoch} ends ${when} with what is left of ${held}`;
    },
  },
  handoff_live: {
    level: "info",
    fields: {
      handoff: "number",
      from: "number",
      to: "number",
      requests: "list",
      tookMs: "ms",
      drainedFirst: "boolean",
    },
    message: (fact) => {
      const what = fact.drainedFirst ? `epoch ${fact.from} has ended before it` : `epoch ${fact.from} drains`;
      return `handoff ${fact.handoff}: epoch ${fact.to} serves after ${showMs(fact.tookMs)}, ${what}`;
    },
  },
  handoff_done: {
    level: "info",
    fields: { handoff: "number", from: "number", to: "number", requests: "list", drainedMs: "ms" },
    message: (fact) =>
      `handoff ${fact.handoff} is done: epoch ${fact.from} has ended after a drain of ${showMs(fact.drainedMs)}`,
  },
  handoff_failed: {
    level: "error",
    fields: { handoff: "number", from: "number", to: "number", requests: "list", refusal: "refusal", tookMs: "ms" },
    message: (fact) => `handoff ${fact.handoff} to epoch ${fact.to} failed: ${fact.refusal.detail}`,
  },
  successor_has_fewer: {
    level: "warn",
    fields: { epoch: "number", listeners: "pair", clusters: "pair" },
    message: (fact) =>
      `epoch ${fact.epoch} has fewer than its predecessor: listeners ${fact.listeners.join(" to ")}, clusters ${
        fact.clusters.join(" to ")
      }`,
  },
  segment_repaired: {
    level: (fact) => fact.cleared ? "warn" : "debug",
    fields: { cleared: "boolean" },
    message: (fact) => fact.cleared ? "cleared INITIALIZING in the shared segment" : "the shared segment is clean",
  },
  segment_repair_failed: {
    level: "error",
    fields: { detail: "text" },
    message: (fact) => `the shared segment could not be repaired: ${fact.detail}`,
  },
  admin_lost: {
    level: "warn",
    fields: { epoch: "number", policy: "text" },
    message: (fact) => `epoch ${fact.epoch} serves on without its admin, on_lost_admin is ${fact.policy}`,
  },
  admin_back: {
    level: "info",
    fields: { epoch: "number", silentMs: "ms" },
    message: (fact) => `admin of epoch ${fact.epoch} answers again after ${showMs(fact.silentMs)}`,
  },
  epoch_hung: {
    level: "error",
    fields: { epoch: "number", silentMs: "ms", policy: "text", detail: "text" },
    message: (fact) =>
      `epoch ${fact.epoch} has been silent for ${showMs(fact.silentMs)}, on_hang is ${fact.policy}: ${fact.detail}`,
  },
  predecessor_overdue: {
    level: "warn",
    fields: { epoch: "number", boundMs: "ms" },
    message: (fact) => `epoch ${fact.epoch} should have ended after ${showMs(fact.boundMs)} and has not`,
  },
  ...standInRows,
  third_generation: {
    level: "warn",
    fields: { ends: "number", successor: "number" },
    message: (fact) => `epoch ${fact.successor} ends epoch ${fact.ends} at once, with the connections it still holds`,
  },
  newest_died: {
    level: "error",
    fields: { epoch: "number", exit: "exit", answer: "text" },
    message: (fact) => `newest epoch ${fact.epoch} died (${showExit(fact.exit)}): ${deathText[fact.answer]}`,
  },
  service_gap: {
    level: "error",
    fields: { epoch: "number", refusedMs: "ms" },
    message: (fact) => `connections were refused for ${showMs(fact.refusedMs)} until epoch ${fact.epoch} served`,
  },
  restart_paused: {
    level: "warn",
    fields: { waitMs: "ms", used: "number", budget: "number" },
    message: (fact) => `next start in ${showMs(fact.waitMs)}, restart ${fact.used} of ${fact.budget}`,
  },
  retry_planned: {
    level: "info",
    fields: { waitMs: "ms", tries: "number", limit: "number" },
    message: (fact) => `next try in ${showMs(fact.waitMs)}, ${fact.tries} of ${fact.limit}`,
  },
  stop_asked: {
    level: "info",
    fields: { source: "text", times: "number" },
    message: (fact) => `asked to stop by ${fact.source}${fact.times > 1 ? ` (${fact.times} times)` : ""}`,
  },
  drain_began: {
    level: "info",
    fields: { epoch: "number", boundMs: "ms", form: "text" },
    message: (fact) => `draining epoch ${fact.epoch} for up to ${showMs(fact.boundMs)} (${fact.form})`,
  },
  drain_unanswered: {
    level: "warn",
    fields: { epoch: "number", detail: "text" },
    message: (fact) => `epoch ${fact.epoch} did not take the request to drain: ${fact.detail}`,
  },
  drain_ended: {
    level: "info",
    fields: { epoch: "number", connections: "number", why: "text" },
    message: (fact) =>
      `drain of epoch ${fact.epoch} ended (${fact.why}) with ${
        fact.connections === undefined ? "an unknown number of connections" : plural(fact.connections, "connection")
      }`,
  },
  ready_changed: {
    level: (fact) => fact.ready ? "info" : "warn",
    fields: { ready: "boolean", epoch: "number" },
    message: (fact) =>
      `${fact.ready ? "ready" : "not ready"}${fact.epoch === undefined ? "" : `, epoch ${fact.epoch} serves`}`,
  },
  marker_failed: {
    level: "error",
    fields: { problem: "text" },
    message: (fact) => `the ready marker could not be written: ${fact.problem}`,
  },
  binary_not_kept: {
    level: "warn",
    fields: { problem: "text" },
    message: (fact) => `a rollback could find another executable in its place: ${fact.problem}`,
  },
  marker_back: {
    level: "info",
    fields: {},
    message: () => "the ready marker is written again",
  },
  handoff_lock_awaited: {
    level: "warn",
    fields: { waitedMs: "ms" },
    message: (fact) => `another supervisor holds handoff.lock, waited for ${showMs(fact.waitedMs)}`,
  },
  predecessor_sought: {
    level: "warn",
    fields: { slots: "list", boundMs: "ms", why: "text" },
    message: (fact) =>
      `an Envoy lives on this base id (slots ${fact.slots.join(", ")}), looking for up to ${
        showMs(fact.boundMs)
      } whose it is (${fact.why})`,
  },
  predecessor_found: {
    level: "info",
    fields: { epoch: "number", by: "text", pod: "text" },
    message: (fact) =>
      `joining epoch ${fact.epoch}${fact.pod === undefined ? "" : ` of ${fact.pod}`}, known by its ${fact.by}`,
  },
  settings_adopted: {
    level: "info",
    fields: { concurrency: "number", parentShutdownTimeMs: "ms", pod: "text" },
    message: (fact) =>
      `took over from ${fact.pod}: concurrency ${fact.concurrency}, parent shutdown time ${
        showMs(fact.parentShutdownTimeMs)
      }`,
  },
  ...foreignCatalogue,
  successor_attached: {
    level: "info",
    fields: { epoch: "number", to: "number" },
    message: (fact) => `epoch ${fact.to} of another supervisor takes over from epoch ${fact.epoch}`,
  },
  successor_awaited: {
    level: "info",
    fields: { epoch: "number", boundMs: "ms" },
    message: (fact) =>
      `a successor of epoch ${fact.epoch} is being started, waiting for it for up to ${showMs(fact.boundMs)}`,
  },
  successor_vanished: {
    level: "error",
    fields: { epoch: "number", wasLive: "boolean" },
    message: (fact) =>
      `epoch ${fact.epoch} of another supervisor has vanished${fact.wasLive ? " after it was LIVE" : ""}`,
  },
  superseded: {
    level: "info",
    fields: { epoch: "number", successor: "number", policy: "text" },
    message: (fact) =>
      `epoch ${fact.epoch} was succeeded by epoch ${fact.successor} of another supervisor, ${
        fact.policy === "wait" ? "waiting to be stopped" : "exiting"
      }`,
  },
  publish_failed: {
    level: "error",
    fields: { problem: "text" },
    message: (fact) => `could not tell other supervisors of this epoch: ${fact.problem}`,
  },
  publish_back: {
    level: "info",
    fields: {},
    message: () => "other supervisors are told of this epoch again",
  },
  logs_reopened: {
    level: "info",
    fields: { epochs: "list" },
    message: (fact) => `asked epoch ${fact.epochs.join(", ")} to reopen its logs`,
  },
  late_answer: {
    level: "debug",
    fields: { of: "text", attempt: "number" },
    message: (fact) => `ignored a late answer (${fact.of}) of attempt ${fact.attempt}`,
  },
  ended: {
    level: (fact) => fact.exitCode === 0 ? "info" : "error",
    fields: { exitCode: "number", reason: "text" },
    message: (fact) => `service ended with exit code ${fact.exitCode}: ${fact.reason}`,
  },
};
