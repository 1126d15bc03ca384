// Owns: the bootstrap that every supervisor under the meter gets: one listener for each way to be dropped. Must not: start anything.
import { writeBootstrap } from "../../tests/support/bootstrap.ts";
import type { Json } from "../../tests/support/listeners.ts";

export interface MeterPorts {
  readonly admin: number;
  readonly http: number;
  readonly tls: number;
  readonly quic: number;
  readonly tcp: number;
  readonly udp: number;
  readonly upstream: number;
  readonly grpcUpstream: number;
  readonly tcpUpstream: number;
  readonly udpUpstream: number;
}

export interface Certificate {
  readonly certPath: string;
  readonly keyPath: string;
}

const API = "type.googleapis.com/envoy.extensions";

export function writeMeterBootstrap(path: string, ports: MeterPorts, certificate: Certificate): string {
  const { certPath, keyPath } = certificate;
  return writeBootstrap(path, {
    adminPort: ports.admin,
    listenPort: ports.http,
    upstreamPort: ports.upstream,
    tcpProxyPort: ports.tcp,
    tls: { port: ports.tls, certificatePath: certPath, privateKeyPath: keyPath },
    change: (bootstrap) => {
      const { listeners, clusters } = bootstrap.static_resources;
      const main = find(listeners, "main");
      const http = main.filter_chains[0].filters[0];
      const call = { match: { prefix: "/meter.Meter/" }, route: { cluster: "grpc", timeout: "0s" } };
      http.typed_config.route_config.virtual_hosts[0].routes.unshift(call);
      find(listeners, "tcp").filter_chains[0].filters[0].typed_config.cluster = "tcp";
      listeners.push(quic(ports.quic, certificate, http), udp(ports.udp));
      clusters.push(
        { ...cluster("grpc", ports.grpcUpstream), typed_extension_protocol_options: http2Upstream() },
        cluster("tcp", ports.tcpUpstream),
        cluster("udp", ports.udpUpstream),
      );
    },
  });
}

function find(listeners: readonly Json[], name: string): Json {
  const found = listeners.find((listener) => listener.name === name);
  if (found === undefined) throw new Error(`no listener ${name} in the bootstrap of the tests`);
  return found;
}

/** The same filter as without QUIC, told apart by its codec only. */
function quic(port: number, { certPath, keyPath }: Certificate, http: Json): Json {
  const certificate = { certificate_chain: { filename: certPath }, private_key: { filename: keyPath } };
  const transport = {
    "@type": `${API}.transport_sockets.quic.v3.QuicDownstreamTransport`,
    downstream_tls_context: { common_tls_context: { tls_certificates: [certificate] } },
  };
  const filter = { ...http, typed_config: { ...http.typed_config, codec_type: "HTTP3", upgrade_configs: [] } };
  return {
    name: "quic",
    address: address(port, "UDP"),
    udp_listener_config: { quic_options: {} },
    filter_chains: [{
      filters: [filter],
      transport_socket: { name: "envoy.transport_sockets.quic", typed_config: transport },
    }],
  };
}

function udp(port: number): Json {
  const types = `${API}.filters.udp.udp_proxy.v3`;
  const route = { name: "route", typed_config: { "@type": `${types}.Route`, cluster: "udp" } };
  const proxy = {
    "@type": `${types}.UdpProxyConfig`,
    stat_prefix: "udp",
    matcher: { on_no_match: { action: route } },
  };
  return {
    name: "udp",
    address: address(port, "UDP"),
    listener_filters: [{ name: "envoy.filters.udp_listener.udp_proxy", typed_config: proxy }],
  };
}

function cluster(name: string, port: number): Json {
  return {
    name,
    type: "STATIC",
    connect_timeout: "1s",
    circuit_breakers: { thresholds: [{ max_connections: 10_000, max_pending_requests: 10_000, max_requests: 10_000 }] },
    load_assignment: { cluster_name: name, endpoints: [{ lb_endpoints: [{ endpoint: { address: address(port) } }] }] },
  };
}

function http2Upstream(): Json {
  const options = { "@type": "type.googleapis.com/envoy.extensions.upstreams.http.v3.HttpProtocolOptions" };
  return {
    "envoy.extensions.upstreams.http.v3.HttpProtocolOptions": {
      ...options,
      explicit_http_config: { http2_protocol_options: {} },
    },
  };
}

function address(port: number, protocol = "TCP"): Json {
  return { socket_address: { address: "127.0.0.1", port_value: port, protocol } };
}
