// Owns: Envoy bootstraps for tests, as objects, and their text in YAML or JSON. Must not start anything.
import { stringify } from "yaml";
import { type Json, listeners } from "./listeners.ts";
import { adsCluster, dynamicResources, type Xds } from "./xds.ts";

export type { Xds };

export interface BootstrapOptions {
  /** Admin on a TCP port of 127.0.0.1, or on a unix socket; without both there is no admin. */
  readonly adminPort?: number;
  readonly adminPath?: string;
  readonly listenPort: number;
  readonly listenAddress?: string;
  /** Where `/` goes. Without it everything is answered by Envoy itself. */
  readonly upstreamPort?: number;
  /** Comes back in the header `x-generation` of every answer. */
  readonly generation?: string;
  /** More HTTP listeners like the first: a port that something else holds, or hundreds of them. */
  readonly extraListenPorts?: readonly number[];
  /** A plain TCP listener to the upstream. */
  readonly tcpProxyPort?: number;
  /** A TLS listener whose certificate and key are read from these files. */
  readonly tls?: { readonly port: number; readonly certificatePath: string; readonly privateKeyPath: string };
  /** A TLS listener whose secret comes from an SDS file. */
  readonly tlsSecret?: { readonly port: number; readonly sdsPath: string };
  /** Adds the route `/file`, answered with the content of this file: a file the bootstrap names. */
  readonly bodyPath?: string;
  /** Listeners and clusters beside the static ones come from here. */
  readonly xds?: Xds;
  readonly statsFlushIntervalMs?: number;
  /** The last word on the finished object, for what only one test needs. */
  readonly change?: (bootstrap: Json) => void;
}

export function bootstrap(options: BootstrapOptions): Json {
  const flushMs = options.statsFlushIntervalMs ?? 1_000;
  const admin = adminAddress(options);
  const result: Json = {
    node: { id: "test-node", cluster: "test-cluster" },
    ...(admin === undefined ? {} : { admin: { address: admin } }),
    stats_flush_interval: `${flushMs / 1000}s`,
    static_resources: { listeners: listeners(options), clusters: clusters(options) },
    ...(options.xds === undefined ? {} : { dynamic_resources: dynamicResources(options.xds) }),
  };
  options.change?.(result);
  return result;
}

/** JSON for a name that ends in `.json`, else YAML. */
export function bootstrapText(options: BootstrapOptions, name = "envoy.yaml"): string {
  const object = bootstrap(options);
  return name.endsWith(".json") ? JSON.stringify(object, null, 2) + "\n" : stringify(object);
}

/** Writes the bootstrap as a careful operator would: a new file, then a rename. Returns the path. */
export function writeBootstrap(path: string, options: BootstrapOptions): string {
  const draft = `${path}.draft-${crypto.randomUUID()}`;
  Deno.writeTextFileSync(draft, bootstrapText(options, path));
  Deno.renameSync(draft, path);
  return path;
}

function adminAddress({ adminPort, adminPath }: BootstrapOptions): Json | undefined {
  if (adminPath !== undefined) return { pipe: { path: adminPath } };
  if (adminPort === undefined) return undefined;
  return { socket_address: { address: "127.0.0.1", port_value: adminPort } };
}

function clusters(options: BootstrapOptions): Json[] {
  const found: Json[] = [];
  if (options.upstreamPort !== undefined) found.push(staticCluster("upstream", options.upstreamPort));
  const xds = options.xds;
  if (xds !== undefined && xds.kind !== "filesystem") {
    found.push(xds.kind === "ads" ? adsCluster(staticCluster("xds", xds.port)) : staticCluster("xds", xds.port));
  }
  return found;
}

function staticCluster(name: string, port: number): Json {
  const address = { socket_address: { address: "127.0.0.1", port_value: port } };
  return {
    name,
    type: "STATIC",
    connect_timeout: "1s",
    // Limits far above what tests open, so that a 503 never comes from a circuit breaker.
    circuit_breakers: { thresholds: [{ max_connections: 10_000, max_pending_requests: 10_000, max_requests: 10_000 }] },
    load_assignment: { cluster_name: name, endpoints: [{ lb_endpoints: [{ endpoint: { address } }] }] },
  };
}
