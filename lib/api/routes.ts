// Owns: what the API answers, route by route. Must not: know sockets, or anything of the supervisor but Control.

import { type Context, Hono } from "hono";
import type { Control } from "../runtime/control.ts";
import { eventStream, resumeAfter } from "./event_stream.ts";
import { jsonResponse } from "./json.ts";
import { followRequest, type Outcome, type Until, untils } from "./outcome.ts";
import { problemResponse, refusalResponse } from "./problem_json.ts";

export interface RouteLimits {
  readonly eventStreams: number;
  readonly heartbeatMs: number;
  readonly backlogEvents: number;
  /** For the supervisor to say that it took a request. */
  readonly acceptMs: number;
  /** For a request with `wait=live` or `wait=drained`. */
  readonly waitMs: number;
}

/** What the connection tells of a request. */
export interface Env {
  readonly Bindings: { readonly gone: AbortSignal };
}

export const routeLimits: RouteLimits = {
  eventStreams: 32,
  heartbeatMs: 10_000,
  backlogEvents: 2_000,
  acceptMs: 1_000,
  waitMs: 900_000,
};

export function routes(control: Control, limits: RouteLimits, onBug: (error: Error) => void): Hono<Env> {
  const app = new Hono<Env>();
  let streams = 0;

  app.get("/healthz", (c) => c.text("ok\n"));

  app.get("/readyz", (c) => {
    const services = Object.entries(control.status().services);
    const notReady = services.filter(([, service]) => !service.ready);
    if (notReady.length === 0 && services.length > 0) return c.text("ready\n");
    const names = notReady.map(([name, { phase, note }]) =>
      `${name} (${phase}${note === undefined ? "" : `, ${note}`})`
    );
    return problemResponse({
      status: 503,
      name: "not_ready",
      detail: `not ready: ${names.join(", ") || "no service"}`,
    });
  });

  app.get("/v1/status", () => jsonResponse(control.status()));

  app.get("/v1/events", (c) => {
    if (streams >= limits.eventStreams) {
      return problemResponse({ status: 503, name: "too_many_streams", detail: `${streams} event streams are open` });
    }
    streams++;
    const afterSeq = resumeAfter(c.req.header("last-event-id") ?? null, control);
    const signal = c.env.gone;
    signal.addEventListener("abort", () => streams--, { once: true });
    const { heartbeatMs, backlogEvents } = limits;
    const options = { heartbeatMs, backlogEvents, signal, ...(afterSeq === undefined ? {} : { afterSeq }) };
    return c.body(eventStream(control, options), 200, {
      "content-type": "text/event-stream",
      "cache-control": "no-store",
    });
  });

  app.post("/v1/services/:name/restart", (c) => restart(c, control, limits));

  app.notFound((c) => problemResponse({ status: 404, name: "not_found", detail: `nothing is at ${c.req.path}` }));
  app.onError((error) => {
    onBug(error);
    return problemResponse({ status: 500, name: "bug", detail: "a bug in epochd, its log has the details" });
  });
  return app;
}

async function restart(c: Context<Env>, control: Control, limits: RouteLimits): Promise<Response> {
  const service = c.req.param("name") ?? "";
  const { wait = "accepted", force = "false", ...others } = c.req.query();
  const until = untils.find((known) => known === wait);
  const wrong = until === undefined
    ? `wait=${wait}: expected ${untils.join(", ")}`
    : force !== "true" && force !== "false"
    ? `force=${force}: expected true or false`
    : Object.keys(others).length > 0
    ? `unknown parameter ${Object.keys(others).join(", ")}: expected wait and force`
    : undefined;
  if (until === undefined || wrong !== undefined) {
    return problemResponse({ status: 400, name: "bad_parameter", detail: wrong ?? "" });
  }
  const asked = ask(control, service, until, force === "true", limits, c.env.gone);
  if (asked === undefined) {
    const known = Object.keys(control.status().services).join(", ");
    const detail = `no service ${service}, expected one of: ${known}`;
    return problemResponse({ status: 404, name: "unknown_service", detail, service });
  }
  const { request } = asked;
  const outcome = await asked.outcome;
  if (outcome === undefined && until !== "accepted") {
    if (c.env.gone.aborted) {
      return problemResponse({ status: 503, name: "closing", detail: "the API closes", service, request });
    }
    const detail = `no outcome within ${limits.waitMs / 1000} s, request ${request} goes on`;
    return problemResponse({ status: 504, name: "wait_over", detail, service, request });
  }
  if (outcome?.kind === "refused") return refusalResponse(outcome.refusal, service, request);
  const { kind, ...values } = outcome ?? { kind: "accepted" as const };
  return jsonResponse({ service, request, outcome: kind, ...values }, kind === "accepted" ? 202 : 200);
}

/** Undefined where there is no such service; the outcome is undefined where it did not come in time. */
function ask(
  control: Control,
  service: string,
  until: Until,
  force: boolean,
  limits: RouteLimits,
  gone: AbortSignal,
): { readonly request: string; readonly outcome: Promise<Outcome | undefined> } | undefined {
  // Subscribed before the trigger, or its first facts would be missed.
  const early: Parameters<Parameters<Control["subscribe"]>[0]>[0][] = [];
  let observe = (record: (typeof early)[number]) => void early.push(record);
  const unsubscribe = control.subscribe((record) => observe(record));
  const triggered = control.trigger(service, "api", { force });
  if (triggered === undefined) {
    unsubscribe();
    return undefined;
  }
  const follow = followRequest(service, triggered.request, until);
  const outcome = new Promise<Outcome | undefined>((resolve) => {
    const settle = (found: Outcome | undefined) => {
      clearTimeout(timer);
      gone.removeEventListener("abort", giveUp);
      resolve(found);
    };
    const giveUp = () => settle(undefined);
    const timer = setTimeout(giveUp, until === "accepted" ? limits.acceptMs : limits.waitMs);
    gone.addEventListener("abort", giveUp);
    observe = (record) => {
      const found = follow(record);
      if (found !== undefined) settle(found);
    };
    early.forEach(observe);
  });
  return { request: triggered.request, outcome: outcome.finally(unsubscribe) };
}
