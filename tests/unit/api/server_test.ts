import assert from "node:assert/strict";
import { startApi } from "../../../lib/api/server.ts";
import type { ShellFact } from "../../../lib/observe/shell_fact.ts";
import { configScene } from "../runtime/config_scene.ts";
import { tempDir } from "../../support/tempdir.ts";
import { until, within } from "../../support/until.ts";
import { FakeControl } from "./fake_control.ts";
import { FakeBinaries } from "./fake_binaries.ts";
import { FakeObserved } from "./fake_observed.ts";
import { request, sendRaw, serve } from "./serving.ts";

function statusOf(answer: string): number {
  return Number(answer.split(" ")[1]);
}

function names(directory: string): readonly string[] {
  return [...Deno.readDirSync(directory)].map(({ name }) => name).sort();
}

async function open(path: string, text = ""): Promise<Deno.UnixConn> {
  const connection = await Deno.connect({ transport: "unix", path });
  if (text !== "") await connection.write(new TextEncoder().encode(text));
  return connection;
}

/** True once the server has closed it. */
async function isClosed(connection: Deno.Conn): Promise<boolean> {
  try {
    return await connection.read(new Uint8Array(1)) === null;
  } catch {
    return true;
  }
}

Deno.test("server listens on a private socket of its own name behind the link", async () => {
  await using api = await serve();
  assert.deepEqual(names(api.directory), [`api-${Deno.pid}.sock`, "api.sock"]);
  assert.equal(Deno.readLinkSync(api.path), `api-${Deno.pid}.sock`);
  assert.equal(Deno.lstatSync(`${api.directory}/api-${Deno.pid}.sock`).mode! & 0o777, 0o600);
  assert.deepEqual(api.told, [{ kind: "api_listening", path: api.path }]);
});

Deno.test("server removes its own socket at its end and nothing that became another's", async () => {
  await using first = await serve();
  const told: ShellFact[] = [];
  const secondApi = await startApi({
    path: first.path,
    control: new FakeControl(),
    observed: new FakeObserved(),
    binaries: new FakeBinaries(),
    configuration: first.scene.configuration,
    log: { shell: (fact) => void told.push(fact) },
  });
  const second = `api-${Deno.pid}-1.sock`;
  assert.equal(Deno.readLinkSync(first.path), `api-${Deno.pid}.sock`);
  assert.deepEqual(told.map(({ kind }) => kind), ["api_link_held"]);
  await first.close();
  await until("the other one has the link", () => Deno.readLinkSync(first.path) === second);
  assert.deepEqual(names(first.directory), [second, "api.sock"]);
  assert.equal((await request(first.path, "GET", "/healthz")).status, 200);
  await secondApi.close();
  assert.deepEqual(names(first.directory), ["api.sock"]);
});

Deno.test("server says why it can't listen, and does not throw", async () => {
  await using dir = tempDir();
  await using scene = await configScene();
  dir.write("file.sock", "precious");
  Deno.mkdirSync(dir.at("open"));
  Deno.chmodSync(dir.at("open"), 0o777);
  const cases = [
    [dir.at("file.sock"), /exists and is no link of epochd/],
    [dir.at("open", "api.sock"), /others may write/],
    [dir.at("d".repeat(100), "api.sock"), /too long for a unix socket/],
  ] as const;
  for (const [path, why] of cases) {
    const told: ShellFact[] = [];
    const log = { shell: (fact: ShellFact) => void told.push(fact) };
    const { configuration } = scene;
    const observed = new FakeObserved();
    const binaries = new FakeBinaries();
    await (await startApi({ path, control: new FakeControl(), observed, binaries, configuration, log })).close();
    assert.equal(told.length, 1);
    assert.ok(told[0]?.kind === "api_failed" && why.test(told[0].problem), JSON.stringify(told));
  }
  assert.deepEqual(names(dir.at("open")), []);
  assert.deepEqual(names(dir.path), ["file.sock", "open"]);
});

Deno.test("server cleans what a killed supervisor left, and says so", async () => {
  await using dir = tempDir();
  await using scene = await configScene();
  const listener = Deno.listen({ transport: "unix", path: dir.at("bound") });
  Deno.renameSync(dir.at("bound"), dir.at("api-1.sock"));
  listener.close();
  Deno.utimeSync(dir.at("api-1.sock"), 0, 0);
  Deno.symlinkSync("api-1.sock", dir.at("api.sock"));
  const told: ShellFact[] = [];
  const api = await startApi({
    path: dir.at("api.sock"),
    control: new FakeControl(),
    observed: new FakeObserved(),
    binaries: new FakeBinaries(),
    configuration: scene.configuration,
    log: { shell: (fact) => void told.push(fact) },
  });
  assert.deepEqual(told[0], { kind: "stale_socket_removed", path: dir.at("api-1.sock") });
  assert.equal((await request(dir.at("api.sock"), "GET", "/healthz")).status, 200);
  await api.close();
});

Deno.test("server answers garbage and oversized requests with a problem, and goes on", async () => {
  await using api = await serve({ headBytes: 1_000, bodyBytes: 10 });
  assert.equal(statusOf(await sendRaw(api.path, "garbage\r\n\r\n")), 400);
  assert.equal(statusOf(await sendRaw(api.path, "\x16\x03\x01\x02\x00\x01\x00\r\n\r\n")), 400);
  assert.equal(statusOf(await sendRaw(api.path, `GET / HTTP/1.1\r\nA: ${"x".repeat(2_000)}\r\n\r\n`)), 431);
  assert.equal(statusOf(await sendRaw(api.path, "POST / HTTP/1.1\r\nContent-Length: 11\r\n\r\n")), 413);
  for (const method of ["TRACE", "TRACK", "CONNECT", "DELETE"]) {
    assert.equal(statusOf(await sendRaw(api.path, `${method} /v1/status HTTP/1.1\r\n\r\n`)), 405, method);
  }
  const answer = await sendRaw(api.path, "garbage\r\n\r\n");
  assert.match(answer, /content-type: application\/problem\+json/);
  assert.equal((await request(api.path, "GET", "/healthz")).status, 200);
  assert.deepEqual(api.told.filter(({ kind }) => kind === "bug"), []);
});

Deno.test("server waits for a body that was announced, and asks for it where the client wants to be asked", async () => {
  await using api = await serve({ acceptMs: 1 });
  const connection = await open(
    api.path,
    "POST /v1/services/edge/restart HTTP/1.1\r\nContent-Length: 2\r\nExpect: 100-continue\r\n\r\n",
  );
  const piece = new Uint8Array(100);
  const count = await connection.read(piece);
  assert.equal(new TextDecoder().decode(piece.subarray(0, count ?? 0)), "HTTP/1.1 100 Continue\r\n\r\n");
  assert.equal(api.control.asked.length, 0);
  await connection.write(new TextEncoder().encode("{}"));
  assert.equal(statusOf(await new Response(connection.readable).text()), 202);
  assert.equal(api.control.asked.length, 1);
});

Deno.test("server closes clients that never finish their request, while others are answered", async () => {
  await using api = await serve({ requestMs: 100 });
  const slow = [
    await open(api.path),
    await open(api.path, "GET /heal"),
    await open(api.path, "POST / HTTP/1.1\r\nContent-Length: 9\r\n\r\nhalf"),
  ];
  assert.equal((await request(api.path, "GET", "/healthz")).status, 200);
  for (const connection of slow) {
    assert.ok(await within("the end of a slow client", isClosed(connection)));
    connection.close();
  }
});

Deno.test("server answers 503 beyond its number of connections, and serves again when they are gone", async () => {
  await using api = await serve({ connections: 3 });
  const idle = [await open(api.path), await open(api.path), await open(api.path)];
  const { status, body } = await request(api.path, "GET", "/healthz");
  assert.equal(status, 503);
  assert.match(body, /too many connections/);
  for (const connection of idle) connection.close();
  await until("it serves again", async () => (await request(api.path, "GET", "/healthz")).status === 200);
});

Deno.test("server closes at once what goes beyond twice its number of connections", async () => {
  await using api = await serve({ connections: 2 });
  const idle = [await open(api.path), await open(api.path), await open(api.path), await open(api.path)];
  const over = await open(api.path);
  assert.ok(await within("the end of one too many", isClosed(over)));
  for (const connection of [...idle, over]) connection.close();
});

Deno.test("server serves one request a connection and ignores what a client pipelines", async () => {
  await using api = await serve();
  const answer = await sendRaw(api.path, "GET /healthz HTTP/1.1\r\n\r\n".repeat(3));
  assert.equal(answer.split("HTTP/1.1 200").length - 1, 1);
  assert.match(answer, /connection: close/);
});

Deno.test("server ends a client that pushes without end while it waits", async () => {
  await using api = await serve({ bodyBytes: 1_000 });
  const connection = await open(api.path, "POST /v1/services/edge/restart?wait=live HTTP/1.1\r\n\r\n");
  await until("it waits", () => api.control.observers === 1);
  const push = async () => {
    for (;;) await connection.write(new Uint8Array(4_096));
  };
  await within("the end of the pushing", assert.rejects(push()));
  connection.close();
  await until("nothing waits any more", () => api.control.observers === 0);
});

Deno.test("server ends waits, streams and idle clients when it closes", async () => {
  await using api = await serve();
  const idle = await open(api.path);
  const stream = await open(api.path, "GET /v1/events HTTP/1.1\r\n\r\n");
  const wait = request(api.path, "POST", "/v1/services/edge/restart?wait=live");
  await until("both are subscribed", () => api.control.observers === 2);
  await within("the close", api.close());
  assert.equal((await within("the answer to the wait", wait)).status, 503);
  assert.match(await within("the end of the stream", new Response(stream.readable).text()), /: epochd events/);
  assert.ok(await isClosed(idle));
  idle.close();
  assert.equal(api.control.observers, 0);
});

Deno.test("server gives up a client that does not read its answer, and has its place for another", async () => {
  await using api = await serve({ connections: 1, writeMs: 100 });
  const stuck = await open(api.path, "GET /v1/events HTTP/1.1\r\n\r\n");
  await until("it is subscribed", () => api.control.observers === 1);
  const problem = "x".repeat(4_000_000);
  api.control.happen({ kind: "marker_failed", problem });
  await until("its place is free", async () => (await request(api.path, "GET", "/healthz")).status === 200);
  await until("it is not subscribed any more", () => api.control.observers === 0);
  stuck.close();
});
