// Owns: reading query, body and conditions of a request, checked against the operation. Must not: know what they mean.

import type { Operation } from "./operation.ts";
import { problemResponse } from "./problem_json.ts";

/** Every parameter of the operation, with its default; empty where it has none. */
export type Query = Readonly<Record<string, string>>;

export function readQuery(operation: Operation, request: Request): Query | Response {
  const known = operation.query ?? {};
  const given = new Map<string, string>();
  for (const [name, value] of new URL(request.url).searchParams) {
    if (!Object.hasOwn(known, name)) {
      const names = Object.keys(known).join(", ");
      return bad(`unknown parameter ${name}: expected ${names === "" ? "none" : names}`);
    }
    if (given.has(name)) return bad(`${name} stands there twice`);
    const parameter = known[name]!;
    if ("choices" in parameter) {
      const { choices } = parameter;
      if (!choices.includes(value)) return bad(`${name}=${value}: expected ${choices.join(", ")}`);
    } else if (!new RegExp(parameter.pattern).test(value)) {
      return bad(`${name}=${value}: expected ${parameter.expected}`);
    }
    given.set(name, value);
  }
  return Object.fromEntries(
    Object.entries(known).map(([name, parameter]) => [
      name,
      given.get(name) ?? ("choices" in parameter ? parameter.default : ""),
    ]),
  );
}

/** The body as JSON, undefined where there is none and none is needed. */
export async function readBody(
  operation: Operation,
  request: Request,
): Promise<{ readonly value: unknown } | Response> {
  const { body } = operation;
  // Its handler takes it as it comes.
  if (operation.stream !== undefined) return { value: undefined };
  const text = await request.text();
  if (body === undefined || (text === "" && !body.required)) return { value: undefined };
  const type = (request.headers.get("content-type") ?? "").split(";", 1)[0]!.trim().toLowerCase();
  if (!body.types.includes(type)) {
    const detail = `content-type ${type === "" ? "is missing" : type}: expected ${body.types.join(" or ")}`;
    return problemResponse({ status: 415, name: "content_type", detail });
  }
  if (isTooDeep(text)) return bad(`the body is nested deeper than ${mostDepth}`);
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (error) {
    return bad(`the body is no JSON: ${error instanceof Error ? error.message : error}`);
  }
  if (typeof value !== "object" || value === null || Array.isArray(value)) return bad("the body is no JSON object");
  return { value };
}

/** Absent without If-Match. */
export function ifMatch(request: Request): ((etags: readonly string[]) => boolean) | undefined {
  const header = request.headers.get("if-match");
  if (header === null) return undefined;
  const wanted = tagsOf(header);
  return (etags) => wanted.includes("*") || wanted.some((tag) => etags.includes(tag));
}

/** Weak ones (`W/"..."`) match nothing that is written to (RFC 9110, 13.1.1). */
function tagsOf(header: string): readonly string[] {
  return header.split(",").map((tag) => tag.trim()).map((tag) =>
    /^"([^"]*)"$/.exec(tag)?.[1] ?? (tag === "*" ? "*" : "")
  );
}

/** Answers 304 where the client has it already. */
export function withEtag(request: Request, etag: string, response: Response): Response {
  const wanted = request.headers.get("if-none-match");
  const tags = wanted?.split(",").map((tag) => tag.trim().replace(/^W\//, "")) ?? [];
  if (tags.includes(`"${etag}"`) || tags.includes("*")) {
    return new Response(null, { status: 304, headers: { etag: `"${etag}"` } });
  }
  response.headers.set("etag", `"${etag}"`);
  return response;
}

const mostDepth = 32;

/** Before it is parsed: what goes through it calls itself for each level. */
function isTooDeep(text: string): boolean {
  let depth = 0;
  let inString = false;
  for (let at = 0; at < text.length; at++) {
    const char = text[at];
    if (inString) {
      if (char === "\\") at++;
      else if (char === '"') inString = false;
    } else if (char === '"') inString = true;
    else if (char === "{" || char === "[") {
      if (++depth > mostDepth) return true;
    } else if (char === "}" || char === "]") depth--;
  }
  return false;
}

export function bad(detail: string): Response {
  return problemResponse({ status: 400, name: "bad_parameter", detail });
}
