// Owns: the xDS part of test bootstraps, and servers that never answer. Must not hold a working xDS server.
import type { Json } from "./listeners.ts";

export type Xds =
  /** Aggregated discovery over gRPC from a port of 127.0.0.1 (dead, a black hole or a real server). */
  | { readonly kind: "ads"; readonly port: number; readonly initialFetchTimeoutMs?: number }
  | { readonly kind: "rest"; readonly port: number; readonly initialFetchTimeoutMs?: number }
  /** Two files with a DiscoveryResponse each, as YAML or JSON. */
  | { readonly kind: "filesystem"; readonly ldsPath: string; readonly cdsPath: string };

export function dynamicResources(xds: Xds): Json {
  if (xds.kind === "filesystem") {
    const source = (path: string) => ({ path_config_source: { path }, resource_api_version: "V3" });
    return { lds_config: source(xds.ldsPath), cds_config: source(xds.cdsPath) };
  }
  // Without a value Envoy's default of 15 s holds; 0 means for ever.
  const timeout = xds.initialFetchTimeoutMs === undefined
    ? {}
    : { initial_fetch_timeout: `${xds.initialFetchTimeoutMs / 1000}s` };
  const common = { resource_api_version: "V3", ...timeout };
  if (xds.kind === "ads") {
    const source = { ads: {}, ...common };
    const services = [{ envoy_grpc: { cluster_name: "xds" } }];
    return {
      ads_config: { api_type: "GRPC", transport_api_version: "V3", grpc_services: services },
      lds_config: source,
      cds_config: source,
    };
  }
  const rest = {
    api_type: "REST",
    transport_api_version: "V3",
    cluster_names: ["xds"],
    refresh_delay: "1s",
    request_timeout: "1s",
  };
  return {
    lds_config: { api_config_source: rest, ...common },
    cds_config: { api_config_source: rest, ...common },
  };
}

export function adsCluster(cluster: Json): Json {
  const options = {
    "@type": "type.googleapis.com/envoy.extensions.upstreams.http.v3.HttpProtocolOptions",
    explicit_http_config: { http2_protocol_options: {} },
  };
  return {
    ...cluster,
    typed_extension_protocol_options: { "envoy.extensions.upstreams.http.v3.HttpProtocolOptions": options },
  };
}

export interface BlackHole extends AsyncDisposable {
  readonly port: number;
  readonly connections: number;
}

/** Accepts connections, reads what comes and never answers: a control plane that hangs. */
export function blackHole(port: number): BlackHole {
  const listener = Deno.listen({ hostname: "127.0.0.1", port });
  const open = new Set<Deno.TcpConn>();
  let connections = 0;
  const swallow = async (conn: Deno.TcpConn) => {
    open.add(conn);
    connections++;
    const bytes = new Uint8Array(4096);
    try {
      while (await conn.read(bytes) !== null);
    } catch { /* closed by us or by them */ }
    open.delete(conn);
    try {
      conn.close();
    } catch { /* closed by us */ }
  };
  const readers: Promise<void>[] = [];
  const accepting = (async () => {
    for await (const conn of listener) readers.push(swallow(conn));
  })();
  return {
    port,
    get connections() {
      return connections;
    },
    async [Symbol.asyncDispose]() {
      listener.close();
      for (const conn of open) conn.close();
      await accepting;
      await Promise.all(readers);
    },
  };
}
