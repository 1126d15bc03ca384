// Owns: that the meter's clients tell what befalls them by its right name: told to go, idle closed, reset, refused, unanswered, wrong.
// The servers are sockets with a script; real Envoys are in integration/meter_test.ts.
import assert from "node:assert/strict";
import { tcp, udp, webSocket } from "../../../bench/meter/clients/echo.ts";
import { keepAlive, newEachTime } from "../../../bench/meter/clients/http1.ts";
import { requests } from "../../../bench/meter/clients/http2.ts";
import { upload } from "../../../bench/meter/clients/streams.ts";
import type { Desk } from "../../../bench/meter/held.ts";
import { type Counts, Tally } from "../../../bench/meter/tally.ts";
import { freePort } from "../../support/ports.ts";
import { until } from "../../support/until.ts";

const encoder = new TextEncoder();
const OK = encoder.encode("HTTP/1.1 200 OK\r\ncontent-length: 3\r\n\r\nok\n");
const OK_AND_GO = encoder.encode("HTTP/1.1 200 OK\r\ncontent-length: 3\r\nconnection: close\r\n\r\nok\n");

/** What the server does to the connection of this number (from 0), once it has read something. */
type Script = (conn: Deno.Conn, connection: number, reads: number) => Promise<unknown> | void;

async function meet(
  client: (desk: Desk) => Promise<void>,
  script: Script | undefined,
  enough: (tally: Tally) => boolean,
): Promise<Counts> {
  const port = freePort();
  const listener = script === undefined ? undefined : Deno.listen({ hostname: "127.0.0.1", port });
  const open: Promise<void>[] = [];
  const serve = async (conn: Deno.Conn, connection: number) => {
    const bytes = new Uint8Array(4_096);
    try {
      for (let reads = 0;; reads++) {
        if (await conn.read(bytes) === null) break;
        await script?.(conn, connection, reads);
      }
    } catch { /* closed by the script */ }
    try {
      conn.close();
    } catch { /* closed by the script */ }
  };
  const accepting = (async () => {
    let connections = 0;
    if (listener !== undefined) { for await (const conn of listener) open.push(serve(conn, connections++)); }
  })();
  const over = new AbortController();
  const tally = new Tally();
  const site = {
    hostname: "127.0.0.1",
    http: port,
    tls: port,
    quic: port,
    tcp: port,
    udp: port,
    authority: "",
    authorityPath: "",
  };
  const phase = { leaving: false, over: over.signal };
  const running = client({ site, tally, phase, everyMs: 5, sessionMs: 200 });
  try {
    await until("enough was met", () => enough(tally), { everyMs: 5 });
  } finally {
    over.abort();
    // Not before: what is under way would be reset by the listener's end.
    await running;
    listener?.close();
    await accepting;
    await Promise.all(open);
  }
  return tally.counts();
}

const write = (conn: Deno.Conn, bytes: Uint8Array) => conn.write(bytes);
const kindsOf = (counts: Counts) => [...new Set(counts.losses.map(({ kind }) => kind))];
const hasLoss = (tally: Tally) => tally.counts().losses.length > 0;
const answered = (count: number) => (tally: Tally) => tally.counts().answered >= count;

Deno.test("HTTP/1.1 client + connection: close is told to go, and nothing is lost", async () => {
  const counts = await meet(keepAlive, (conn) => write(conn, OK_AND_GO), answered(5));
  assert.deepEqual(counts.losses, []);
  assert.ok(counts.toldToGo >= 4 && counts.idleClosed === 0, JSON.stringify(counts));
});

Deno.test("HTTP/1.1 client + an idle connection that ends without a word is counted apart, and nothing is lost", async () => {
  const script: Script = async (conn) => {
    await write(conn, OK);
    conn.close();
  };
  const counts = await meet(keepAlive, script, (tally) => tally.counts().idleClosed >= 3);
  assert.deepEqual([counts.losses, counts.toldToGo], [[], 0]);
});

Deno.test("HTTP/1.1 client + a connection that ends before the answer is a reset", async () => {
  assert.deepEqual(kindsOf(await meet(keepAlive, (conn) => conn.close(), hasLoss)), ["reset"]);
});

Deno.test("HTTP/1.1 client + a 503 and a body of something else are wrong answers", async () => {
  const bad = "HTTP/1.1 503 Service Unavailable\r\ncontent-length: 3\r\n\r\nno\n";
  const other = "HTTP/1.1 200 OK\r\ncontent-length: 3\r\n\r\nno\n";
  for (const text of [bad, other]) {
    assert.deepEqual(kindsOf(await meet(keepAlive, (conn) => write(conn, encoder.encode(text)), hasLoss)), ["wrong"]);
  }
});

for (const [name, client] of Object.entries({ keepAlive, newEachTime, requests, tcp, webSocket, upload })) {
  Deno.test(`client ${name} + a port where nobody listens is refused`, async () => {
    const counts = await meet(client, undefined, hasLoss);
    assert.deepEqual([kindsOf(counts), counts.answered], [["refused"], 0]);
  });
}

for (const [name, client] of Object.entries({ requests, tcp, webSocket, upload })) {
  Deno.test(`client ${name} + a connection that ends in the middle is a reset`, async () => {
    assert.deepEqual(kindsOf(await meet(client, (conn) => conn.close(), hasLoss)), ["reset"]);
  });
}

Deno.test("UDP client + a datagram that nobody answers is unanswered", async () => {
  assert.deepEqual(kindsOf(await meet(udp, undefined, hasLoss)), ["unanswered"]);
});

Deno.test("TCP client + an echo of something else is a wrong answer", async () => {
  const counts = await meet(tcp, (conn) => write(conn, encoder.encode("x\n")), hasLoss);
  assert.deepEqual(kindsOf(counts), ["wrong"]);
});

const frame = (type: number, flags: number, id: number, ...payload: number[]) =>
  Uint8Array.of(0, 0, payload.length, type, flags, 0, 0, 0, id, ...payload);
const SETTINGS = frame(4, 0, 0);
const headers = (id: number) => frame(1, 4, id, 0x20, 0x88);
const body = (id: number) => frame(0, 1, id, ...encoder.encode("ok\n"));
const goAway = (lastId: number) => frame(7, 0, 0, 0, 0, 0, lastId, 0, 0, 0, 0);
/** What answers the first question of a connection, and takes no second one. */
const ONE_ANSWER = [...headers(1), ...body(1), ...goAway(1)];

Deno.test("HTTP/2 client + a GOAWAY after the answer is told to go, and nothing is lost", async () => {
  const counts = await meet(requests, async (conn, _, reads) => {
    if (reads > 0) return;
    await write(conn, Uint8Array.of(...SETTINGS, ...ONE_ANSWER));
  }, answered(4));
  assert.deepEqual(counts.losses, []);
  assert.ok(counts.toldToGo >= 3, JSON.stringify(counts));
});

Deno.test("HTTP/2 client + a GOAWAY that says nobody has looked at the request is told to go, and the request is asked again", async () => {
  const counts = await meet(requests, async (conn, connection, reads) => {
    if (reads > 0) return;
    const answer = connection === 0 ? goAway(0) : ONE_ANSWER;
    await write(conn, Uint8Array.of(...SETTINGS, ...answer));
  }, answered(1));
  assert.deepEqual([counts.losses, counts.sent], [[], counts.answered]);
  assert.ok(counts.toldToGo >= 1, JSON.stringify(counts));
});

Deno.test("HTTP/2 client + a refused stream is told to go, any other reset of a stream is a reset", async () => {
  const reset = (code: number): Script => async (conn, connection, reads) => {
    if (reads > 0) return;
    const answer = connection === 0 ? frame(3, 0, 1, 0, 0, 0, code) : ONE_ANSWER;
    await write(conn, Uint8Array.of(...SETTINGS, ...answer));
  };
  const refused = await meet(requests, reset(7), answered(1));
  assert.deepEqual([refused.losses, refused.sent], [[], refused.answered]);
  assert.ok(refused.toldToGo >= 1, JSON.stringify(refused));
  assert.deepEqual(kindsOf(await meet(requests, reset(2), hasLoss)), ["reset"]);
});

Deno.test("HTTP/2 client + a status that is not 200 is a wrong answer", async () => {
  const notFound = frame(1, 5, 1, 0x8d);
  const counts = await meet(requests, async (conn, _, reads) => {
    if (reads === 0) await write(conn, Uint8Array.of(...SETTINGS, ...notFound));
  }, hasLoss);
  assert.deepEqual(kindsOf(counts), ["wrong"]);
});
