// Owns: what the API answers about executables as data: list, push, roll back. Must not: decide what may be switched.

import type { RefusalName } from "../core/refusal.ts";
import { digestOf } from "../runtime/config_summary.ts";
import type { Switched, SwitchOptions, Upload } from "../runtime/binaries.ts";
import type { ApiContext, Asked, Handle } from "./context.ts";
import { jsonResponse } from "./json.ts";
import type { Outcome, Until } from "./outcome.ts";
import { ifMatch, withEtag } from "./parameters.ts";
import { problemResponse, refusalResponse } from "./problem_json.ts";
import { unknownService } from "./service_routes.ts";
import { waiter } from "./wait.ts";

/** Others: 409, the state says no. */
const statuses: Partial<Record<RefusalName, number>> = {
  binary_too_large: 413,
  digest_differs: 422,
  disk_full: 507,
  signature_invalid: 422,
  signature_missing: 422,
  size_differs: 422,
  slot_unknown: 404,
  upload_broken: 400,
};

export function binaryHandlers(context: ApiContext): Readonly<Record<string, Handle>> {
  const { binaries, control } = context;
  const unknown = (name: string) => unknownService(name, Object.keys(control.status().services));
  return {
    binaries: async ({ request, name }) => {
      const listed = await binaries.list(name);
      if (listed === undefined) return unknown(name);
      if (listed.kind === "refused") return refusedResponse(listed.refusal, name);
      const body = { service: name, ...listed.list };
      return withEtag(request, digestOf(body), jsonResponse(body));
    },
    push: async (asked) => {
      const upload = uploadOf(asked);
      if (upload instanceof Response) return upload;
      return await change(context, asked, (options) => binaries.push(asked.name, upload, options)) ??
        unknown(asked.name);
    },
    rollbackBinary: async (asked) => {
      const to = asked.query.to === "" ? undefined : asked.query.to;
      return await change(context, asked, (options) => binaries.rollBack(asked.name, to, options)) ??
        unknown(asked.name);
    },
  };
}

function uploadOf({ request, name, query: { sha256, size } }: Asked): Upload | Response {
  const length = request.headers.get("content-length");
  if (size !== "" && length !== null && Number(size) !== Number(length)) {
    const detail = `size=${size}: Content-Length says ${length}`;
    return refusedResponse({ name: "size_differs", detail }, name);
  }
  const sizeBytes = size === "" ? length : size;
  if (sizeBytes === null && request.headers.get("transfer-encoding") === null) {
    return problemResponse({ status: 411, name: "length_required", detail: "expected Content-Length or chunks" });
  }
  const given = request.headers.get("epochd-signature");
  const signature = given === null ? undefined : decode(given);
  if (given !== null && signature === undefined) {
    const detail = "Epochd-Signature: expected a minisign signature file in base64";
    return refusedResponse({ name: "signature_invalid", detail }, name);
  }
  return {
    pieces: request.body ?? new ReadableStream({ start: (controller) => controller.close() }),
    ...(sizeBytes === null ? {} : { sizeBytes: Number(sizeBytes) }),
    ...(sha256 === "" ? {} : { sha256: sha256! }),
    ...(signature === undefined ? {} : { signature }),
  };
}

function decode(base64: string): string | undefined {
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(Uint8Array.from(atob(base64), (c) => c.charCodeAt(0)));
  } catch {
    return undefined;
  }
}

async function change(
  context: ApiContext,
  asked: Asked,
  act: (options: SwitchOptions) => Promise<Switched | undefined>,
): Promise<Response | undefined> {
  const { binaries, control, limits, observed } = context;
  const { name, query, gone, identity, request } = asked;
  const matches = ifMatch(request);
  if (matches !== undefined) {
    const listed = await binaries.list(name);
    if (listed?.kind === "listed" && !matches([digestOf({ service: name, ...listed.list })])) {
      const detail = "If-Match names other executables than there are";
      return problemResponse({ status: 412, name: "etag_differs", detail, service: name });
    }
  }
  // Subscribed before the trigger, or its first facts would be missed.
  const waiting = waiter(control, gone);
  try {
    const switched = await act({ force: query.force === "true", drained: query.drained === "true", gone });
    if (switched === undefined) return undefined;
    if (switched.kind === "refused") return refusedResponse(switched.refusal, name);
    const { kind: _, ...told } = switched;
    if (switched.kind === "unchanged") return jsonResponse({ service: name, outcome: "unchanged", ...told }, 200);
    observed.credit(switched.request, identity.who);
    const until = query.wait as Until;
    const outcome = until === "accepted"
      ? { kind: "accepted" as const }
      : await waiting.outcome(name, switched.request, until, limits.waitMs);
    return switchedResponse(name, told, switched.request, outcome, gone, limits.waitMs);
  } finally {
    waiting.close();
  }
}

function switchedResponse(
  service: string,
  told: object,
  request: string,
  outcome: Outcome | undefined,
  gone: AbortSignal,
  waitMs: number,
): Response {
  if (outcome === undefined) {
    if (gone.aborted) {
      return problemResponse({ status: 503, name: "closing", detail: "the API closes", service, request });
    }
    const detail = `no outcome within ${waitMs / 1000} s, request ${request} goes on`;
    return problemResponse({ status: 504, name: "wait_over", detail, service, request });
  }
  if (outcome.kind === "refused") return refusalResponse(outcome.refusal, service, request);
  const { kind, ...values } = outcome;
  return jsonResponse({ service, ...told, outcome: kind, ...values }, kind === "accepted" ? 202 : 200);
}

function refusedResponse(refusal: { readonly name: RefusalName; readonly detail: string }, service: string): Response {
  const { name, detail } = refusal;
  return problemResponse({ status: statuses[name] ?? 409, name, detail, service }, refusal);
}
