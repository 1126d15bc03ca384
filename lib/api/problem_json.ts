// Owns: "no" as HTTP says it: application/problem+json (RFC 9457). Must not: decide what is refused.

import type { StaticField } from "../config/change.ts";
import type { Problem } from "../config/problem.ts";
import type { Refusal } from "../core/refusal.ts";

export interface ProblemDetails {
  readonly type: string;
  readonly title: string;
  readonly status: number;
  readonly detail: string;
  /** The name of the refusal where the supervisor said no. */
  readonly refusal?: string;
  readonly service?: string;
  readonly request?: string;
  /** What to mend in a configuration. */
  readonly problems?: readonly Problem[];
  /** What can't change while epochd runs. */
  readonly fields?: readonly StaticField[];
}

export interface HttpProblem {
  readonly status: number;
  /** Machine's name, for example `unknown_service`. */
  readonly name: string;
  readonly detail: string;
  /** The name of the refusal behind it. */
  readonly refusal?: string;
  readonly service?: string;
  readonly request?: string;
  readonly problems?: readonly Problem[];
  readonly fields?: readonly StaticField[];
}

export function problemResponse(problem: HttpProblem, refusal?: Refusal): Response {
  const { status, name, detail, ...subject } = problem;
  const details: ProblemDetails = {
    type: `urn:epochd:problem:${name}`,
    title: name.replaceAll("_", " "),
    status,
    detail,
    ...(refusal === undefined ? {} : { refusal: refusal.name }),
    ...subject,
  };
  return new Response(`${JSON.stringify(details)}\n`, {
    status,
    headers: { "content-type": "application/problem+json" },
  });
}

/** The state of the service says no: 409, whatever the reason; `refusal` names it. */
export function refusalResponse(refusal: Refusal, service: string, request: string): Response {
  return problemResponse({ status: 409, name: refusal.name, detail: refusal.detail, service, request }, refusal);
}
