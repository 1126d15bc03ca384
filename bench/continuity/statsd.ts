// Owns: a receiver of Envoy's statsd sink over TCP: counters come as deltas and are added up, gauges as they are. Must not: know Envoy's names.

export interface StatsdReceiver extends AsyncDisposable {
  readonly port: number;
  /** Sum of all deltas, or what the gauge was last. */
  value(name: string): number | undefined;
}

export function receiveStatsd(port: number): StatsdReceiver {
  const values = new Map<string, number>();
  const listener = Deno.listen({ hostname: "127.0.0.1", port });
  const connections = new Set<Deno.Conn>();
  const read = async (connection: Deno.Conn) => {
    connections.add(connection);
    let rest = "";
    try {
      for await (const text of connection.readable.pipeThrough(new TextDecoderStream())) {
        const lines = (rest + text).split("\n");
        rest = lines.pop() ?? "";
        for (const line of lines) take(values, line);
      }
    } catch {
      // An Envoy that ends may reset its connection; what it had flushed has come.
    }
    connections.delete(connection);
  };
  const accept = async () => {
    const reading: Promise<void>[] = [];
    for await (const connection of listener) reading.push(read(connection));
    await Promise.all(reading);
  };
  const accepting = accept();
  return {
    port,
    value: (name) => values.get(name),
    async [Symbol.asyncDispose]() {
      listener.close();
      for (const connection of connections) close(connection);
      await accepting;
    },
  };
}

/** `name:value|c` or `name:value|g`; timings and the like are passed over. */
export function take(values: Map<string, number>, line: string): void {
  const match = /^(.+):(-?\d+(?:\.\d+)?)\|([cg])$/.exec(line);
  if (match === null) return;
  const [, name, value, kind] = match as unknown as [string, string, string, string];
  values.set(name, kind === "c" ? (values.get(name) ?? 0) + Number(value) : Number(value));
}

function close(connection: Deno.Conn): void {
  try {
    connection.close();
  } catch {
    // Its stream has closed it.
  }
}
