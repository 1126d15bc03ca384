// Owns: the resources that a test's control plane serves, as Envoy's messages (v3 API, 1.38 to 1.40). Must not serve them.
import { message } from "./xds_wire.ts";

const TYPES = "type.googleapis.com/envoy.config";
export const CDS = `${TYPES}.cluster.v3.Cluster`;
export const LDS = `${TYPES}.listener.v3.Listener`;
export const RDS = `${TYPES}.route.v3.RouteConfiguration`;
export type TypeUrl = typeof CDS | typeof LDS | typeof RDS;

/** What a control plane knows: one HTTP listener, a route table of its own, and clusters. */
export interface Snapshot {
  readonly listenPorts: readonly number[];
  /** Where `/` goes, by cluster `dynamic`; `/direct` is answered by Envoy. */
  readonly upstreamPort: number;
  /** Comes back in the header `x-generation`. */
  readonly generation: string;
  /** Clusters beside `dynamic`. */
  readonly extraClusters?: number;
}

type Named = readonly [name: string, resource: Uint8Array];

/** All resources of one type, by name. */
export function resourcesOf(type: TypeUrl, snapshot: Snapshot): ReadonlyMap<string, Uint8Array> {
  switch (type) {
    case CDS: {
      const names = ["dynamic", ...Array.from({ length: snapshot.extraClusters ?? 0 }, (_, index) => `extra-${index}`)];
      return new Map(names.map((name): Named => [name, any(CDS, cluster(name, snapshot.upstreamPort))]));
    }
    case LDS:
      return new Map(snapshot.listenPorts.map((port): Named => [`dynamic-${port}`, any(LDS, listener(port))]));
    case RDS:
      return new Map([["routes", any(RDS, routes(snapshot))]]);
  }
}

export function isTypeUrl(text: string): text is TypeUrl {
  return [CDS, LDS, RDS].includes(text as TypeUrl);
}

function any(type: string, value: Uint8Array): Uint8Array {
  return message({ 1: type, 2: value });
}

/** config.core.v3.Address */
function address(port: number): Uint8Array {
  return message({ 1: message({ 2: "127.0.0.1", 3: port }) });
}

function seconds(value: number): Uint8Array {
  return message({ 1: value });
}

function cluster(name: string, port: number): Uint8Array {
  const endpoint = message({ 1: message({ 1: address(port) }) });
  const assignment = message({ 1: name, 2: message({ 2: endpoint }) });
  const many = message({ 2: message({ 1: 10_000 }), 3: message({ 1: 10_000 }), 4: message({ 1: 10_000 }) });
  return message({ 1: name, 4: seconds(1), 10: message({ 1: many }), 33: assignment });
}

function listener(port: number): Uint8Array {
  const filters = "type.googleapis.com/envoy.extensions.filters";
  const router = message({
    1: "envoy.filters.http.router",
    4: any(`${filters}.http.router.v3.Router`, new Uint8Array(0)),
  });
  // ConfigSource: ads, resource_api_version V3.
  const source = message({ 3: new Uint8Array(0), 6: 2 });
  const manager = message({ 2: `dynamic_${port}`, 3: message({ 1: source, 2: "routes" }), 5: router });
  const network = message({
    1: "envoy.filters.network.http_connection_manager",
    4: any(`${filters}.network.http_connection_manager.v3.HttpConnectionManager`, manager),
  });
  return message({ 1: `dynamic-${port}`, 2: address(port), 3: message({ 3: network }) });
}

function routes({ generation }: Snapshot): Uint8Array {
  const direct = message({
    1: message({ 1: "/direct" }),
    7: message({ 1: 200, 2: message({ 3: "direct\n" }) }),
  });
  const forward = message({ 1: message({ 1: "/" }), 2: message({ 1: "dynamic", 8: seconds(0) }) });
  const host = message({ 1: "all", 2: "*", 3: [direct, forward] });
  const headers = [["x-generation", generation], ["x-epoch", "%ENVIRONMENT(RESTART_EPOCH)%"]].map(([key, value]) =>
    message({ 1: message({ 1: key, 2: value }) })
  );
  return message({ 1: "routes", 2: host, 4: headers });
}
