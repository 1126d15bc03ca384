// Owns: what a browser may send here: nothing for another site's page. Must not: know routes.
// Through `ssh -L` the socket that asks for no login is a port of the operator's machine, where every page of his browser could post to.

import type { Identity } from "./client_identity.ts";
import type { HttpProblem } from "./problem_json.ts";

const localNames: ReadonlySet<string> = new Set(["localhost", "127.0.0.1", "[::1]"]);

/** Undefined: not from a browser, or from a page of this listener. */
export function cameFromElsewhere({ headers, method }: Request, { role, isLocal }: Identity): HttpProblem | undefined {
  const site = headers.get("sec-fetch-site");
  const origin = headers.get("origin");
  if (site === null && origin === null) return undefined;
  const host = (headers.get("host") ?? "").toLowerCase();
  const foreign = (detail: string): HttpProblem => ({ status: 403, name: "foreign_page", detail });
  // A link from elsewhere (a runbook) may open a page, which shows only what its own requests are let have.
  const isNavigation = method === "GET" && headers.get("sec-fetch-mode") === "navigate" &&
    headers.get("sec-fetch-dest") === "document";
  if (site !== null && site !== "same-origin" && site !== "none" && !isNavigation) {
    return foreign(`a browser sent this for a page of another site (sec-fetch-site ${site})`);
  }
  if (origin !== null && origin.toLowerCase().replace(/^https?:\/\//, "") !== host) {
    return foreign(`a browser sent this for a page of ${origin}`);
  }
  // A name of somebody else's that resolves to this machine would make his page one of this listener.
  const name = host.replace(/:\d+$/, "");
  if (isLocal === true && role !== undefined && !localNames.has(name)) {
    return foreign(`a browser called this socket ${host}: expected localhost`);
  }
  return undefined;
}
