import assert from "node:assert/strict";
import { holdStream } from "../../support/held_stream.ts";
import { LatencyHistogram } from "../../support/latency.ts";
import { freePort } from "../../support/ports.ts";
import { startTraffic } from "../../support/traffic.ts";
import { until } from "../../support/until.ts";
import { startUpstream } from "../../support/upstream.ts";

Deno.test("traffic against a healthy server: nothing failed, streams whole, the rate is kept", async () => {
  await using upstream = startUpstream(freePort());
  await using traffic = startTraffic({
    port: upstream.port,
    requestsPerSecond: 200,
    heldStreams: 1,
    stream: { chunks: 5, everyMs: 10 },
  });
  const extra = traffic.hold({ chunks: 1_000, everyMs: 10 });
  await extra.opened;
  await until("100 requests", () => traffic.snapshot().requests >= 100);
  const report = await traffic.stop();
  assert.equal(report.failed, 0);
  assert.deepEqual(report.failures, []);
  assert.equal(report.streamsBroken, 0);
  assert.ok(report.streamsComplete >= 1 && report.streamsAbandoned >= 1, JSON.stringify(report));
  assert.ok(report.requests / report.durationMs * 1000 < 260, `${report.requests} in ${report.durationMs} ms`);
  assert.ok(report.latency.p50Ms > 0 && report.latency.p50Ms <= report.latency.p99Ms);
  assert.ok(report.latency.p999Ms <= report.latency.maxMs);
  assert.equal((await extra.outcome).kind, "abandoned");
  assert.deepEqual(await traffic.stop(), report);
});

Deno.test("traffic counts what fails: a dead port, a bad status, a broken stream", async () => {
  await using dead = startTraffic({ port: freePort() });
  await until("20 failures", () => dead.snapshot().failed >= 25);
  const refused = await dead.stop();
  assert.deepEqual(Object.keys(refused.failuresByKind), ["refused"]);
  assert.equal(refused.requests, refused.failed);
  assert.equal(refused.failures.length, 20);
  assert.equal(refused.longestGapMs, refused.durationMs);

  const upstream = startUpstream(freePort());
  await using traffic = startTraffic({ port: upstream.port, path: "/status?code=503" });
  const stream = traffic.hold({ chunks: 1_000, everyMs: 10 });
  await stream.opened;
  await until("a failure", () => traffic.snapshot().failed >= 1);
  await upstream[Symbol.asyncDispose]();
  assert.equal((await stream.outcome).kind, "broken");
  const report = await traffic.stop();
  assert.equal(report.streamsBroken, 1);
  assert.ok((report.failuresByKind.bad_status ?? 0) >= 1);
});

Deno.test("a stream that stalls is broken", async () => {
  await using upstream = startUpstream(freePort());
  // The first chunk comes at once and the second after a minute; the client is made to expect it after 30 ms.
  const stalled = holdStream({ target: upstream, chunks: 2, everyMs: 60_000, stallMs: -59_970 });
  const outcome = await stalled.outcome;
  assert.equal(outcome.kind, "broken");
  assert.match(JSON.stringify(outcome), /timeout: body paused for 30 ms; 1 of 2 chunks/);
});

Deno.test("keep-alive clients follow connection: close without a failure", async () => {
  const port = freePort();
  // A server that announces the end of each connection after its third answer.
  const server = Deno.listen({ hostname: "127.0.0.1", port });
  const serve = async (conn: Deno.Conn) => {
    const bytes = new Uint8Array(4096);
    for (let answers = 1; await conn.read(bytes) !== null; answers++) {
      const close = answers === 3 ? "connection: close\r\n" : "";
      await conn.write(new TextEncoder().encode(`HTTP/1.1 200 OK\r\ncontent-length: 0\r\n${close}\r\n`));
      if (answers === 3) break;
    }
    conn.close();
  };
  const served: Promise<void>[] = [];
  const accepting = (async () => {
    for await (const conn of server) served.push(serve(conn));
  })();
  await using traffic = startTraffic({ port, newConnectionClients: 0, keepAliveClients: 2 });
  await until("10 reconnects", () => traffic.snapshot().reconnects >= 10);
  const report = await traffic.stop();
  assert.deepEqual([report.failed, report.idleCloses], [0, 0]);
  server.close();
  await accepting;
  await Promise.all(served);
});

Deno.test("percentiles are right within five percent", () => {
  const histogram = new LatencyHistogram();
  for (let ms = 1; ms <= 1000; ms++) histogram.add(ms);
  const { p50Ms, p90Ms, p99Ms, maxMs } = histogram.summary();
  assert.ok(p50Ms >= 500 && p50Ms <= 525, String(p50Ms));
  assert.ok(p90Ms >= 900 && p90Ms <= 945, String(p90Ms));
  assert.ok(p99Ms >= 990 && p99Ms <= 1000, String(p99Ms));
  assert.equal(maxMs, 1000);
  assert.equal(new LatencyHistogram().summary().p99Ms, 0);
});
