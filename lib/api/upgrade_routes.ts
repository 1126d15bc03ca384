// Owns: what the API answers to the wish for another executable of epochd. Must not: check or start it.

import type { ApiContext, Asked, Handle } from "./context.ts";
import { jsonResponse } from "./json.ts";
import { bad } from "./parameters.ts";
import { problemResponse } from "./problem_json.ts";

export function upgradeHandlers(context: ApiContext): Readonly<Record<string, Handle>> {
  return { upgrade: (asked) => upgrade(context, asked) };
}

async function upgrade({ upgrade }: ApiContext, { body, query, identity }: Asked): Promise<Response> {
  const { executable, ...others } = body as Readonly<Record<string, unknown>>;
  if (typeof executable !== "string" || Object.keys(others).length > 0) {
    return bad('the body is wrong: expected {"executable": FILE}');
  }
  if (!executable.startsWith("/") || executable.includes("\0")) {
    return bad(`executable ${JSON.stringify(executable)}: expected an absolute path`);
  }
  if (upgrade === undefined) {
    return problemResponse({ status: 409, name: "not_upgradable", detail: "this supervisor can't be upgraded" });
  }
  const outcome = await upgrade.begin(executable, identity.who, query.dry_run === "true");
  if (outcome.kind === "refused") {
    const { name, detail } = outcome.refusal;
    return problemResponse({ status: 409, name, detail, refusal: name });
  }
  const { kind, ...values } = outcome;
  return jsonResponse(values, kind === "started" ? 202 : 200);
}
