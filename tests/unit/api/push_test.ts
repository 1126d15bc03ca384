// Pushes over a real socket: the body as it comes, and what becomes of one that breaks.
import assert from "node:assert/strict";
import { serve, type Serving } from "./serving.ts";
import { until } from "../../support/until.ts";

const digest = "ab".repeat(32);
const path = "/v1/services/envoy/binary";

const bodyOf = (answer: string) => JSON.parse(answer.slice(answer.indexOf("\r\n\r\n") + 4));
const statusOf = (answer: string) => Number(/^HTTP\/1\.1 (\d+)/.exec(answer)?.[1]);

/** Writes all of it while it reads, and leaves once it has the answer, as clients do. */
async function sendRaw(socket: string, request: string): Promise<string> {
  const connection = await Deno.connect({ transport: "unix", path: socket });
  const bytes = new TextEncoder().encode(request);
  const write = async () => {
    for (let done = 0; done < bytes.length;) done += await connection.write(bytes.subarray(done));
  };
  const written = write().catch(() => {});
  let answer = "";
  const buffer = new Uint8Array(65_536);
  const isWhole = () => {
    const head = answer.lastIndexOf("\r\n\r\n");
    const length = /content-length: (\d+)/.exec(answer)?.[1];
    return length !== undefined && answer.length >= head + 4 + Number(length);
  };
  while (!isWhole()) {
    const count = await connection.read(buffer).catch(() => null);
    if (count === null) break;
    answer += new TextDecoder().decode(buffer.subarray(0, count));
  }
  connection.close();
  await written;
  return answer;
}

function put(query: string, head: readonly string[], body: string, version = "1.1"): string {
  return [`PUT ${path}${query} HTTP/${version}`, "host: x", ...head, "", body].join("\r\n");
}

function pushedText({ binaries }: Serving, at = -1): string {
  return new TextDecoder().decode(binaries.pushed.at(at)?.bytes);
}

Deno.test("push: a body of any length goes through, larger than other bodies may be, with what was said of it", async () => {
  await using api = await serve({ bodyBytes: 100 });
  const content = "x".repeat(1_000_000);
  const signature = btoa("untrusted comment: hello\n");
  const answer = await sendRaw(
    api.path,
    put(`?sha256=${digest}`, [`content-length: ${content.length}`, `epochd-signature: ${signature}`], content),
  );
  assert.equal(statusOf(answer), 202, answer);
  assert.deepEqual(bodyOf(answer), {
    service: "envoy",
    digest,
    version: "1.40.0",
    request: "r1",
    outcome: "accepted",
  });
  assert.equal(pushedText(api), content);
  const { upload } = api.binaries.pushed[0]!;
  assert.deepEqual([upload.sizeBytes, upload.sha256, upload.signature], [
    content.length,
    digest,
    "untrusted comment: hello\n",
  ]);
});

Deno.test("push: chunks, with extensions and a trailer, are the body", async () => {
  await using api = await serve();
  const answer = await sendRaw(
    api.path,
    put("", ["transfer-encoding: chunked"], "5\r\nhello\r\n1;a=b\r\n,\r\n6\r\n world\r\n0\r\nX-Sum: 1\r\n\r\n"),
  );
  assert.equal(statusOf(answer), 202, answer);
  assert.equal(pushedText(api), "hello, world");
  assert.equal(api.binaries.pushed[0]!.upload.sizeBytes, undefined);
});

Deno.test("push: what is no chunk breaks the body, and is told", async () => {
  await using api = await serve();
  const broken = [
    "hello\r\n",
    "5\r\nhello!\r\n0\r\n\r\n",
    "fffffffff\r\nhello\r\n",
    "-1\r\nhello\r\n",
    `${"a".repeat(5_000)}\r\n`,
    `0\r\n${"a: b\r\n".repeat(100)}\r\n`,
  ];
  for (const [at, body] of broken.entries()) {
    await sendRaw(api.path, put("", ["transfer-encoding: chunked"], body));
    await until("it is told", () => api.binaries.pushed.length === at + 1);
    assert.match(String(api.binaries.pushed[at]!.broken), /the client (sent|has gone)/, body.slice(0, 20));
  }
});

Deno.test("push: a client that goes in the middle breaks the body", async () => {
  await using api = await serve();
  const connection = await Deno.connect({ transport: "unix", path: api.path });
  await connection.write(new TextEncoder().encode(put("", ["content-length: 1000"], "hello")));
  connection.close();
  await until("it is told", () => api.binaries.pushed.length === 1);
  assert.match(String(api.binaries.pushed[0]!.broken), /has gone in the middle of the body/);
  assert.equal(pushedText(api), "hello");
});

Deno.test("push: a client that falls silent in the middle is given up", async () => {
  await using api = await serve({ stallMs: 100 });
  await sendRaw(api.path, put("", ["content-length: 1000"], "hello"));
  await until("it is told", () => api.binaries.pushed.length === 1);
  assert.match(String(api.binaries.pushed[0]!.broken), /not within 100 ms/);
});

Deno.test("push: 100-continue is answered when the body is wanted, and not before", async () => {
  await using api = await serve();
  const head = ["content-length: 5", "expect: 100-continue"];
  const wanted = await sendRaw(api.path, put("", head, "hello"));
  assert.match(wanted, /^HTTP\/1\.1 100 Continue\r\n\r\nHTTP\/1\.1 202 /);
  api.binaries.readsNothing = true;
  api.binaries.answer = { kind: "unchanged", digest };
  const connection = await Deno.connect({ transport: "unix", path: api.path });
  await connection.write(new TextEncoder().encode(put(`?sha256=${digest}`, head, "")));
  await connection.closeWrite();
  const answer = await new Response(connection.readable).text();
  assert.equal(statusOf(answer), 200, answer);
  assert.deepEqual(bodyOf(answer), { service: "envoy", outcome: "unchanged", digest });
});

Deno.test("push: an answer that comes early arrives although the client still sends", async () => {
  await using api = await serve();
  api.binaries.readsNothing = true;
  api.binaries.answer = { kind: "refused", refusal: { name: "push_busy", detail: "busy" } };
  const content = "x".repeat(3_000_000);
  const answer = await sendRaw(api.path, put("", [`content-length: ${content.length}`], content));
  assert.equal(statusOf(answer), 409);
  assert.equal(bodyOf(answer).refusal, "push_busy");
});

Deno.test("push: wrong parameters and heads are refused before the body is read", async () => {
  await using api = await serve();
  const cases: readonly (readonly [number, string])[] = [
    [400, put("?sha256=ABC", ["content-length: 1"], "x")],
    [400, put(`?sha256=${digest}&sha256=${digest}`, ["content-length: 1"], "x")],
    [400, put("?size=0", ["content-length: 1"], "x")],
    [422, put("?size=2", ["content-length: 1"], "x")],
    [400, put("?force=perhaps", ["content-length: 1"], "x")],
    [422, put("", ["content-length: 1", "epochd-signature: %%%"], "x")],
    [400, put("", ["content-length: one"], "x")],
    [411, put("", ["content-length: 1", "transfer-encoding: chunked"], "x")],
    [411, put("", ["transfer-encoding: gzip"], "x")],
    [411, put("", [], "")],
    [412, put("", ["content-length: 1", 'if-match: "other"'], "x")],
    [404, put("", ["content-length: 1"], "x").replace("/envoy/", "/nobody/")],
    [411, `PUT /v1/config HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n`],
  ];
  for (const [status, request] of cases) assert.equal(statusOf(await sendRaw(api.path, request)), status, request);
  assert.deepEqual(api.binaries.pushed, []);
});

Deno.test("push: refusals have the status of their kind, and their name", async () => {
  await using api = await serve();
  const cases = [
    ["binary_too_large", 413],
    ["digest_differs", 422],
    ["signature_missing", 422],
    ["disk_full", 507],
    ["upload_broken", 400],
    ["slots_off", 409],
    ["hot_restart_version_differs", 409],
  ] as const;
  for (const [name, status] of cases) {
    api.binaries.answer = { kind: "refused", refusal: { name, detail: "for a reason" } };
    const answer = await sendRaw(api.path, put("", ["content-length: 1"], "x"));
    assert.deepEqual([statusOf(answer), bodyOf(answer).refusal, bodyOf(answer).detail], [status, name, "for a reason"]);
  }
  assert.deepEqual(
    api.told.filter(({ kind }) => kind === "api_audit").map((fact) => "outcome" in fact && fact.outcome),
    cases.map(([name]) => name.replaceAll("_", " ")),
  );
});

Deno.test("rollback of an executable: to what is asked for, which must look like a digest", async () => {
  await using api = await serve();
  const ask = (query: string) => sendRaw(api.path, `POST ${path}/rollback${query} HTTP/1.1\r\nhost: x\r\n\r\n`);
  for (const query of ["", "?to=installed", "?to=abcd"]) assert.equal(statusOf(await ask(query)), 202);
  for (const query of ["?to=../x", "?to=abc", "?to=ABCD"]) assert.equal(statusOf(await ask(query)), 400);
  assert.deepEqual(api.binaries.rolledBack, [undefined, "installed", "abcd"]);
});
