// Owns: what an operation of the API is made of, and the parts that several share. Must not: list operations, or import a library.

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
  | "Switched"
  | "Upgrade"
  | "Upgraded";

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

export const json = (description: string, schema: SchemaName): Answer => ({
  description,
  schema,
  type: "application/json",
});
export const problemType = "application/problem+json";
export const problem = (description: string): Answer => ({ description, schema: "Problem", type: problemType });

export const yesNo = (description: string, value: "true" | "false"): Parameter => {
  return { description, choices: ["true", "false"], default: value };
};
export const wait: Parameter = {
  description:
    "hold the answer: accepted, until the new epochs serve (live), or until the old ones have ended (drained)",
  choices: ["accepted", "live", "drained"],
  default: "accepted",
};
export const force = yesNo("go on although a serving epoch's control plane is away", "false");
export const dryRun = yesNo("check everything, run preflight, and say what would happen", "false");
export const persist: Parameter = {
  description: "write the change into epochd.yaml; default: as api.persist says",
  choices: ["true", "false", "default"],
  default: "default",
};

export const badParameter = problem("a parameter, a header or the body is wrong");
export const unknownService = problem("there is no such service");
export const refusedByState = problem("the state says no; `type` names the refusal, and nothing was changed");
export const stale = problem("If-Match names another state than the one that runs");
export const invalid = problem("not a valid configuration; `problems` has one entry for each thing to mend");
export const waitOver = problem("no outcome in time; the request goes on");
export const closing = problem("the API closes, or has too much to do");
export const unchangedSince: Answer = { description: "what If-None-Match names is what there is" };
export const changed = {
  200: json("taken, and done as far as it was waited for; or what would happen (dry_run)", "Change"),
  202: json("taken; `request` names each new epoch that was asked for", "Change"),
  400: badParameter,
  409: refusedByState,
  412: stale,
  422: invalid,
  503: closing,
  504: waitOver,
} as const;
export const jsonBody = ["application/json"];
export const mergeBody = ["application/merge-patch+json", "application/json"];
