// Owns: what Envoy's admin is asked and what its answers mean. Must not: keep connections, or judge an epoch.

import type { AdminAddress, Identity } from "../core/epoch.ts";
import type { Connections, IdentityAnswer, Inventory } from "../core/event.ts";
import type { Admin } from "../runtime/ports.ts";
import { ask, type Reply } from "./question.ts";

export interface EnvoyAdminOptions {
  readonly timeoutMs?: number;
  /** /server_info of 1.40.0 has 125 kB, most of it the list of extensions. */
  readonly maxBytes?: number;
}

export class EnvoyAdmin implements Admin {
  private readonly timeoutMs: number;
  private readonly maxBytes: number;

  constructor(options: EnvoyAdminOptions = {}) {
    this.timeoutMs = options.timeoutMs ?? 1000;
    this.maxBytes = options.maxBytes ?? 8_388_608;
  }

  async identity(admin: AdminAddress): Promise<IdentityAnswer> {
    const reply = await this.ask(admin, "GET", "/server_info");
    if (reply.kind === "none") return { kind: "silent", why: reply.why, detail: reply.detail };
    const identity = reply.status === 200 ? parseServerInfo(reply.body) : undefined;
    if (identity !== undefined) return { kind: "answered", identity };
    const detail = `GET /server_info: status ${reply.status}, ${
      JSON.stringify(reply.body.slice(0, 80))
    } is not Envoy's answer`;
    return { kind: "silent", why: "garbage", detail };
  }

  async inventory(admin: AdminAddress, controlPlaneClusters: readonly string[] = []): Promise<Inventory | undefined> {
    const stats = await this.stats(admin, gaugesTarget(inventoryFilter(controlPlaneClusters)));
    const listeners = stats?.get("listener_manager.total_listeners_active");
    const clusters = stats?.get("cluster_manager.active_clusters");
    if (stats === undefined || listeners === undefined || clusters === undefined) return undefined;
    const connected = stats.get("control_plane.connected_state");
    if (connected === undefined) return { listeners, clusters };
    return { listeners, clusters, controlPlaneConnected: connected > 0 && !isConnecting(stats) };
  }

  async connections(admin: AdminAddress): Promise<Connections | undefined> {
    const stats = await this.stats(admin, statsTarget(CONNECTIONS));
    return stats === undefined ? undefined : sumConnections(stats);
  }

  async drain(
    admin: AdminAddress,
    form: "fail_health" | "listeners",
  ): Promise<{ readonly ok: boolean; readonly detail: string }> {
    const target = form === "fail_health" ? "/healthcheck/fail" : "/drain_listeners?graceful";
    const reply = await this.ask(admin, "POST", target);
    if (reply.kind === "none") return { ok: false, detail: reply.detail };
    return { ok: reply.status === 200, detail: `POST ${target}: ${reply.status} ${reply.body.trim().slice(0, 120)}` };
  }

  private async stats(admin: AdminAddress, target: string): Promise<ReadonlyMap<string, number> | undefined> {
    const reply = await this.ask(admin, "GET", target);
    return reply.kind === "reply" && reply.status === 200 ? parseStats(reply.body) : undefined;
  }

  private ask(admin: AdminAddress, method: "GET" | "POST", target: string): Promise<Reply> {
    return ask(admin, { method, target, timeoutMs: this.timeoutMs, maxBytes: this.maxBytes });
  }
}

function statsTarget(filter: string): string {
  return `/stats?format=json&filter=${encodeURIComponent(filter)}`;
}

/**
 * Envoy's main thread tries the filter on every name: of 1,000 listeners' stats that takes it 26 ms, of their gauges alone 4 ms (1.38.3
 * and 1.40.0).
 */
export function gaugesTarget(filter: string): string {
  return `${statsTarget(filter)}&type=Gauges`;
}

/** In names of stats Envoy writes `_` for `:`. */
function inventoryFilter(controlPlaneClusters: readonly string[]): string {
  const names = controlPlaneClusters.map((name) => name.replaceAll(":", "_").replaceAll(/[^\w]/g, "\\$&"));
  const rows = [
    "control_plane\\.connected_state",
    "listener_manager\\.total_listeners_active",
    "cluster_manager\\.active_clusters",
    ...(names.length === 0 ? [] : [`cluster\\.(${names.join("|")})\\.upstream_rq_(pending_)?active`]),
  ];
  return `^(${rows.join("|")})$`;
}

/**
 * Envoy sets `connected_state` when it opens a stream, before there is a connection for it: to a host that is gone that is 1 for the
 * cluster's connect timeout, again and again (1.38 to 1.40). The cluster tells whether the stream still waits.
 */
function isConnecting(stats: ReadonlyMap<string, number>): boolean {
  let [pending, active] = [0, 0];
  for (const [name, value] of stats) {
    if (name.endsWith(".upstream_rq_pending_active")) pending += value;
    else if (name.endsWith(".upstream_rq_active")) active += value;
  }
  return pending > 0 && active === 0;
}

const CONNECTIONS = "^listener\\..*\\.downstream_cx_(active|total)$";
const STATES = ["LIVE", "DRAINING", "PRE_INITIALIZING", "INITIALIZING"] as const;

/** Identity from /server_info; undefined when it is something else. */
export function parseServerInfo(body: string): Identity | undefined {
  // `node` with its list of extensions is 99 % of the text and comes last (1.38 to 1.40).
  const node = body.indexOf(',\n "node": {');
  const info = (node < 0 ? undefined : parseObject(`${body.slice(0, node)}}`)) ?? parseObject(body);
  const options = asObject(info?.command_line_options);
  const state = STATES.find((known) => known === info?.state);
  const epoch = options?.restart_epoch;
  const [version, hotRestartVersion] = [info?.version, info?.hot_restart_version];
  if (state === undefined || typeof epoch !== "number" || typeof version !== "string") return undefined;
  const concurrency = options?.concurrency;
  return {
    epoch,
    state,
    version,
    hotRestartVersion: typeof hotRestartVersion === "string" ? hotRestartVersion : "",
    ...(typeof concurrency === "number" && concurrency > 0 ? { concurrency } : {}),
  };
}

/** Counters and gauges of /stats?format=json; undefined when it is something else. Histograms have no value and are left out. */
export function parseStats(body: string): ReadonlyMap<string, number> | undefined {
  const rows = parseObject(body)?.stats;
  if (!Array.isArray(rows)) return undefined;
  const stats = new Map<string, number>();
  for (const row of rows) {
    const { name, value } = asObject(row) ?? {};
    if (typeof name === "string" && typeof value === "number") stats.set(name, value);
  }
  return stats;
}

/** Sums the listeners' own rows: without admin's and without those of each worker, which say the same again. */
export function sumConnections(stats: ReadonlyMap<string, number>): Connections {
  let [active, total] = [0, 0];
  for (const [name, value] of stats) {
    if (name.startsWith("listener.admin.") || /\.(worker_\d+|main_thread)\.downstream_cx_(active|total)$/.test(name)) {
      continue;
    }
    if (name.endsWith(".downstream_cx_active")) active += value;
    else if (name.endsWith(".downstream_cx_total")) total += value;
  }
  return { active, total };
}

function parseObject(text: string): Record<string, unknown> | undefined {
  try {
    return asObject(JSON.parse(text));
  } catch {
    return undefined;
  }
}

function asObject(value: unknown): Record<string, unknown> | undefined {
  return typeof value === "object" && value !== null && !Array.isArray(value)
    ? value as Record<string, unknown>
    : undefined;
}
