// Owns: what is behind Envoy and is no HTTP/1.1 server: streaming gRPC calls, and echoes of TCP and UDP. Must not: know about Envoy.
import dgram from "node:dgram";
import http2 from "node:http2";
import { frame, Frames, message, text, textFields } from "../../tests/support/xds_wire.ts";

/** A call names how many messages it wants (field 1), and how many milliseconds apart (field 2). */
export async function startGrpcUpstream(port: number): Promise<AsyncDisposable> {
  const server = http2.createServer();
  const sessions = new Set<http2.ServerHttp2Session>();
  const timers = new Set<ReturnType<typeof setInterval>>();
  server.on("session", (session) => {
    sessions.add(session);
    session.on("error", () => {});
    session.on("close", () => sessions.delete(session));
  });
  server.on("stream", (stream) => {
    const frames = new Frames();
    stream.on("error", () => {});
    stream.on("data", (bytes: Uint8Array) => {
      for (const request of frames.take(bytes)) {
        const fields = textFields(request);
        const [count, everyMs] = [Number(text(fields.get(1)?.[0])), Number(text(fields.get(2)?.[0]))];
        stream.respond({ ":status": 200, "content-type": "application/grpc" }, { waitForTrailers: true });
        stream.on("wantTrailers", () => stream.sendTrailers({ "grpc-status": "0" }));
        let sent = 0;
        const end = () => {
          clearInterval(timer);
          timers.delete(timer);
        };
        const send = () => {
          stream.write(frame(message({ 1: String(sent++) })));
          if (sent < count) return;
          end();
          stream.end();
        };
        const timer = setInterval(send, everyMs);
        timers.add(timer);
        stream.on("close", end);
        send();
      }
    });
  });
  await new Promise<void>((resolve, reject) => {
    server.once("error", reject);
    server.listen(port, "127.0.0.1", () => resolve());
  });
  return {
    async [Symbol.asyncDispose]() {
      for (const timer of timers) clearInterval(timer);
      const closed = new Promise<void>((resolve) => server.close(() => resolve()));
      for (const session of sessions) session.destroy();
      await closed;
    },
  };
}

export function startTcpEcho(port: number): AsyncDisposable {
  const listener = Deno.listen({ hostname: "127.0.0.1", port });
  const open = new Set<Deno.Conn>();
  const serve = async (conn: Deno.Conn) => {
    open.add(conn);
    try {
      const bytes = new Uint8Array(4_096);
      for (let count = await conn.read(bytes); count !== null; count = await conn.read(bytes)) {
        for (let sent = 0; sent < count;) sent += await conn.write(bytes.subarray(sent, count));
      }
    } catch {
      /* a client that resets its connection is no business of an echo */
    } finally {
      if (open.delete(conn)) conn.close();
    }
  };
  const accepting = (async () => {
    for await (const conn of listener) void serve(conn);
  })();
  return {
    async [Symbol.asyncDispose]() {
      listener.close();
      await accepting;
      for (const conn of [...open]) if (open.delete(conn)) conn.close();
    },
  };
}

export async function startUdpEcho(port: number): Promise<AsyncDisposable> {
  const socket = dgram.createSocket("udp4");
  socket.on("message", (data, { port, address }) => socket.send(data, port, address));
  await new Promise<void>((resolve, reject) => {
    socket.once("error", reject);
    socket.bind(port, "127.0.0.1", () => resolve());
  });
  return { [Symbol.asyncDispose]: () => new Promise((resolve) => socket.close(() => resolve())) };
}
