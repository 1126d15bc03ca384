// The TCP listener on real sockets, with real certificates. It needs a runtime that enforces client certificates.
import assert from "node:assert/strict";
import net from "node:net";
import tls from "node:tls";
import { createKey, formatEntry } from "../../../lib/api/keys.ts";
import { isOlder, leastTcpRuntime } from "../../../lib/config/api_rules.ts";
import type { FlagValues } from "../../../lib/config/flags.ts";
import { type Certificate, hasOpenssl, makeAuthority, makeCertificate } from "../../support/certificates.ts";
import { freePorts } from "../../support/ports.ts";
import { type TempDir, tempDir } from "../../support/tempdir.ts";
import { until } from "../../support/until.ts";
import { FakeControl } from "./fake_control.ts";
import { request as onSocket, serve, type Serving } from "./serving.ts";

const ignore = !hasOpenssl || isOlder(Deno.version.deno, leastTcpRuntime);

function test(name: string, fn: () => Promise<void>): void {
  Deno.test({ name, ignore, fn });
}

interface Call {
  readonly port: number;
  readonly target?: string;
  readonly method?: string;
  readonly key?: string;
  readonly tls?: { readonly ca: string; readonly client?: Certificate };
}

/** Status and body, or undefined where the connection ended without an answer. */
function ask({ port, target = "/v1/status", method = "GET", key, tls: secure }: Call) {
  return new Promise<{ readonly status: number; readonly body: string } | undefined>((resolve) => {
    const host = "127.0.0.1";
    const socket = secure === undefined ? net.connect({ host, port }) : tls.connect({
      host,
      port,
      servername: "localhost",
      ca: Deno.readTextFileSync(secure.ca),
      ...(secure.client === undefined ? {} : {
        cert: Deno.readTextFileSync(secure.client.certPath),
        key: Deno.readTextFileSync(secure.client.keyPath),
      }),
    });
    let text = "";
    const end = () => {
      const [, status] = /^HTTP\/1\.1 (\d{3})/.exec(text) ?? [];
      resolve(status === undefined ? undefined : { status: Number(status), body: text.split("\r\n\r\n")[1] ?? "" });
      socket.destroy();
    };
    const send = () => {
      const login = key === undefined ? "" : `authorization: Bearer ${key}\r\n`;
      socket.write(`${method} ${target} HTTP/1.1\r\nhost: x\r\n${login}\r\n`);
    };
    socket.on(secure === undefined ? "connect" : "secureConnect", send);
    socket.on("data", (chunk: Uint8Array) => text += new TextDecoder().decode(chunk));
    socket.on("end", end);
    socket.on("close", end);
    socket.on("error", end);
  });
}

async function statusOf(call: Call): Promise<number | undefined> {
  return (await ask(call))?.status;
}

async function serveTcp(flags: FlagValues, limits = {}): Promise<Serving & { readonly port: number }> {
  const [port] = freePorts(1) as [number];
  const api = await serve({ acceptMs: 5, ...limits }, new FakeControl(), {
    flags: { "api-listen": `127.0.0.1:${port}`, ...flags },
  });
  await until("it listens", () => api.told.some((fact) => fact.kind === "api_listening" && fact.path.includes(":")));
  if (flags["api-keys-file"] !== undefined) {
    await until("it knows its keys", () => api.told.some(({ kind }) => kind === "api_credentials_read"));
  }
  return Object.assign(api, { port });
}

function keysFile(dir: TempDir, ...entries: string[]): string {
  return dir.write("keys", `# keys\n${entries.join("\n")}\n`);
}

test("over TCP a key says who asks: its role is what it may, and nobody else may anything", async () => {
  await using dir = tempDir();
  const [read, operate, admin] = (["read", "operate", "admin"] as const).map((role) => createKey(role, role, ""));
  const path = keysFile(dir, ...[read!, operate!, admin!].map(({ entry }) => formatEntry(entry)));
  await using api = await serveTcp({ "api-keys-file": path });
  const { port } = api;
  assert.equal(await statusOf({ port }), 401);
  for (const target of ["/healthz", "/openapi.json", "/nothing"]) assert.equal(await statusOf({ port, target }), 401);
  assert.equal(await statusOf({ port, key: "epochd_read_wrong" }), 401);
  assert.equal(await statusOf({ port, key: read!.key }), 200);
  const restart = { port, method: "POST", target: "/v1/services/edge/restart" };
  const rollback = { port, method: "POST", target: "/v1/config/rollback" };
  assert.deepEqual(
    await Promise.all([read!, operate!, admin!].map(async ({ key }) => [
      await statusOf({ ...restart, key }),
      await statusOf({ ...rollback, key }),
    ])),
    [[403, 403], [202, 403], [202, 404]],
  );
  const denials = api.told.flatMap((fact) => fact.kind === "api_audit" && fact.status > 400 ? [fact] : []);
  assert.ok(denials.some(({ who, status }) => who === "nobody from 127.0.0.1" && status === 401));
  assert.ok(denials.some(({ who }) => who === "an unknown key from 127.0.0.1"));
  assert.ok(denials.some(({ who, status }) => who === "key read from 127.0.0.1" && status === 403));
  assert.ok(!JSON.stringify(api.told).includes(admin!.key.slice(-20)), "no key may be in the log");
});

test("keys are read again when their file changes; a broken edit changes nothing, a removed file lets nobody in", async () => {
  await using dir = tempDir();
  const [one, two] = [createKey("one", "read", ""), createKey("two", "read", "")];
  const path = keysFile(dir, formatEntry(one.entry));
  await using api = await serveTcp({ "api-keys-file": path });
  const both =
    async () => [await statusOf({ port: api.port, key: one.key }), await statusOf({ port: api.port, key: two.key })];
  assert.deepEqual(await both(), [200, 401]);
  keysFile(dir, "nonsense");
  await until("it is told", () => api.told.some(({ kind }) => kind === "api_credentials_failed"));
  assert.deepEqual(await both(), [200, 401]);
  keysFile(dir, formatEntry(two.entry));
  await until("the other is known", async () => (await both())[1] === 200);
  assert.deepEqual(await both(), [401, 200]);
  Deno.removeSync(path);
  await until("nobody is known", async () => (await both())[1] === 401);
});

test("with an authority, only clients with its certificates get in, and their names have roles", async () => {
  await using dir = tempDir();
  const ca = makeAuthority(dir);
  const server = makeCertificate(dir, "server", { alternatives: "DNS:localhost" });
  const ops = makeCertificate(dir, "ops", { subject: "/O=ops/CN=alice" });
  const ci = makeCertificate(dir, "ci", { alternatives: "URI:spiffe://x/ci" });
  const stranger = makeCertificate(dir, "stranger");
  makeAuthority(dir, "rogue");
  const forged = makeCertificate(dir, "forged", { subject: "/O=ops/CN=alice", by: "rogue" });
  await using api = await serveTcp({
    "api-tls-cert": server.certPath,
    "api-tls-key": server.keyPath,
    "api-client-ca": ca.certPath,
    "api-client-role": ["admin:CN=alice,O=ops", "operate:URI:spiffe://x/ci"],
  });
  const by = (client?: Certificate, more: Partial<Call> = {}) =>
    statusOf({ port: api.port, tls: { ca: ca.certPath, ...(client === undefined ? {} : { client }) }, ...more });
  assert.equal(await by(ops), 200);
  assert.equal(await by(ops, { method: "POST", target: "/v1/config/rollback" }), 404);
  assert.equal(await by(ci), 200);
  assert.equal(await by(ci, { method: "POST", target: "/v1/config/rollback" }), 403);
  assert.equal(await by(stranger), 401);
  assert.equal(await by(undefined), undefined, "a client without a certificate must not get an answer");
  assert.equal(await by(forged), undefined, "a certificate of another authority must not get an answer");
  assert.equal(await statusOf({ port: api.port }), undefined, "and nothing is served in the clear");
  const audit = api.told.flatMap((fact) => fact.kind === "api_audit" ? [fact.who] : []);
  assert.ok(audit.includes("certificate O=ops,CN=alice from 127.0.0.1"), audit.join());
  assert.ok(audit.includes("certificate CN=stranger without a role from 127.0.0.1"), audit.join());
});

test("certificates are taken up when they change, and one that does not fit its key is not", async () => {
  await using dir = tempDir();
  const ca = makeAuthority(dir);
  const server = makeCertificate(dir, "server", { alternatives: "DNS:localhost" });
  const { key, entry } = createKey("a", "read", "");
  await using api = await serveTcp({
    "api-tls-cert": server.certPath,
    "api-tls-key": server.keyPath,
    "api-keys-file": keysFile(dir, formatEntry(entry)),
  });
  const call = { port: api.port, key, tls: { ca: ca.certPath } };
  assert.equal(await statusOf(call), 200);
  const next = makeAuthority(dir, "next");
  const other = makeCertificate(dir, "other", { alternatives: "DNS:localhost", by: "next" });
  Deno.copyFileSync(other.certPath, server.certPath);
  await until("it is told", () => api.told.some((fact) => fact.kind === "api_credentials_failed"));
  assert.equal(await statusOf(call), 200);
  Deno.copyFileSync(other.keyPath, server.keyPath);
  await until("it is taken", async () => await statusOf({ ...call, tls: { ca: next.certPath } }) === 200);
  assert.equal(await statusOf(call), undefined);
});

test("a port that another one holds is waited for, and the socket serves meanwhile", async () => {
  await using dir = tempDir();
  const { key, entry } = createKey("a", "read", "");
  const path = keysFile(dir, formatEntry(entry));
  const [port] = freePorts(1) as [number];
  const holder = Deno.listen({ hostname: "127.0.0.1", port });
  await using api = await serve({}, new FakeControl(), {
    flags: { "api-listen": `127.0.0.1:${port}`, "api-keys-file": path },
  });
  await until("it is told", () => api.told.some(({ kind }) => kind === "api_waits"));
  assert.equal((await onSocket(api.path, "GET", "/readyz")).status, 200);
  holder.close();
  await until("it has the port", async () => await statusOf({ port, key }) === 200);
  assert.equal(api.told.filter(({ kind }) => kind === "api_waits").length, 1, "told once, however often it is tried");
});

test("garbage, half handshakes and clients that say nothing are ended, and do not reach the socket", async () => {
  await using dir = tempDir();
  const ca = makeAuthority(dir);
  const server = makeCertificate(dir, "server", { alternatives: "DNS:localhost" });
  const { key, entry } = createKey("a", "read", "");
  await using api = await serveTcp({
    "api-tls-cert": server.certPath,
    "api-tls-key": server.keyPath,
    "api-keys-file": keysFile(dir, formatEntry(entry)),
  }, { connections: 8, requestMs: 300 });
  const silent = await Promise.all(Array.from({ length: 100 }, async (_, i) => {
    const connection = await Deno.connect({ hostname: "127.0.0.1", port: api.port }).catch(() => undefined);
    if (i % 3 === 0) await connection?.write(new TextEncoder().encode("\x16\x03\x01\x02")).catch(() => {});
    if (i % 3 === 1) await connection?.write(crypto.getRandomValues(new Uint8Array(500))).catch(() => {});
    return connection;
  }));
  assert.equal((await onSocket(api.path, "GET", "/healthz")).status, 200);
  const ended = silent.map(async (connection) => {
    if (connection === undefined) return;
    const buffer = new Uint8Array(100);
    for (let count: number | null = 0; count !== null;) count = await connection.read(buffer).catch(() => null);
    connection.close();
  });
  await Promise.all(ended);
  await until(
    "others get in again",
    async () => await statusOf({ port: api.port, key, tls: { ca: ca.certPath } }) === 200,
  );
  assert.deepEqual(api.told.filter(({ kind }) => kind === "bug"), []);
});

test("TCP: an executable is pushed by an admin alone, over TLS and plain; nobody else's body is read", async () => {
  await using dir = tempDir();
  const [operator, admin] = [createKey("operator", "operate", ""), createKey("boss", "admin", "")];
  const authority = makeAuthority(dir);
  const server = makeCertificate(dir, "server", { alternatives: "DNS:localhost" });
  const keys = { "api-keys-file": keysFile(dir, formatEntry(operator.entry), formatEntry(admin.entry)) };
  const content = new Uint8Array(3_000_000).map((_, at) => at % 251);
  for (const secure of [false, true]) {
    const files = { "api-tls-cert": server.certPath, "api-tls-key": server.keyPath };
    await using api = await serveTcp(secure ? { ...keys, ...files } : keys);
    const client = Deno.createHttpClient({ caCerts: [Deno.readTextFileSync(authority.certPath)] });
    const put = async (key: string | undefined, body: BodyInit) => {
      const url = `${secure ? "https://localhost" : "http://127.0.0.1"}:${api.port}/v1/services/envoy/binary`;
      const headers: Record<string, string> = key === undefined ? {} : { authorization: `Bearer ${key}` };
      const response = await fetch(url, { method: "PUT", headers, body, client });
      return [response.status, await response.text()] as const;
    };
    assert.equal((await put(undefined, content))[0], 401);
    assert.equal((await put(operator.key, content))[0], 403);
    assert.deepEqual(api.binaries.pushed, []);
    assert.equal((await put(admin.key, content))[0], 202);
    // Without a length: in chunks.
    const stream = new Blob([content]).stream();
    assert.equal((await put(admin.key, stream))[0], 202);
    for (const { bytes } of api.binaries.pushed) assert.deepEqual(bytes, content);
    assert.equal(api.binaries.pushed.length, 2);
    client.close();
  }
});
