// Owns: a collector of traces on a port of this machine, which answers as the test says. Must not: judge what comes.

export interface Collector extends AsyncDisposable {
  readonly endpoint: string;
  readonly posts: readonly { readonly path: string; readonly headers: Headers; readonly body: Json }[];
  /** Every span that came, with its attributes as an object. */
  spans(): readonly CollectedSpan[];
  answer: () => Response | Promise<Response>;
}

// deno-lint-ignore no-explicit-any
type Json = any;

export interface CollectedSpan {
  readonly traceId: string;
  readonly spanId: string;
  readonly parentSpanId?: string;
  readonly name: string;
  readonly tookMs: number;
  readonly status: { readonly code: number; readonly message?: string };
  readonly attributes: Readonly<Record<string, string>>;
}

export function startCollector(): Collector {
  const posts: { path: string; headers: Headers; body: Json }[] = [];
  const server = Deno.serve({ hostname: "127.0.0.1", port: 0, onListen: () => {} }, async (request) => {
    posts.push({ path: new URL(request.url).pathname, headers: request.headers, body: await request.json() });
    return await collector.answer();
  });
  const collector: Collector = {
    endpoint: `http://127.0.0.1:${server.addr.port}`,
    posts,
    spans: () =>
      posts.flatMap(({ body }) => body.resourceSpans[0].scopeSpans[0].spans).map((span) => ({
        ...span,
        tookMs: Number(BigInt(span.endTimeUnixNano) - BigInt(span.startTimeUnixNano)) / 1e6,
        attributes: Object.fromEntries(
          span.attributes.map(({ key, value }: Json) => [key, value.stringValue ?? value.intValue]),
        ),
      })),
    answer: () => new Response("{}"),
    [Symbol.asyncDispose]: () => server.shutdown(),
  };
  return collector;
}
