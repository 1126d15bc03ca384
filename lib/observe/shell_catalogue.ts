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
  start_refused: {
    level: "error",
    fields: { problem: "text" },
    message: (fact) => `can't start: ${fact.problem}`,
  },
  concurrency_chosen: {
    level: "info",
    fields: { concurrency: "number", why: "text" },
    message: (fact) => `every epoch gets --concurrency ${fact.concurrency}, ${fact.why}`,
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
