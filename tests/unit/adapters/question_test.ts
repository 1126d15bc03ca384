import { deepStrictEqual, match, strictEqual } from "node:assert/strict";
import { ask, parseReply, type Question, type Reply, showAddress } from "../../../lib/adapters/question.ts";
import type { AdminAddress } from "../../../lib/core/epoch.ts";
import { freePort } from "../../support/ports.ts";
import { tempDir } from "../../support/tempdir.ts";
import { until, within } from "../../support/until.ts";

const get: Question = { method: "GET", target: "/x?a=1", timeoutMs: 2000, maxBytes: 100_000 };
const encode = (text: string) => new TextEncoder().encode(text);

interface Server extends AsyncDisposable {
  readonly address: AdminAddress;
  readonly requests: string[];
}

/** Answers each connection's first bytes with these bytes and closes, or does what `act` does. */
function serve(act: string | ((connection: Deno.Conn) => Promise<void>)): Server {
  const listener = Deno.listen({ hostname: "127.0.0.1", port: 0 });
  const requests: string[] = [];
  const open: Deno.Conn[] = [];
  const handle = async (connection: Deno.Conn) => {
    open.push(connection);
    try {
      const buffer = new Uint8Array(4096);
      const count = await connection.read(buffer);
      requests.push(new TextDecoder().decode(buffer.subarray(0, count ?? 0)));
      if (typeof act !== "string") return await act(connection);
      await connection.write(encode(act));
      connection.close();
    } catch { /* the asker went away */ }
  };
  const handled: Promise<void>[] = [];
  const accepting = (async () => {
    for await (const connection of listener) handled.push(handle(connection));
  })();
  return {
    address: { kind: "tcp", host: "127.0.0.1", port: listener.addr.port },
    requests,
    async [Symbol.asyncDispose]() {
      listener.close();
      for (const connection of open) {
        try {
          connection.close();
        } catch { /* closed already */ }
      }
      await accepting;
      await Promise.all(handled);
    },
  };
}

const summary = (reply: Reply) => reply.kind === "reply" ? `${reply.status} ${reply.body}` : reply.why;

Deno.test("ask: sends one request that asks to close, and takes a plain and a chunked answer", async () => {
  await using plain = serve("HTTP/1.1 200 OK\r\ncontent-length: 3\r\n\r\nok\n");
  strictEqual(summary(await ask(plain.address, get)), "200 ok\n");
  match(plain.requests[0] ?? "", /^GET \/x\?a=1 HTTP\/1\.1\r\nhost: 127\.0\.0\.1:\d+\r\nconnection: close\r\n/);
  await using chunked = serve(
    "HTTP/1.1 503 No\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\nA;x=y\r\n0123456789\r\n0\r\n\r\n",
  );
  strictEqual(summary(await ask(chunked.address, { ...get, method: "POST" })), "503 abc0123456789");
  match(chunked.requests[0] ?? "", /^POST .*content-length: 0\r\n/s);
});

Deno.test("ask: opens a connection of its own each time", async () => {
  const peers = new Set<number>();
  await using server = serve(async (connection) => {
    peers.add((connection.remoteAddr as Deno.NetAddr).port);
    await connection.write(encode("HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n"));
    connection.close();
  });
  for (let i = 0; i < 3; i++) await ask(server.address, get);
  strictEqual(peers.size, 3);
});

Deno.test("ask: does not obey HTTP_PROXY", async () => {
  await using server = serve("HTTP/1.1 200 OK\r\ncontent-length: 1\r\n\r\na");
  const before = Deno.env.get("HTTP_PROXY");
  Deno.env.set("HTTP_PROXY", `http://127.0.0.1:${freePort()}`);
  try {
    strictEqual(summary(await ask(server.address, get)), "200 a");
  } finally {
    if (before === undefined) Deno.env.delete("HTTP_PROXY");
    else Deno.env.set("HTTP_PROXY", before);
  }
});

Deno.test("ask: over a unix socket, also when its file is stale or missing", async () => {
  await using dir = tempDir();
  const address = { kind: "unix", path: dir.at("admin.sock") } as const;
  strictEqual(summary(await ask(address, get)), "refused");
  const listener = Deno.listen({ transport: "unix", path: address.path });
  const serving = (async () => {
    using connection = await listener.accept();
    await connection.read(new Uint8Array(4096));
    await connection.write(encode("HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\nunix"));
  })();
  strictEqual(summary(await ask(address, get)), "200 unix");
  await serving;
  const stale = dir.at("stale.sock");
  Deno.renameSync(address.path, stale);
  listener.close();
  strictEqual(summary(await ask({ kind: "unix", path: stale }, get)), "refused");
});

Deno.test("ask: nobody listens is refused", async () => {
  const reply = await ask({ kind: "tcp", host: "127.0.0.1", port: freePort() }, get);
  strictEqual(summary(reply), "refused");
  if (reply.kind === "none") match(reply.detail, /^GET \/x\?a=1 of 127\.0\.0\.1:\d+: connection refused$/);
});

Deno.test("ask: a listener that never accepts is a timeout, within its bound", async () => {
  using listener = Deno.listen({ hostname: "127.0.0.1", port: 0 });
  const address = { kind: "tcp", host: "127.0.0.1", port: listener.addr.port } as const;
  const reply = await within("the timeout", ask(address, { ...get, timeoutMs: 60 }));
  strictEqual(summary(reply), "timeout");
  if (reply.kind === "none") match(reply.detail, /no answer within 60 ms/);
});

Deno.test("ask: an answer that stops half-way is a timeout", async () => {
  await using server = serve(async (connection) => {
    await connection.write(encode("HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nabc"));
  });
  strictEqual(summary(await ask(server.address, { ...get, timeoutMs: 80 })), "timeout");
});

Deno.test("ask: a listener that closes what waits in its backlog is refused", async () => {
  const listener = Deno.listen({ hostname: "127.0.0.1", port: 0 });
  const asked = ask({ kind: "tcp", host: "127.0.0.1", port: listener.addr.port }, get);
  // The kernel has completed the connection; nobody accepts it.
  await new Promise((resolve) => setTimeout(resolve, 50));
  listener.close();
  strictEqual(summary(await asked), "refused");
});

Deno.test("ask: nonsense, half an answer, nothing and too much are garbage", async () => {
  const cases: readonly (readonly [string, RegExp])[] = [
    ["SSH-2.0-x\r\n", /no HTTP answer but "SSH-2\.0-x/],
    ["", /closed without an answer/],
    ["HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nabc", /3 of 10 bytes/],
    ["HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\nab", /cut in a chunk/],
    ["HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\nabcde\r\n", /cut in a chunk/],
    [`HTTP/1.1 200 OK\r\n\r\n${"x".repeat(200_000)}`, /more than 100000 bytes/],
  ];
  for (const [answer, detail] of cases) {
    await using server = serve(answer);
    const reply = await ask(server.address, get);
    strictEqual(summary(reply), "garbage", answer.slice(0, 60));
    if (reply.kind === "none") match(reply.detail, detail);
  }
});

Deno.test("ask: never leaves a socket open", async () => {
  const sockets = () =>
    [...Deno.readDirSync("/proc/self/fd")].filter(({ name }) => {
      try {
        return Deno.readLinkSync(`/proc/self/fd/${name}`).startsWith("socket:");
      } catch {
        return false;
      }
    }).length;
  using listener = Deno.listen({ hostname: "127.0.0.1", port: 0 });
  const silent = { kind: "tcp", host: "127.0.0.1", port: listener.addr.port } as const;
  const before = sockets();
  await Promise.all(Array.from({ length: 20 }, () => ask(silent, { ...get, timeoutMs: 50 })));
  await ask({ kind: "tcp", host: "127.0.0.1", port: freePort() }, get);
  strictEqual(sockets(), before);
});

Deno.test("ask: a connection that comes after its time is closed", async () => {
  await using server = serve("HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n");
  const connect = Deno.connect;
  const late: Promise<Deno.Conn>[] = [];
  // The kernel's own delays (a full backlog) take seconds.
  Deno.connect = ((options: Deno.ConnectOptions) => {
    const slow = new Promise((resolve) => setTimeout(resolve, 80)).then(() => connect(options));
    late.push(slow);
    return slow;
  }) as typeof Deno.connect;
  try {
    strictEqual(summary(await ask(server.address, { ...get, timeoutMs: 20 })), "timeout");
    const connection = await late[0];
    await until("it is closed", () => connection?.write(new Uint8Array(1)).then(() => false, () => true));
    strictEqual(server.requests.join(""), "");
  } finally {
    Deno.connect = connect;
  }
});

Deno.test("parseReply: an answer without a length ends with its connection", () => {
  deepStrictEqual(parseReply(encode("HTTP/1.0 200\r\n\r\nall of it")), {
    kind: "reply",
    status: 200,
    body: "all of it",
  });
});

Deno.test("showAddress: as people write it", () => {
  strictEqual(showAddress({ kind: "tcp", host: "::1", port: 9 }), "[::1]:9");
  strictEqual(showAddress({ kind: "tcp", host: "10.0.0.1", port: 9 }), "10.0.0.1:9");
  strictEqual(showAddress({ kind: "unix", path: "/a" }), "unix:/a");
});
