// Owns: level and text of every shell fact, one row a kind. Must not: write or filter.

import type { Rows } from "./row.ts";
import type { ShellFact } from "./shell_fact.ts";

export const shellCatalogue: Rows<ShellFact> = {
  supervisor_started: {
    level: "info",
    fields: { version: "text", runtime: "text", pid: "number", services: "list" },
    message: (fact) =>
      `epochd ${fact.version} (${fact.runtime}) started with pid ${fact.pid}, service ${fact.services.join(", ")}`,
  },
  config_loaded: {
    level: "info",
    fields: { path: "path", services: "list" },
    message: (fact) => `configuration read from ${fact.path}, service ${fact.services.join(", ")}`,
  },
  config_applied: {
    level: "info",
    fields: {
      source: "text",
      who: "text",
      verdict: "text",
      fields: "list",
      added: "list",
      removed: "list",
      digest: "digest",
    },
    message: (fact) => {
      const what = [
        ...fact.fields,
        ...fact.added.map((name) => `service ${name} added`),
        ...fact.removed.map((name) => `service ${name} removed`),
      ];
      const text = what.length === 0 ? "nothing differs" : what.join(", ");
      return `configuration taken (${fact.verdict}, by ${fact.source} of ${fact.who}): ${text}`;
    },
  },
  config_refused: {
    level: "warn",
    fields: { source: "text", who: "text", refusal: "text", detail: "text" },
    message: (fact) => `configuration refused (${fact.refusal}, by ${fact.source} of ${fact.who}): ${fact.detail}`,
  },
  config_history_failed: {
    level: "warn",
    fields: { problem: "text" },
    message: (fact) => `the history of configurations could not be kept: ${fact.problem}`,
  },
  config_watch_changed: {
    level: (fact) => fact.mode === "events" ? "debug" : "warn",
    fields: { mode: "text", why: "text" },
    message: (fact) => `watching the configuration by ${fact.mode}: ${fact.why}`,
  },
  service_not_added: {
    level: "error",
    fields: { name: "text", problem: "text" },
    message: (fact) => `service ${fact.name} was not started: ${fact.problem}`,
  },
  api_audit: {
    level: (fact) => fact.status < 400 ? "info" : "warn",
    fields: { who: "text", action: "text", status: "number", outcome: "text" },
    message: (fact) => `API: ${fact.who} asked for ${fact.action}: ${fact.status} ${fact.outcome}`,
  },
  api_waits: {
    level: "warn",
    fields: { address: "text", problem: "text" },
    message: (fact) => `API can't listen on ${fact.address} yet and tries on: ${fact.problem}`,
  },
  api_credentials_read: {
    level: "info",
    fields: { what: "text", count: "number" },
    message: (fact) => `API read ${fact.what} (${fact.count})`,
  },
  api_credentials_failed: {
    level: "error",
    fields: { what: "text", problem: "text" },
    message: (fact) => `API can't take ${fact.what}: ${fact.problem}`,
  },
  start_refused: {
    level: "error",
    fields: { problem: "text" },
    message: (fact) => `can't start: ${fact.problem}`,
  },
  base_id_chosen: {
    level: "info",
    fields: { baseId: "number" },
    message: (fact) => `base id ${fact.baseId} is free and taken for this run`,
  },
  concurrency_chosen: {
    level: "info",
    fields: { concurrency: "number", why: "text" },
    message: (fact) => `every epoch gets --concurrency ${fact.concurrency}, ${fact.why}`,
  },
  binary_switched: {
    level: "info",
    fields: { service: "text", to: "path", version: "text", source: "text" },
    message: (fact) => `${fact.service}: current is now ${fact.to} (${fact.version}) by ${fact.source}, on trial`,
  },
  binary_proven: {
    level: "info",
    fields: { service: "text", digest: "path" },
    message: (fact) => `${fact.service}: ${fact.digest} has proved itself and stays current`,
  },
  binary_undone: {
    level: "error",
    fields: { service: "text", from: "path", to: "path", why: "text" },
    message: (fact) => `${fact.service}: current goes back from ${fact.from} to ${fact.to}: ${fact.why}`,
  },
  slots_mended: {
    level: "warn",
    fields: { service: "text", what: "text" },
    message: (fact) => `${fact.service}: slots mended: ${fact.what}`,
  },
  slots_failed: {
    level: "error",
    fields: { service: "text", problem: "text" },
    message: (fact) => `${fact.service}: slots: ${fact.problem}`,
  },
  stale_marker_removed: {
    level: "info",
    fields: { path: "path" },
    message: (fact) => `removed the ready marker ${fact.path}, which an earlier run left`,
  },
  signal_received: {
    level: "info",
    fields: { signal: "text" },
    message: (fact) => `received ${fact.signal}`,
  },
  api_listening: {
    level: "info",
    fields: { path: "path" },
    message: (fact) => `API listens on ${fact.path}`,
  },
  api_link_held: {
    level: "warn",
    fields: { path: "path", holder: "path", pid: "number", socket: "path" },
    message: ({ path, holder, pid, socket }) =>
      `API listens on ${socket} alone: ${path} is held by ${
        pid === undefined ? "whoever" : `the supervisor with pid ${pid}, which`
      } accepts on ${holder}; it is taken over when that ends`,
  },
  api_failed: {
    level: "error",
    fields: { path: "path", problem: "text" },
    message: (fact) => `API does not listen on ${fact.path}, traffic goes on without it: ${fact.problem}`,
  },
  stale_socket_removed: {
    level: "info",
    fields: { path: "path" },
    message: (fact) => `removed the socket ${fact.path} of a supervisor that has ended`,
  },
  log_lines_dropped: {
    level: "warn",
    fields: { lines: "number" },
    message: (fact) => `dropped ${fact.lines} log lines, stderr took them too slowly`,
  },
  ledger_failed: {
    level: "warn",
    fields: { problem: "text" },
    message: (fact) => `the ledger of handoffs lacks a line: ${fact.problem}`,
  },
  traces_failed: {
    level: "warn",
    fields: { problem: "text" },
    message: (fact) => `traces of handoffs do not arrive: ${fact.problem}`,
  },
  notify_failed: {
    level: "warn",
    fields: { problem: "text" },
    message: (fact) => `the service manager (NOTIFY_SOCKET) is not told, traffic goes on without it: ${fact.problem}`,
  },
  upgrade_began: {
    level: "info",
    fields: { executable: "path", who: "text", version: "text", pid: "number" },
    message: (fact) =>
      `upgrade of epochd to ${fact.version} (${fact.executable}, by ${fact.who}): started with pid ${fact.pid}`,
  },
  upgrade_refused: {
    level: "warn",
    fields: { executable: "path", who: "text", refusal: "text", detail: "text" },
    message: (fact) =>
      `upgrade of epochd to ${fact.executable} refused (${fact.refusal}, by ${fact.who}): ${fact.detail}`,
  },
  upgrade_taken_over: {
    level: "info",
    fields: { pid: "number", version: "text" },
    message: (fact) => `epochd ${fact.version} with pid ${fact.pid} has taken over, this one's epochs drain`,
  },
  upgrade_failed: {
    level: "error",
    fields: { pid: "number", version: "text", problem: "text" },
    message: (fact) => `upgrade to epochd ${fact.version} (pid ${fact.pid}) failed, this one goes on: ${fact.problem}`,
  },
  upgrade_handed_over: {
    level: "info",
    fields: { pid: "number" },
    message: (fact) => `everything is handed over to the epochd with pid ${fact.pid}`,
  },
  supervisor_ended: {
    level: (fact) => fact.exitCode === 0 ? "info" : "error",
    fields: { exitCode: "number" },
    message: (fact) => `epochd ends with exit code ${fact.exitCode}`,
  },
  bug: {
    level: "error",
    fields: { problem: "text" },
    message: (fact) => `bug in epochd: ${fact.problem}`,
  },
};
