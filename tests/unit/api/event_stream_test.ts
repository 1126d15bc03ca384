import assert from "node:assert/strict";
import { connectTo, type EventStream } from "../../../lib/api/client.ts";
import { eventStream, resumeAfter } from "../../../lib/api/event_stream.ts";
import type { Fact } from "../../../lib/core/fact.ts";
import { until, within } from "../../support/until.ts";
import { FakeControl } from "./fake_control.ts";
import { request, sendRaw, serve } from "./serving.ts";

const back: Fact = { kind: "marker_back" };

async function subscribe(path: string, afterSeq?: number): Promise<EventStream> {
  const answer = await connectTo(path).events(afterSeq === undefined ? {} : { afterSeq });
  return answer.kind === "ok" ? answer.value : assert.fail(JSON.stringify(answer));
}

async function take(stream: EventStream, count: number): Promise<readonly number[]> {
  const seqs: number[] = [];
  const collect = async () => {
    for await (const { seq } of stream.records) if (seqs.push(seq) === count) break;
  };
  await within(`${count} records`, collect());
  stream.close();
  return seqs;
}

Deno.test("event stream brings what happens from now on, to every reader", async () => {
  await using api = await serve();
  api.control.happen(back);
  const streams = [await subscribe(api.path), await subscribe(api.path)];
  for (let n = 0; n < 3; n++) api.control.happen(back);
  for (const stream of streams) assert.deepEqual(await take(stream, 3), [2, 3, 4]);
  await until("nobody is subscribed", () => api.control.observers === 0);
});

Deno.test("event stream resumes after Last-Event-ID without a gap or a double", async () => {
  await using api = await serve();
  for (let n = 0; n < 5; n++) api.control.happen(back);
  const stream = await subscribe(api.path, 2);
  api.control.happen(back);
  assert.deepEqual(await take(stream, 4), [3, 4, 5, 6]);
});

Deno.test("event stream gives all it holds to a reader that knew an earlier supervisor", () => {
  const control = new FakeControl();
  control.happen(back);
  control.happen(back);
  assert.equal(resumeAfter("900", control), 0);
  assert.equal(resumeAfter("2", control), 2);
  assert.equal(resumeAfter("1", control), 1);
  assert.equal(resumeAfter(null, control), undefined);
  for (const nonsense of ["", "-1", "1.5", "abc", "9".repeat(30)]) {
    assert.equal(resumeAfter(nonsense, control), undefined);
  }
});

Deno.test("event stream says that it is alive while nothing happens", async () => {
  await using api = await serve({ heartbeatMs: 10 });
  const connection = await Deno.connect({ transport: "unix", path: api.path });
  await connection.write(new TextEncoder().encode("GET /v1/events HTTP/1.1\r\n\r\n"));
  const decoder = new TextDecoder();
  const buffer = new Uint8Array(4_096);
  let text = "";
  await until("three heartbeats", async () => {
    text += decoder.decode(buffer.subarray(0, await connection.read(buffer) ?? 0));
    return text.split(": alive\n\n").length > 3;
  });
  connection.close();
  assert.match(text, /^HTTP\/1\.1 200 /);
  assert.match(text, /content-type: text\/event-stream/);
});

Deno.test("event stream cuts off a reader that does not read, and the supervisor never waits for it", async () => {
  const control = new FakeControl();
  const gone = new AbortController();
  const options = { heartbeatMs: 60_000, backlogEvents: 10, signal: gone.signal };
  const stream = eventStream(control, options);
  for (let n = 0; n < 100; n++) control.happen(back);
  assert.equal(control.observers, 0);
  const text = await new Response(stream).text();
  assert.equal(text.split("\n\n").length - 1, 10);
  gone.abort();
});

Deno.test("event stream ends with its client", async () => {
  await using api = await serve();
  const connection = await Deno.connect({ transport: "unix", path: api.path });
  await connection.write(new TextEncoder().encode("GET /v1/events HTTP/1.1\r\n\r\n"));
  await until("it is subscribed", () => api.control.observers === 1);
  connection.close();
  await until("it is not subscribed any more", () => api.control.observers === 0);
});

Deno.test("event stream refuses more readers than its limit, and takes new ones when some have gone", async () => {
  await using api = await serve({ eventStreams: 1 });
  const first = await subscribe(api.path);
  const { status, body } = await request(api.path, "GET", "/v1/events");
  assert.equal(status, 503);
  assert.match(body, /too_many_streams/);
  const refused = await connectTo(api.path).events();
  assert.equal(refused.kind, "problem");
  first.close();
  await until("there is room", () => api.control.observers === 0);
  (await subscribe(api.path)).close();
});

Deno.test("event stream does not leak a subscription for HEAD", async () => {
  await using api = await serve();
  await sendRaw(api.path, "HEAD /v1/events HTTP/1.1\r\n\r\n");
  await until("nobody is subscribed", () => api.control.observers === 0);
});
