// Owns: asking an Envoy admin in tests, each time on a fresh connection. Must not be used by the product.
import { fetchOnce, type HttpResponse, type Target } from "./http_client.ts";

export interface ServerInfo {
  readonly epoch: number;
  /** LIVE, DRAINING, PRE_INITIALIZING or INITIALIZING. */
  readonly state: string;
  /** `1.40.0` */
  readonly version: string;
  readonly concurrency: number;
}

export function adminRequest(admin: Target, path: string, method = "GET", timeoutMs = 2_000): Promise<HttpResponse> {
  const headers: Record<string, string> = method === "POST" ? { "content-length": "0" } : {};
  return fetchOnce(admin, { method, path, headers, timeoutMs });
}

export async function serverInfo(admin: Target, timeoutMs = 2_000): Promise<ServerInfo> {
  const { body } = await adminRequest(admin, "/server_info", "GET", timeoutMs);
  const info = JSON.parse(body);
  return {
    epoch: info.command_line_options.restart_epoch ?? 0,
    state: info.state,
    version: String(info.version).split("/")[1] ?? String(info.version),
    concurrency: info.command_line_options.concurrency,
  };
}

/** Values of `/stats` by name, counters and gauges only; `filter` is Envoy's regular expression. */
export async function stats(admin: Target, filter: string): Promise<Map<string, number>> {
  const { body } = await adminRequest(admin, `/stats?filter=${encodeURIComponent(filter)}`);
  const values = new Map<string, number>();
  for (const line of body.split("\n")) {
    const match = /^(.+): (\d+)$/.exec(line);
    if (match?.[1] !== undefined) values.set(match[1], Number(match[2]));
  }
  return values;
}
