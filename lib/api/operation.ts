// Owns: every operation of the API, once: routing, who may, checked parameters and OpenAPI come from this table.
// Must not: answer, or import a library.

import type { Role } from "../config/client_role.ts";

export type Parameter = {
  readonly description: string;
  readonly choices: readonly string[];
  readonly default: string;
} | {
  readonly description: string;
  /** A whole match. */
  readonly pattern: string;
  /** The pattern for people. */
  readonly expected: string;
};

/** Names of schemas in schemas.ts. */
export type SchemaName =
  | "Binaries"
  | "Change"
  | "Config"
  | "Epochs"
  | "Event"
  | "History"
  | "MergePatch"
  | "Problem"
  | "Restarted"
  | "Rollback"
  | "Service"
  | "Services"
  | "Status"
  | "Switched";

export interface Answer {
  readonly description: string;
  /** Absent: text or HTML, or a schema that is said elsewhere. */
  readonly schema?: SchemaName;
  readonly type?: string;
}

export interface Operation {
  readonly id: string;
  readonly method: "GET" | "POST" | "PUT" | "PATCH";
  /** `{name}` is the only kind of variable. */
  readonly path: string;
  readonly summary: string;
  /** `none`: whoever asks. */
  readonly role: Role | "none";
  readonly query?: Readonly<Record<string, Parameter>>;
  /** What else it reads of the request. */
  readonly headers?: readonly (
    | "epochd-signature"
    | "if-match"
    | "if-none-match"
    | "idempotency-key"
    | "last-event-id"
  )[];
  readonly body?: { readonly schema: SchemaName; readonly types: readonly string[]; readonly required: boolean };
  /** Instead of `body`: bytes of any length, taken in as they come. */
  readonly stream?: { readonly type: string };
  readonly answers: Readonly<Record<number, Answer>>;
}

const json = (description: string, schema: SchemaName): Answer => ({ description, schema, type: "application/json" });
export const problemType = "application/problem+json";
const problem = (description: string): Answer => ({ description, schema: "Problem", type: problemType });

const yesNo = (description: string, value: "true" | "false"): Parameter => {
  return { description, choices: ["true", "false"], default: value };
};
const wait: Parameter = {
  description:
    "hold the answer: accepted, until the new epochs serve (live), or until the old ones have ended (drained)",
  choices: ["accepted", "live", "drained"],
  default: "accepted",
};
const force = yesNo("go on although a serving epoch's control plane is away", "false");
const dryRun = yesNo("check everything, run preflight, and say what would happen", "false");
const persist: Parameter = {
  description: "write the change into epochd.yaml; default: as api.persist says",
  choices: ["true", "false", "default"],
  default: "default",
};

const badParameter = problem("a parameter, a header or the body is wrong");
const unknownService = problem("there is no such service");
const refusedByState = problem("the state says no; `type` names the refusal, and nothing was changed");
const stale = problem("If-Match names another state than the one that runs");
const invalid = problem("not a valid configuration; `problems` has one entry for each thing to mend");
const waitOver = problem("no outcome in time; the request goes on");
const closing = problem("the API closes, or has too much to do");
const unchangedSince: Answer = { description: "what If-None-Match names is what there is" };
const changed = {
  200: json("taken, and done as far as it was waited for; or what would happen (dry_run)", "Change"),
  202: json("taken; `request` names each new epoch that was asked for", "Change"),
  400: badParameter,
  409: refusedByState,
  412: stale,
  422: invalid,
  503: closing,
  504: waitOver,
} as const;
const jsonBody = ["application/json"];
const mergeBody = ["application/merge-patch+json", "application/json"];

const forceSwitch = yesNo("also where it runs already, and although a serving epoch's control plane is away", "false");
const switched = {
  200: json("the new epoch serves, or the old one has ended; or it runs already (unchanged)", "Switched"),
  202: json("switched, and a hot restart is asked for", "Switched"),
  400: badParameter,
  404: problem("there is no such service, or no such executable"),
  409: refusedByState,
  412: stale,
  503: closing,
  504: waitOver,
} as const;

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
  {
    id: "binaries",
    method: "GET",
    path: "/v1/services/{name}/binaries",
    summary: "The executables that were pushed, newest first, and which of them runs",
    role: "read",
    headers: ["if-none-match"],
    answers: {
      200: json("as they are now", "Binaries"),
      304: unchangedSince,
      404: unknownService,
      409: problem("the service has no slots_dir"),
    },
  },
  {
    id: "push",
    method: "PUT",
    path: "/v1/services/{name}/binary",
    summary:
      "Another executable: taken in as it comes, checked (size, digest, signature, what a handoff asks), put in its slot, and hot restarted into",
    role: "admin",
    query: {
      sha256: {
        description: "what its digest must be; the same as what runs is answered without reading it",
        pattern: "^[0-9a-f]{64}$",
        expected: "64 hexadecimal digits in lower case",
      },
      size: { description: "how many bytes it must have", pattern: "^[1-9][0-9]{0,14}$", expected: "a whole number" },
      wait,
      force: forceSwitch,
    },
    headers: ["epochd-signature", "if-match"],
    stream: { type: "application/octet-stream" },
    answers: {
      ...switched,
      413: problem("it is larger than binary_max_bytes"),
      422: problem("size, digest or signature are wrong"),
      507: problem("the disk has no room for it"),
    },
  },
  {
    id: "rollbackBinary",
    method: "POST",
    path: "/v1/services/{name}/binary/rollback",
    summary: "Back to an executable that is in its slot: the one before, or the one that `to` names",
    role: "admin",
    query: {
      to: {
        description: "the beginning of its digest, or `installed` for envoy_path",
        pattern: "^([0-9a-f]{4,64}|installed)$",
        expected: "4 to 64 hexadecimal digits in lower case, or installed",
      },
      wait,
      force: forceSwitch,
    },
    headers: ["if-match"],
    answers: switched,
  },
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
