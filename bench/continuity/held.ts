// Owns: idle connections that are always held: one that the server ends is opened again at once. Must not: send anything on them.

export interface Held extends AsyncDisposable {
  /** Held in this moment. */
  readonly open: number;
  /** Ended by the server so far. */
  readonly ended: number;
}

export async function holdConnections(port: number, count: number): Promise<Held> {
  const connections = new Set<Deno.Conn>();
  let [ended, stopping] = [0, false];
  const open = async () => {
    const connection = await Deno.connect({ hostname: "127.0.0.1", port });
    connections.add(connection);
    return connection;
  };
  const keep = async (first: Deno.Conn) => {
    for (let connection = first; !stopping; connection = await open()) {
      await connection.read(new Uint8Array(1)).catch(() => null);
      connections.delete(connection);
      if (stopping) return;
      ended++;
      connection.close();
    }
  };
  const firsts: Deno.Conn[] = [];
  for (let at = 0; at < count; at++) firsts.push(await open());
  const running = firsts.map(keep);
  return {
    get open() {
      return connections.size;
    },
    get ended() {
      return ended;
    },
    async [Symbol.asyncDispose]() {
      stopping = true;
      for (const connection of [...connections]) connection.close();
      await Promise.all(running);
    },
  };
}
