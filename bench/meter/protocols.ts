// Owns: the protocols that the meter holds across a handoff: their names and what is counted of each. Must not: speak any of them.

export const PROTOCOLS = {
  "h1-keep-alive": { title: "HTTP/1.1 keep-alive", unit: "requests" },
  "h1-new": { title: "HTTP/1.1, a connection each", unit: "requests" },
  "h2": { title: "HTTP/2", unit: "requests" },
  "grpc": { title: "gRPC server streaming", unit: "streams" },
  "websocket": { title: "WebSocket", unit: "messages" },
  "download": { title: "long chunked download", unit: "downloads" },
  "upload": { title: "slow upload", unit: "uploads" },
  "tcp": { title: "raw TCP (tcp_proxy)", unit: "messages" },
  "tls": { title: "TLS, HTTP/1.1 keep-alive", unit: "requests" },
  "h3": { title: "HTTP/3", unit: "requests" },
  "udp": { title: "UDP (udp_proxy)", unit: "datagrams" },
  /** Held for ever, and so cut at every parent-shutdown: what Envoy's design can't carry over. */
  "tcp-for-ever": { title: "raw TCP, never closed", unit: "messages" },
} as const satisfies Record<string, { readonly title: string; readonly unit: string }>;

export type Protocol = keyof typeof PROTOCOLS;

export const PROTOCOL_NAMES: readonly Protocol[] = Object.keys(PROTOCOLS) as Protocol[];
