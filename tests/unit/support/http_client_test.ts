import assert from "node:assert/strict";
import { fetchOnce, HttpConnection, HttpFailure } from "../../support/http_client.ts";
import { freePort } from "../../support/ports.ts";
import { tempDir } from "../../support/tempdir.ts";
import { until } from "../../support/until.ts";
import { startUpstream } from "../../support/upstream.ts";

/** A server that treats each connection as told, after it has read the request. */
function rawServer(treat: (conn: Deno.TcpConn) => Promise<void> | void) {
  const port = freePort();
  const listener = Deno.listen({ hostname: "127.0.0.1", port });
  const done = (async () => {
    for await (const conn of listener) {
      await conn.read(new Uint8Array(4096));
      await treat(conn);
      try {
        conn.close();
      } catch { /* closed as told */ }
    }
  })();
  return {
    port,
    async [Symbol.asyncDispose]() {
      listener.close();
      await done;
    },
  };
}

const send = (text: string) => async (conn: Deno.TcpConn) => void await conn.write(new TextEncoder().encode(text));
const failsAs = (kind: string) => (error: unknown) => error instanceof HttpFailure && error.kind === kind;

Deno.test("refused: nobody listens, on TCP and on a unix socket", async () => {
  await using scratch = tempDir();
  await assert.rejects(fetchOnce({ port: freePort() }, { path: "/" }), failsAs("refused"));
  await assert.rejects(fetchOnce({ path: scratch.at("none.sock") }, { path: "/" }), failsAs("refused"));
});

Deno.test("closed_early: before the answer, in its head, in its body, in a chunk", async () => {
  const answers = ["", "HTTP/1.1 200 O", "HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nhalf"];
  answers.push("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\nab");
  for (const answer of answers) {
    await using server = rawServer(send(answer));
    await assert.rejects(fetchOnce(server, { path: "/" }), failsAs("closed_early"), JSON.stringify(answer));
  }
});

Deno.test("reset: the server resets after it has read the request", async () => {
  // Deno cannot set SO_LINGER; a close without it says goodbye properly first.
  const program = `
import socket, struct
server = socket.create_server(("127.0.0.1", 0))
print(server.getsockname()[1], flush=True)
conn, _ = server.accept()
conn.recv(4096)
conn.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
conn.close()`;
  const server = new Deno.Command("python3", { args: ["-I", "-c", program], stdout: "piped" }).spawn();
  const lines = server.stdout.pipeThrough(new TextDecoderStream()).values();
  const { value: port } = await lines.next();
  await assert.rejects(fetchOnce({ port: Number(port) }, { path: "/" }), failsAs("reset"));
  await server.status;
  await lines.return?.();
});

Deno.test("timeout: no answer, and a body that stalls", async () => {
  const port = freePort();
  using listener = Deno.listen({ hostname: "127.0.0.1", port });
  await assert.rejects(fetchOnce({ port }, { path: "/", timeoutMs: 30 }), failsAs("timeout"));
  (await listener.accept()).close();
  let release = () => {};
  const released = new Promise<void>((resolve) => release = resolve);
  await using server = rawServer(async (conn) => {
    await send("HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nhalf")(conn);
    await released;
  });
  const stalled = fetchOnce(server, { path: "/", onPiece: () => {}, stallMs: 30 });
  await assert.rejects(stalled, failsAs("timeout"));
  release();
});

Deno.test("malformed: no HTTP at all, a bad chunk size", async () => {
  for (const answer of ["SSH-2.0-x\r\n\r\n", "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n"]) {
    await using server = rawServer(send(answer));
    await assert.rejects(fetchOnce(server, { path: "/" }), failsAs("malformed"));
  }
});

Deno.test("complete answers: by length, chunked with trailers of none, to the end, informational first", async () => {
  const answers = [
    "HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhello",
    "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\nhe\r\n3\r\nllo\r\n0\r\n\r\n",
    "HTTP/1.0 200 OK\r\n\r\nhello",
    "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhello",
  ];
  for (const answer of answers) {
    await using server = rawServer(async (conn) => {
      for (const byte of answer) await send(byte)(conn);
    });
    const response = await fetchOnce(server, { path: "/" });
    assert.deepEqual([response.status, response.body], [200, "hello"]);
  }
});

Deno.test("keep-alive: reused, not after connection: close, not after an idle close", async () => {
  await using upstream = startUpstream(freePort());
  using kept = await HttpConnection.open(upstream);
  for (let i = 0; i < 3; i++) assert.equal((await kept.request({ path: "/" })).body, "ok\n");
  assert.equal(kept.reusable, true);
  await kept.request({ path: "/", headers: { connection: "close" } });
  assert.equal(kept.reusable, false);

  await using server = rawServer(send("HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n"));
  using idle = await HttpConnection.open(server);
  await idle.request({ path: "/" });
  await until("the idle close is noticed", () => !idle.reusable);
});

Deno.test("a slow upload is sent chunk by chunk and counted", async () => {
  await using upstream = startUpstream(freePort());
  const pieces = ReadableStream.from(["one", "two", "three"].map((text) => new TextEncoder().encode(text)));
  const response = await fetchOnce(upstream, { method: "POST", path: "/upload", body: pieces });
  assert.equal(response.body, "11\n");
  assert.equal(upstream.uploadedBytes, 11);
});
