// Owns: how many connections an Envoy and the parent that it drains hold, out of one small question. Must not: keep connections, or judge.

import type { AdminAddress } from "../core/epoch.ts";
import type { Census } from "../observe/observed.ts";
import { gaugesTarget, parseStats, sumConnections } from "./admin.ts";
import { ask } from "./question.ts";

/**
 * A child's gauges hold its parent's as well, and `server.parent_connections` is the parent's part of them: both as of the last flush of
 * statistics, the first of which comes with LIVE. Once the parent has ended the number stays until the next flush (1.38.3 to 1.40.0).
 */
const filter = "^(server\\.parent_connections|listener\\..*\\.downstream_cx_active)$";

const timeoutMs = 1_000;
const maxBytes = 4_194_304;

/** `draining` is the number of whatever parent there is, or was last. */
export async function takeCensus(admin: AdminAddress): Promise<Census | undefined> {
  const reply = await ask(admin, { method: "GET", target: gaugesTarget(filter), timeoutMs, maxBytes });
  const stats = reply.kind === "reply" && reply.status === 200 ? parseStats(reply.body) : undefined;
  if (stats === undefined) return undefined;
  const draining = stats.get("server.parent_connections");
  return { active: sumConnections(stats).active, ...(draining === undefined ? {} : { draining }) };
}
