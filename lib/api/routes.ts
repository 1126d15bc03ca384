// Owns: the way of a request: known, let in, checked, answered, written down. Must not: know sockets, or any answer.

import { type Context, Hono } from "hono";
import { mayDo } from "../config/client_role.ts";
import { binaryHandlers } from "./binary_routes.ts";
import { configHandlers } from "./config_routes.ts";
import type { ApiContext, Env, Handle } from "./context.ts";
import { documentHandlers } from "./document_routes.ts";
import { cameFromElsewhere } from "./browser_guard.ts";
import { observedHandlers } from "./observed_routes.ts";
import { methodsAt, type Operation, operations, routeOf } from "./operation.ts";
import { readBody, readQuery } from "./parameters.ts";
import { type HttpProblem, problemResponse } from "./problem_json.ts";
import { serviceHandlers } from "./service_routes.ts";
import { upgradeHandlers } from "./upgrade_routes.ts";

export function routes(context: ApiContext, onBug: (error: Error) => void): Hono<Env> {
  const app = new Hono<Env>();
  const routeOfRequest = new WeakMap<Request, string>();
  app.use(async (c, next) => {
    await next();
    const { method } = c.req;
    const route = routeOfRequest.get(c.req.raw) ?? "none";
    context.observed.countRequest({ route, method: known.has(method) ? method : "other", code: c.res.status });
  });
  const handlers: Readonly<Record<string, Handle>> = {
    ...serviceHandlers(context),
    ...configHandlers(context),
    ...binaryHandlers(context),
    ...documentHandlers(),
    ...observedHandlers(context),
    ...upgradeHandlers(context),
  };
  for (const operation of operations) {
    const handle = handlers[operation.id];
    if (handle === undefined) throw new Error(`operation ${operation.id} has no handler`);
    app.on(operation.method, routeOf(operation), (c) => {
      routeOfRequest.set(c.req.raw, operation.path);
      return answer(c, operation, handle, context);
    });
  }
  app.notFound(async (c) => {
    // Whoever is not let in does not learn what there is.
    const { role, who } = await c.env.identify(c.req.raw);
    if (role === undefined) return deny(context, who, c, unknownClient);
    const methods = methodsAt(c.req.path);
    if (methods.length === 0) {
      return problemResponse({ status: 404, name: "not_found", detail: `nothing is at ${c.req.path}` });
    }
    const response = problemResponse({
      status: 405,
      name: "method_not_allowed",
      detail: `${c.req.path} takes ${methods.join(", ")}`,
    });
    response.headers.set("allow", methods.join(", "));
    return response;
  });
  app.onError((error) => {
    onBug(error);
    return problemResponse({ status: 500, name: "bug", detail: "a bug in epochd, its log has the details" });
  });
  return app;
}

/** The methods that are told apart in metrics: a client may send any word. */
const known: ReadonlySet<string> = new Set(["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"]);

const unknownClient: HttpProblem = {
  status: 401,
  name: "unauthorized",
  detail: "expected an API key (Authorization: Bearer ...) or a client certificate that has a role",
};

async function answer(
  c: Context<Env>,
  operation: Operation,
  handle: Handle,
  context: ApiContext,
): Promise<Response> {
  const { gone, identify } = c.env;
  const identity = await identify(c.req.raw);
  const foreign = cameFromElsewhere(c.req.raw, identity);
  if (foreign !== undefined) return deny(context, identity.who, c, foreign);
  if (operation.role === "none") return await checkedAnswer(c, operation, handle, identity, gone);
  if (identity.role === undefined) return deny(context, identity.who, c, unknownClient);
  if (!mayDo(identity.role, operation.role)) {
    const detail =
      `${operation.method} ${c.req.path} needs the role ${operation.role}, this client has ${identity.role}`;
    return deny(context, identity.who, c, { status: 403, name: "forbidden", detail });
  }
  const response = await checkedAnswer(c, operation, handle, identity, gone);
  if (operation.method !== "GET") await audit(context, identity.who, c, response);
  return response;
}

async function checkedAnswer(
  c: Context<Env>,
  operation: Operation,
  handle: Handle,
  identity: Parameters<Handle>[0]["identity"],
  gone: AbortSignal,
): Promise<Response> {
  const query = readQuery(operation, c.req.raw);
  if (query instanceof Response) return query;
  const body = await readBody(operation, c.req.raw);
  if (body instanceof Response) return body;
  return await handle({
    request: c.req.raw,
    name: c.req.param("name") ?? "",
    query,
    body: body.value,
    identity,
    gone,
  });
}

function deny({ tell }: ApiContext, who: string, c: Context<Env>, problem: HttpProblem): Response {
  tell({ kind: "api_audit", who, action: actionOf(c), status: problem.status, outcome: problem.name });
  const response = problemResponse(problem);
  if (problem.status === 401) response.headers.set("www-authenticate", 'Bearer realm="epochd"');
  return response;
}

/** Every write, with what became of it. */
async function audit({ tell }: ApiContext, who: string, c: Context<Env>, response: Response): Promise<void> {
  const { status } = response;
  const text = await response.clone().json().catch(() => ({})) as Readonly<Record<string, unknown>>;
  const outcome = status < 400 ? text.verdict ?? text.outcome ?? "ok" : text.title ?? "refused";
  tell({ kind: "api_audit", who, action: actionOf(c), status, outcome: String(outcome) });
}

function actionOf(c: Context<Env>): string {
  const { pathname, search } = new URL(c.req.url);
  return `${c.req.method} ${pathname}${search}`.slice(0, 256);
}
