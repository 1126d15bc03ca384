// Owns: OpenTelemetry's own environment variables, as far as traces of handoffs need them. Must not: send.

export interface OtelSettings {
  /** Whole, as traces are posted to it. */
  readonly endpoint: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly timeoutMs: number;
  readonly resource: Readonly<Record<string, string>>;
}

const defaultTimeoutMs = 10_000;

/** Undefined: no traces are wanted; a text: what is wrong with what is asked for. */
export function otelSettings(env: (name: string) => string | undefined): OtelSettings | string | undefined {
  const read = (name: string) => env(name)?.trim() || undefined;
  if (read("OTEL_SDK_DISABLED")?.toLowerCase() === "true" || read("OTEL_TRACES_EXPORTER") === "none") return undefined;
  const base = read("OTEL_EXPORTER_OTLP_ENDPOINT");
  const given = read("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT") ??
    (base === undefined ? undefined : `${base.replace(/\/+$/, "")}/v1/traces`);
  if (given === undefined) return undefined;
  if (!/^https?:\/\//i.test(given) || !URL.canParse(given)) {
    return `send traces to ${given}: expected an address such as http://127.0.0.1:4318`;
  }
  const protocol = read("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL") ?? read("OTEL_EXPORTER_OTLP_PROTOCOL");
  if (protocol === "grpc") {
    return `send traces to ${given} by grpc: epochd speaks OTLP over HTTP as JSON, expected a collector's HTTP address, often port 4318`;
  }
  const timeout = Number(read("OTEL_EXPORTER_OTLP_TRACES_TIMEOUT") ?? read("OTEL_EXPORTER_OTLP_TIMEOUT") ?? NaN);
  const resource = { "service.name": "epochd", ...pairs(read("OTEL_RESOURCE_ATTRIBUTES")) };
  const name = read("OTEL_SERVICE_NAME");
  return {
    endpoint: given,
    headers: { ...pairs(read("OTEL_EXPORTER_OTLP_HEADERS")), ...pairs(read("OTEL_EXPORTER_OTLP_TRACES_HEADERS")) },
    timeoutMs: timeout > 0 ? timeout : defaultTimeoutMs,
    resource: name === undefined ? resource : { ...resource, "service.name": name },
  };
}

/** `key=value,other=va%2Clue` */
function pairs(text: string | undefined): Readonly<Record<string, string>> {
  const found: Record<string, string> = {};
  for (const pair of text?.split(",") ?? []) {
    const equals = pair.indexOf("=");
    if (equals > 0) found[pair.slice(0, equals).trim()] = decoded(pair.slice(equals + 1).trim());
  }
  return found;
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
