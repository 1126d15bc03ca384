// Owns: every operation of the API, once: routing, who may, checked parameters and OpenAPI come from this table.
// Must not: answer, or import a library.

import { binaryOperations } from "./binary_operations.ts";
import {
  badParameter,
  changed,
  closing,
  dryRun,
  force,
  json,
  jsonBody,
  mergeBody,
  type Operation,
  persist,
  problem,
  refusedByState,
  unchangedSince,
  unknownService,
  wait,
  waitOver,
  yesNo,
} from "./operation_parts.ts";

export { problemType } from "./operation_parts.ts";
export type { Answer, Operation, Parameter, SchemaName } from "./operation_parts.ts";

export const operations: readonly Operation[] = [
  {
    id: "status",
    method: "GET",
    path: "/v1/status",
    summary: "Every service with its epochs, and the configuration",
    role: "read",
    query: { connections: yesNo("ask Envoy for its connections as well, at most once a second whoever asks", "false") },
    headers: ["if-none-match"],
    answers: { 200: json("as it is now", "Status"), 304: unchangedSince, 400: badParameter },
  },
  {
    id: "epochs",
    method: "GET",
    path: "/v1/services/{name}/epochs",
    summary: "The living epochs of one service, newest first",
    role: "read",
    headers: ["if-none-match"],
    answers: { 200: json("as they are now", "Epochs"), 304: unchangedSince, 404: unknownService },
  },
  {
    id: "restart",
    method: "POST",
    path: "/v1/services/{name}/restart",
    summary: "A new epoch of one service, whatever changed",
    role: "operate",
    query: {
      wait,
      force,
      drained: yesNo("drain what serves, end it and start afresh: no handoff, connections end", "false"),
      dry_run: yesNo("say what it would cut, and do nothing", "false"),
    },
    headers: ["idempotency-key"],
    answers: {
      200: json("the new epoch serves, the old one has ended, or what a drained restart would cut", "Restarted"),
      202: json("accepted", "Restarted"),
      400: badParameter,
      404: unknownService,
      409: refusedByState,
      422: problem("Idempotency-Key was used for another request"),
      503: closing,
      504: waitOver,
    },
  },
  ...binaryOperations,
  {
    id: "getConfig",
    method: "GET",
    path: "/v1/config",
    summary: "The configuration that runs, with every default",
    role: "read",
    headers: ["if-none-match"],
    answers: { 200: json("PUT takes it back as it is", "Config"), 304: unchangedSince },
  },
  {
    id: "putConfig",
    method: "PUT",
    path: "/v1/config",
    summary: "Another configuration; what it leaves out gets its default",
    role: "admin",
    query: { dry_run: dryRun, wait, force, persist },
    headers: ["if-match"],
    body: { schema: "Config", types: jsonBody, required: true },
    answers: { ...changed, 415: problem("another content type is expected") },
  },
  {
    id: "patchConfig",
    method: "PATCH",
    path: "/v1/config",
    summary:
      "A part of the configuration (JSON merge patch, RFC 7396): null gives a field its default, or removes a service",
    role: "admin",
    query: { dry_run: dryRun, wait, force, persist },
    headers: ["if-match"],
    body: { schema: "MergePatch", types: mergeBody, required: true },
    answers: { ...changed, 415: problem("another content type is expected") },
  },
  {
    id: "getServices",
    method: "GET",
    path: "/v1/config/services",
    summary: "The configuration of every service",
    role: "read",
    headers: ["if-none-match"],
    answers: { 200: json("by name", "Services"), 304: unchangedSince },
  },
  {
    id: "getService",
    method: "GET",
    path: "/v1/config/services/{name}",
    summary: "The configuration of one service, with every default",
    role: "read",
    headers: ["if-none-match"],
    answers: { 200: json("as it runs", "Service"), 304: unchangedSince, 404: unknownService },
  },
  {
    id: "patchService",
    method: "PATCH",
    path: "/v1/config/services/{name}",
    summary: "A part of one service's configuration (JSON merge patch, RFC 7396)",
    role: "admin",
    query: { dry_run: dryRun, wait, force, persist },
    headers: ["if-match"],
    body: { schema: "MergePatch", types: mergeBody, required: true },
    answers: { ...changed, 404: unknownService, 415: problem("another content type is expected") },
  },
  {
    id: "reload",
    method: "POST",
    path: "/v1/config/reload",
    summary: "Read epochd.yaml again and give every service a new epoch, as SIGHUP does",
    role: "operate",
    query: { dry_run: dryRun, wait, force },
    headers: ["if-match"],
    answers: changed,
  },
  {
    id: "rollback",
    method: "POST",
    path: "/v1/config/rollback",
    summary:
      "Back to an earlier configuration: `to` is its number or the beginning of its digest; without it, the one before",
    role: "admin",
    query: { dry_run: dryRun, wait, force, persist },
    headers: ["if-match"],
    body: { schema: "Rollback", types: jsonBody, required: false },
    answers: {
      ...changed,
      404: problem("no such configuration is kept"),
      415: problem("another content type is expected"),
    },
  },
  {
    id: "upgrade",
    method: "POST",
    path: "/v1/upgrade",
    summary:
      "Another executable of epochd takes over every service; the status tells what becomes of it, also at the new one",
    role: "admin",
    query: { dry_run: yesNo("check everything and start nothing", "false") },
    body: { schema: "Upgrade", types: jsonBody, required: true },
    answers: {
      200: json("nothing stands in the way (dry_run)", "Upgraded"),
      202: json("the new supervisor was started with this pid", "Upgraded"),
      400: badParameter,
      409: refusedByState,
      415: problem("another content type is expected"),
      503: closing,
    },
  },
  {
    id: "schema",
    method: "GET",
    path: "/v1/config/schema",
    summary: "JSON Schema of epochd.yaml; x-lifecycle says how a change takes effect",
    role: "read",
    headers: ["if-none-match"],
    answers: { 200: { description: "JSON Schema 2020-12", type: "application/schema+json" }, 304: unchangedSince },
  },
  {
    id: "history",
    method: "GET",
    path: "/v1/history",
    summary: "The last handoffs and the last configurations that were accepted, newest first",
    role: "read",
    query: {
      kind: {
        description: "which of them; the list of the other kind is empty",
        choices: ["all", "handoff", "configuration"],
        default: "all",
      },
    },
    headers: ["if-none-match"],
    answers: {
      200: json("at most 100 handoffs and 20 configurations", "History"),
      304: unchangedSince,
      400: badParameter,
    },
  },
  {
    id: "events",
    method: "GET",
    path: "/v1/events",
    summary:
      "What happens, as server-sent events; Last-Event-ID goes on after one, 0 begins with the oldest that is held",
    role: "read",
    query: { follow: yesNo("go on with what happens; false ends after what is held", "true") },
    headers: ["last-event-id"],
    answers: { 200: { description: "one event a fact", type: "text/event-stream" }, 400: badParameter, 503: closing },
  },
  {
    id: "metrics",
    method: "GET",
    path: "/metrics",
    summary: "Metrics of epochd in Prometheus' text format; Envoy's own are at its admin",
    role: "read",
    answers: { 200: { description: "docs/metrics.md lists them", type: "text/plain" } },
  },
  {
    id: "healthz",
    method: "GET",
    path: "/healthz",
    summary: "Whether the supervisor works",
    role: "read",
    answers: { 200: { description: "it does", type: "text/plain" } },
  },
  {
    id: "readyz",
    method: "GET",
    path: "/readyz",
    summary: "Whether every service is ready",
    role: "read",
    answers: { 200: { description: "they are", type: "text/plain" }, 503: problem("one is not") },
  },
  {
    id: "openapi",
    method: "GET",
    path: "/openapi.json",
    summary: "This description, OpenAPI 3.1",
    role: "read",
    headers: ["if-none-match"],
    answers: { 200: { description: "OpenAPI 3.1", type: "application/json" }, 304: unchangedSince },
  },
  {
    id: "reference",
    method: "GET",
    path: "/reference",
    summary: "This description for people, one page without outside resources",
    role: "read",
    headers: ["if-none-match"],
    answers: { 200: { description: "a page", type: "text/html" }, 304: unchangedSince },
  },
  {
    id: "page",
    method: "GET",
    path: "/",
    summary:
      "Status for people: epochs, connections, handoffs, live; without data of its own, so it needs no role, and asks for a key",
    role: "none",
    headers: ["if-none-match"],
    answers: { 200: { description: "a page", type: "text/html" }, 304: unchangedSince },
  },
];

/** Hono's form of a path. */
export function routeOf({ path }: Operation): string {
  return path.replaceAll(/\{(\w+)\}/g, ":$1");
}

/** Whether a request's body is taken in as it comes. */
export function isStreamed(method: string, target: string): boolean {
  const path = target.split("?", 1)[0]!;
  return operations.some((operation) =>
    operation.stream !== undefined && operation.method === method && patternOf(operation).test(path)
  );
}

/** The methods that a path takes; empty where nothing is there. */
export function methodsAt(path: string): readonly string[] {
  return operations.filter((operation) => patternOf(operation).test(path)).map(({ method }) => method);
}

function patternOf({ path }: Operation): RegExp {
  return new RegExp(`^${path.replaceAll(".", "\\.").replaceAll(/\{\w+\}/g, "[^/]+")}$`);
}
