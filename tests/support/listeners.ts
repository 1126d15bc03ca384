// Owns: the listener and route part of test bootstraps. Must not know about admin, xDS or files on disk.
import type { BootstrapOptions } from "./bootstrap.ts";

// deno-lint-ignore no-explicit-any
export type Json = Record<string, any>;

const API = "type.googleapis.com/envoy.extensions";

export function listeners(options: BootstrapOptions): Json[] {
  const hostname = options.listenAddress ?? "127.0.0.1";
  const http = { filters: [httpFilter(options)] };
  const found = [listener("main", hostname, options.listenPort, http)];
  for (const port of options.extraListenPorts ?? []) found.push(listener(`extra-${port}`, hostname, port, http));
  if (options.tcpProxyPort !== undefined) {
    found.push(listener("tcp", hostname, options.tcpProxyPort, { filters: [tcpFilter()] }));
  }
  const { tls, tlsSecret } = options;
  if (tls !== undefined) {
    const certificate = {
      certificate_chain: { filename: tls.certificatePath },
      private_key: { filename: tls.privateKeyPath },
    };
    found.push(listener("tls", hostname, tls.port, tlsChain(http, { tls_certificates: [certificate] })));
  }
  if (tlsSecret !== undefined) {
    const sds = { path_config_source: { path: tlsSecret.sdsPath }, resource_api_version: "V3" };
    const secrets = [{ name: "server_cert", sds_config: sds }];
    const context = { tls_certificate_sds_secret_configs: secrets };
    found.push(listener("tls-secret", hostname, tlsSecret.port, tlsChain(http, context)));
  }
  return found;
}

function listener(name: string, hostname: string, port: number, filterChain: Json): Json {
  return {
    name,
    address: { socket_address: { address: hostname, port_value: port } },
    filter_chains: [filterChain],
  };
}

function tlsChain(chain: Json, commonTlsContext: Json): Json {
  const context = {
    "@type": `${API}.transport_sockets.tls.v3.DownstreamTlsContext`,
    common_tls_context: commonTlsContext,
  };
  return { ...chain, transport_socket: { name: "envoy.transport_sockets.tls", typed_config: context } };
}

function tcpFilter(): Json {
  return {
    name: "envoy.filters.network.tcp_proxy",
    typed_config: {
      "@type": `${API}.filters.network.tcp_proxy.v3.TcpProxy`,
      stat_prefix: "tcp",
      cluster: "upstream",
      idle_timeout: "0s",
    },
  };
}

function httpFilter(options: BootstrapOptions): Json {
  return {
    name: "envoy.filters.network.http_connection_manager",
    typed_config: {
      "@type": `${API}.filters.network.http_connection_manager.v3.HttpConnectionManager`,
      stat_prefix: "main",
      // A stream that pauses is the test's business; Envoy's default would cut it after five minutes.
      stream_idle_timeout: "0s",
      upgrade_configs: [{ upgrade_type: "websocket" }],
      route_config: {
        name: "main",
        response_headers_to_add: [
          header("x-generation", options.generation ?? "0"),
          // Who starts an epoch puts its number into the environment, as Envoy's own hot restarter does.
          header("x-epoch", "%ENVIRONMENT(RESTART_EPOCH)%"),
        ],
        virtual_hosts: [{ name: "all", domains: ["*"], routes: routes(options) }],
      },
      http_filters: [{
        name: "envoy.filters.http.router",
        typed_config: { "@type": `${API}.filters.http.router.v3.Router` },
      }],
    },
  };
}

function routes({ upstreamPort, bodyPath }: BootstrapOptions): Json[] {
  const direct = { status: 200, body: { inline_string: "direct\n" } };
  const found: Json[] = [{ match: { prefix: "/direct" }, direct_response: direct }];
  if (bodyPath !== undefined) {
    found.push({ match: { path: "/file" }, direct_response: { status: 200, body: { filename: bodyPath } } });
  }
  found.push(
    upstreamPort === undefined
      ? { match: { prefix: "/" }, direct_response: direct }
      : { match: { prefix: "/" }, route: { cluster: "upstream", timeout: "0s" } },
  );
  return found;
}

function header(key: string, value: string): Json {
  return { header: { key, value }, append_action: "OVERWRITE_IF_EXISTS_OR_ADD" };
}
