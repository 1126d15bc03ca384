// Owns: what the API answers about the configuration: read, change, reload, roll back, history. Must not: decide what may change.

import type { ChangeDone, ChangeOutcome, ConfigRefusal } from "../config/change.ts";
import { refuseChange } from "../config/change.ts";
import { valueAt } from "../config/edits.ts";
import { sameValue } from "../config/lifecycle.ts";
import type { Sections } from "../config/load.ts";
import { mergePatch } from "../config/merge_patch.ts";
import type { WrittenConfig } from "../config/written.ts";
import { digestOf } from "../runtime/config_summary.ts";
import type { ChangeOptions } from "../runtime/configuration.ts";
import type { ApiContext, Asked, Handle } from "./context.ts";
import { jsonResponse } from "./json.ts";
import type { Until } from "./outcome.ts";
import { ifMatch, withEtag } from "./parameters.ts";
import { problemResponse } from "./problem_json.ts";
import { unknownService } from "./service_routes.ts";
import { type Waiter, waiter } from "./wait.ts";

export function configHandlers(context: ApiContext): Readonly<Record<string, Handle>> {
  const { configuration } = context;
  const written = () => configuration.running.written;
  return {
    getConfig: ({ request }) => withEtag(request, configuration.digest, jsonResponse(written())),
    getServices: ({ request }) => withEtag(request, digestOf(written().services), jsonResponse(written().services)),
    getService: ({ request, name }) => {
      const { services } = written();
      if (!Object.hasOwn(services, name)) return unknownService(name, Object.keys(services));
      return withEtag(request, digestOf(services[name]), jsonResponse(services[name]));
    },
    putConfig: (asked) =>
      change(context, asked, (options) =>
        configuration.edit((document, now) => {
          return { kind: "asked", sections: withoutEchoes(asked.body as Sections, document, now) };
        }, { ...options, source: "put" })),
    patchConfig: (asked) =>
      change(context, asked, (options) =>
        configuration.edit((document) => {
          return { kind: "asked", sections: mergePatch(document, asked.body) as Sections };
        }, { ...options, source: "patch" })),
    patchService: (asked) => {
      const { name, body } = asked;
      if (!Object.hasOwn(written().services, name)) return unknownService(name, Object.keys(written().services));
      return change(context, asked, (options) =>
        configuration.edit((document, now) => {
          if (!Object.hasOwn(now.services, name)) return refuseChange("unknown_service", `no service ${name} any more`);
          return { kind: "asked", sections: mergePatch(document, { services: { [name]: body } }) as Sections };
        }, { ...options, source: "patch" }), name);
    },
    reload: (asked) => change(context, asked, (options) => configuration.reload({ ...options, source: "reload" })),
    rollback: (asked) => {
      const { to, ...others } = (asked.body ?? {}) as Readonly<Record<string, unknown>>;
      const isName = to === undefined || typeof to === "string" || (typeof to === "number" && Number.isInteger(to));
      if (!isName || Object.keys(others).length > 0) {
        const detail = 'the body is wrong: expected {"to": NUMBER or DIGEST}, or nothing';
        return problemResponse({ status: 400, name: "bad_parameter", detail });
      }
      const target = to === undefined ? undefined : String(to);
      return change(context, asked, (options) => configuration.rollback(target, { ...options, source: "rollback" }));
    },
    history: async ({ request, query: { kind } }) => {
      const [entries, handoffs] = await Promise.all([
        kind === "handoff" ? [] : configuration.history(),
        kind === "configuration" ? [] : context.observed.handoffs(mostHandoffs),
      ]);
      const body = {
        handoffs: handoffs.map((entry) => ({ kind: "handoff", ...entry })),
        configurations: entries.map(({ document: _, wallMs, ...entry }) => ({
          kind: "configuration",
          ...entry,
          at: new Date(wallMs).toISOString(),
          running: entry.digest === configuration.digest,
        })),
      };
      return withEtag(request, digestOf(body), jsonResponse(body));
    },
  };
}

const mostHandoffs = 100;

type Change = (options: Omit<ChangeOptions, "source">) => Promise<ChangeOutcome>;

/** `service`: whose own ETag If-Match may name. */
async function change(context: ApiContext, asked: Asked, act: Change, service?: string): Promise<Response> {
  const { query, identity, request, gone } = asked;
  const matches = ifMatch(request);
  const waiting = waiter(context.control, gone);
  try {
    const outcome = await act({
      who: identity.who,
      dryRun: query.dry_run === "true",
      force: query.force === "true",
      ...(query.persist === "true" || query.persist === "false" ? { persist: query.persist === "true" } : {}),
      ...(matches === undefined ? {} : {
        ifMatch: (digest: string, services: Readonly<Record<string, string>>) =>
          matches(service === undefined ? [digest] : [digest, services[service] ?? ""]),
      }),
    });
    if (outcome.kind === "refused") return refusedResponse(outcome.refusal);
    for (const { request } of Object.values(outcome.services)) {
      if (request !== undefined) context.observed.credit(request, identity.who);
    }
    return await doneResponse(context, asked, outcome, waiting);
  } finally {
    waiting.close();
  }
}

const statuses: Partial<Record<ConfigRefusal["name"], number>> = {
  config_invalid: 422,
  etag_differs: 412,
  history_unknown: 404,
  unknown_service: 404,
};

function refusedResponse(refusal: ConfigRefusal): Response {
  const { name, detail, problems, fields, service, refusal: cause } = refusal;
  const more = {
    ...(cause === undefined ? {} : { refusal: cause }),
    ...(service === undefined ? {} : { service }),
    ...(problems === undefined ? {} : { problems }),
    ...(fields === undefined ? {} : { fields }),
  };
  return problemResponse({ status: statuses[name] ?? 409, name, detail, ...more });
}

async function doneResponse(
  { limits }: ApiContext,
  { query, gone }: Asked,
  done: ChangeDone,
  waiting: Waiter,
): Promise<Response> {
  const until = query.wait as Until;
  const { kind: _, ...body } = done;
  const begun = Object.entries(done.services).filter(([, { request, action }]) =>
    request !== undefined || (action === "add" && !done.dryRun)
  );
  if (begun.length === 0) return changed(body, 200);
  if (until === "accepted") return changed(body, 202);
  const outcomes = await Promise.all(begun.map(async ([name, { request }]) => {
    const outcome = request === undefined
      ? await waiting.started(name, limits.waitMs)
      : await waiting.outcome(name, request, until, limits.waitMs);
    return [name, outcome] as const;
  }));
  const late = outcomes.find(([, outcome]) => outcome === undefined);
  if (late !== undefined) {
    if (gone.aborted) {
      return problemResponse({ status: 503, name: "closing", detail: "the API closes", service: late[0] });
    }
    const detail = `the configuration is taken, service ${late[0]} has no outcome within ${limits.waitMs / 1000} s`;
    return problemResponse({ status: 504, name: "wait_over", detail, service: late[0] });
  }
  const services = { ...body.services } as Record<string, unknown>;
  for (const [name, outcome] of outcomes) {
    const { kind, ...values } = outcome!;
    const told = outcome!.kind === "refused"
      ? { outcome: kind, refusal: outcome!.refusal.name, detail: outcome!.refusal.detail }
      : { outcome: kind, ...values };
    services[name] = { ...body.services[name], ...told };
  }
  const failed = outcomes.find(([, outcome]) => outcome?.kind === "refused");
  if (failed?.[1]?.kind === "refused") {
    const { name, detail } = failed[1].refusal;
    return problemResponse({
      status: 409,
      name: "handoff_failed",
      detail: `the configuration is taken, the new epoch of service ${failed[0]} is not: ${detail}`,
      refusal: name,
      service: failed[0],
    });
  }
  return changed({ ...body, services }, 200);
}

function changed(
  body: Omit<ChangeDone, "kind" | "services"> & { readonly services: unknown },
  status: number,
): Response {
  const response = jsonResponse(body, status);
  response.headers.set("etag", `"${body.digest}"`);
  return response;
}

/** What GET showed as a default and PUT brings back unchanged stays a default, and is not written into the file. */
function withoutEchoes(asked: Sections, document: Sections, written: WrittenConfig): Sections {
  const prune = (value: unknown, path: readonly string[], depth: number): unknown => {
    if (depth === 0 || typeof value !== "object" || value === null || Array.isArray(value)) return value;
    const kept = Object.entries(value).flatMap(([key, inner]) => {
      const place = [...path, key];
      const isEcho = depth === 1 && valueAt(document, place) === undefined && sameValue(inner, valueAt(written, place));
      return isEcho ? [] : [[key, prune(inner, place, depth - 1)] as const];
    });
    return Object.fromEntries(kept);
  };
  return Object.fromEntries(
    Object.entries(asked).flatMap(([section, value]) => {
      const kept = prune(value, [section], section === "services" ? 2 : 1);
      const isEmpty = typeof kept === "object" && kept !== null && Object.keys(kept).length === 0;
      return isEmpty && section !== "services" && !Object.hasOwn(document, section) ? [] : [[section, kept]];
    }),
  );
}
