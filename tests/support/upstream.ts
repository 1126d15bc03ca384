// Owns: the HTTP server behind Envoy in tests, in the process of the test. Must not know about Envoy.
import { pause } from "./until.ts";

export interface Upstream extends AsyncDisposable {
  readonly port: number;
  /** Requests begun, whatever became of them. */
  readonly requests: number;
  readonly uploadedBytes: number;
  readonly openStreams: number;
}

/**
 * `/` a short body; `/stream?chunks=100&everyMs=50` lines "chunk 0", "chunk 1", ...; `/slow?ms=500`; `/upload` answers
 * with the number of bytes it got; `/status?code=503`; `/ws` echoes websocket messages.
 */
export function startUpstream(port: number, hostname = "127.0.0.1"): Upstream {
  const streams = new Set<() => void>();
  const counts = { requests: 0, uploadedBytes: 0 };
  const server = Deno.serve({ hostname, port, onListen: () => {} }, (request) => {
    counts.requests++;
    const url = new URL(request.url);
    const number = (name: string, otherwise: number) => Number(url.searchParams.get(name) ?? otherwise);
    switch (url.pathname) {
      case "/stream":
        return new Response(chunkStream(number("chunks", 100), number("everyMs", 50), streams));
      case "/slow":
        return pause(number("ms", 500)).then(() => new Response("slow\n"));
      case "/upload":
        return countUpload(request, (bytes) => counts.uploadedBytes += bytes);
      case "/status":
        return new Response("as asked\n", { status: number("code", 200) });
      case "/ws":
        return echoWebSocket(request, streams);
      default:
        return new Response("ok\n");
    }
  });
  return {
    port,
    get requests() {
      return counts.requests;
    },
    get uploadedBytes() {
      return counts.uploadedBytes;
    },
    get openStreams() {
      return streams.size;
    },
    async [Symbol.asyncDispose]() {
      for (const end of streams) end();
      await server.shutdown();
    },
  };
}

export function chunkLine(index: number): string {
  return `chunk ${index}\n`;
}

function chunkStream(chunks: number, everyMs: number, streams: Set<() => void>): ReadableStream<Uint8Array> {
  const encoder = new TextEncoder();
  let sent = 0;
  let timer: ReturnType<typeof setTimeout> | undefined;
  let end = () => {};
  return new ReadableStream({
    start(controller) {
      const send = () => {
        try {
          controller.enqueue(encoder.encode(chunkLine(sent++)));
        } catch {
          // The client has gone; the server knows it before it tells this stream.
          return finish(() => {});
        }
        if (sent >= chunks) end();
      };
      const finish = (how: () => void) => {
        clearInterval(timer);
        streams.delete(end);
        how();
      };
      // A proper end, only too early: an error would fill the test's output, and clients count the chunks anyway.
      end = () => {
        finish(() => {
          try {
            controller.close();
          } catch { /* the client has gone */ }
        });
      };
      streams.add(end);
      timer = setInterval(send, everyMs);
      send();
    },
    cancel() {
      clearInterval(timer);
      streams.delete(end);
    },
  });
}

async function countUpload(request: Request, add: (bytes: number) => void): Promise<Response> {
  let total = 0;
  try {
    for await (const piece of request.body ?? []) {
      total += piece.length;
      add(piece.length);
    }
  } catch {
    // The client has gone in the middle: nobody reads this, and Deno would write its stack to the test's output.
    return new Response("incomplete\n", { status: 400 });
  }
  return new Response(`${total}\n`);
}

function echoWebSocket(request: Request, streams: Set<() => void>): Response {
  if (request.headers.get("upgrade")?.toLowerCase() !== "websocket") {
    return new Response("a websocket, please\n", { status: 426 });
  }
  const { socket, response } = Deno.upgradeWebSocket(request);
  const end = () => socket.close();
  streams.add(end);
  socket.onmessage = (message) => socket.send(message.data);
  socket.onclose = () => streams.delete(end);
  return response;
}
