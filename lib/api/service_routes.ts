// Owns: what the API answers about services at work: status, epochs, restart, events, health. Must not: change configurations.

import type { SupervisorStatus } from "../runtime/control.ts";
import type { ApiContext, Asked, Handle } from "./context.ts";
import { eventStream, resumeAfter } from "./event_stream.ts";
import { IdempotencyKeys } from "./idempotency.ts";
import { jsonResponse, toJson } from "./json.ts";
import { type Outcome, type Until } from "./outcome.ts";
import { bad, withEtag } from "./parameters.ts";
import { problemResponse, refusalResponse } from "./problem_json.ts";
import { waiter } from "./wait.ts";
import { digestOf } from "../runtime/config_summary.ts";

export function serviceHandlers(context: ApiContext): Readonly<Record<string, Handle>> {
  const { control, configuration } = context;
  const keys = new IdempotencyKeys();
  let streams = 0;
  return {
    healthz: () => text("ok\n"),
    readyz: () => ready(context),
    status: async ({ request, query }) => {
      const connections = query.connections === "true" ? await context.observed.connections() : undefined;
      const { status: upgrade, runningExecutable: executable } = context.upgrade ?? {};
      const itself = { ...(executable && { executable }), ...(upgrade && { upgrade }) };
      const now = { ...control.status(), config: configuration.summary(), ...itself };
      const status: SupervisorStatus = { ...now, ...(connections === undefined ? {} : { connections }) };
      return withEtag(request, digestOf(toJson(status)), jsonResponse(status));
    },
    epochs: ({ request, name }) => {
      const { services } = control.status();
      if (!Object.hasOwn(services, name)) return unknownService(name, Object.keys(services));
      const body = { service: name, epochs: services[name]!.epochs };
      return withEtag(request, digestOf(toJson(body)), jsonResponse(body));
    },
    restart: (asked) => restart(context, keys, asked),
    events: ({ request, query, gone: signal }) => {
      const { eventStreams, heartbeatMs, backlogEvents } = context.limits;
      if (streams >= eventStreams) {
        return problemResponse({ status: 503, name: "too_many_streams", detail: `${streams} event streams are open` });
      }
      streams++;
      signal.addEventListener("abort", () => streams--, { once: true });
      const afterSeq = resumeAfter(request.headers.get("last-event-id"), control);
      const follow = query.follow !== "false";
      const options = { heartbeatMs, backlogEvents, signal, follow, ...(afterSeq === undefined ? {} : { afterSeq }) };
      return new Response(eventStream(control, options), {
        headers: { "content-type": "text/event-stream", "cache-control": "no-store" },
      });
    },
  };
}

export function text(body: string, type = "text/plain"): Response {
  return new Response(body, { headers: { "content-type": `${type}; charset=utf-8` } });
}

export function unknownService(service: string, known: readonly string[]): Response {
  const detail = `no service ${service}, expected one of: ${known.join(", ")}`;
  return problemResponse({ status: 404, name: "unknown_service", detail, service });
}

function ready({ control }: ApiContext): Response {
  const services = Object.entries(control.status().services);
  const notReady = services.filter(([, service]) => !service.ready);
  if (notReady.length === 0 && services.length > 0) return text("ready\n");
  const names = notReady.map(([name, { phase, note }]) => `${name} (${phase}${note === undefined ? "" : `, ${note}`})`);
  return problemResponse({ status: 503, name: "not_ready", detail: `not ready: ${names.join(", ") || "no service"}` });
}

async function restart(context: ApiContext, keys: IdempotencyKeys, asked: Asked): Promise<Response> {
  const { control, limits } = context;
  const { name: service, query, gone, identity, request: { headers } } = asked;
  const until = query.wait as Until;
  const force = query.force === "true";
  const drained = query.drained === "true";
  if (query.dry_run === "true") return await planned(context, service);
  const given = headers.get("idempotency-key");
  const wrong = IdempotencyKeys.check(given);
  if (wrong !== undefined) return bad(wrong);
  const key = given === null ? null : `${identity.who}\n${given}`;
  const what = JSON.stringify([service, force, drained]);
  const before = keys.find(key);
  if (before !== undefined && before.asked !== what) {
    const detail = "Idempotency-Key was used for another request: expected a new one";
    return problemResponse({ status: 422, name: "idempotency_key_reused", detail, service, request: before.request });
  }
  const newest = control.recent().at(-1)?.seq ?? 0;
  const oldest = control.recent()[0]?.seq ?? 0;
  // Subscribed before the trigger, or its first facts would be missed.
  const waiting = waiter(control, gone, before?.afterSeq ?? newest);
  try {
    const request = before?.request ?? control.trigger(service, "api", { force, drained })?.request;
    if (request === undefined) return unknownService(service, Object.keys(control.status().services));
    context.observed.credit(request, identity.who);
    if (before === undefined) keys.remember(key, { asked: what, request, afterSeq: newest });
    // What happened so long ago that nobody holds it will not be told again.
    const isLost = before !== undefined && before.afterSeq + 1 < oldest;
    const boundMs = until === "accepted" || isLost ? limits.acceptMs : limits.waitMs;
    const outcome = await waiting.outcome(service, request, until, boundMs);
    const response = restartAnswer(context, service, request, until, outcome, gone);
    if (before !== undefined) response.headers.set("idempotency-replayed", "true");
    return response;
  } finally {
    waiting.close();
  }
}

/** Whom a drained restart would cut, if nobody left by himself. */
async function planned({ control, configuration, observed }: ApiContext, service: string): Promise<Response> {
  const { services } = control.status();
  if (!Object.hasOwn(services, service)) return unknownService(service, Object.keys(services));
  const connections = (await observed.connections())[service]?.active;
  const drainTimeMs = configuration.running.config.services[service]?.drainTimeMs;
  return jsonResponse({ service, outcome: "planned", connections, drainTimeMs });
}

function restartAnswer(
  { limits }: ApiContext,
  service: string,
  request: string,
  until: Until,
  outcome: Outcome | undefined,
  gone: AbortSignal,
): Response {
  if (outcome === undefined && until !== "accepted") {
    if (gone.aborted) {
      return problemResponse({ status: 503, name: "closing", detail: "the API closes", service, request });
    }
    const detail = `no outcome within ${limits.waitMs / 1000} s, request ${request} goes on`;
    return problemResponse({ status: 504, name: "wait_over", detail, service, request });
  }
  if (outcome?.kind === "refused") return refusalResponse(outcome.refusal, service, request);
  const { kind, ...values } = outcome ?? { kind: "accepted" as const };
  return jsonResponse({ service, request, outcome: kind, ...values }, kind === "accepted" ? 202 : 200);
}
