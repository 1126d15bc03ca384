// Owns: the proof, on real Envoys, that the support code sees what it must see and nothing else.
import assert from "node:assert/strict";
import { adminRequest, serverInfo, stats } from "../support/admin.ts";
import { domainSockets, freeBaseId, hasSegment, removeSegment, segmentFlags } from "../support/base_ids.ts";
import { type BootstrapOptions, bootstrapText } from "../support/bootstrap.ts";
import { type BareEnvoy, ENVOY_VERSIONS, type EnvoyOptions, envoyPath, spawnEnvoy } from "../support/envoys.ts";
import { fetchOnce, HttpConnection } from "../support/http_client.ts";
import { canBind, freePort, freePorts } from "../support/ports.ts";
import { tempDir } from "../support/tempdir.ts";
import { startTraffic } from "../support/traffic.ts";
import { until } from "../support/until.ts";
import { startUpstream } from "../support/upstream.ts";
import { blackHole } from "../support/xds.ts";

function scene() {
  const scratch = tempDir();
  const baseId = freeBaseId();
  const [listenPort, adminPort] = [freePort(), freePort()];
  const upstream = startUpstream(freePort());
  const started: BareEnvoy[] = [];
  const write = (options: Partial<BootstrapOptions> = {}, name = "envoy.yaml") =>
    scratch.write(name, bootstrapText({ listenPort, adminPort, upstreamPort: upstream.port, ...options }, name));
  return {
    scratch,
    baseId,
    listener: { port: listenPort },
    admin: { port: adminPort },
    upstream,
    write,
    start(bootstrapPath: string, options: Partial<EnvoyOptions> = {}): BareEnvoy {
      const envoy = spawnEnvoy({ bootstrapPath, baseId, ...options });
      started.push(envoy);
      return envoy;
    },
    async [Symbol.asyncDispose]() {
      for (const envoy of started) await envoy[Symbol.asyncDispose]();
      await upstream[Symbol.asyncDispose]();
      removeSegment(baseId);
      await scratch[Symbol.asyncDispose]();
    },
  };
}

async function validate(bootstrapPath: string): Promise<{ code: number; stderr: string }> {
  const output = await new Deno.Command(envoyPath(), { args: ["--mode", "validate", "-c", bootstrapPath] }).output();
  return { code: output.code, stderr: new TextDecoder().decode(output.stderr) };
}

Deno.test("traffic through a hot restart by hand, 1.38.3 -> 1.39.3 -> 1.40.0: nothing failed, streams whole", async () => {
  await using here = scene();
  const first = here.start(here.write({ generation: "g0" }, "0.yaml"), { version: ENVOY_VERSIONS[0] });
  await first.untilLive(here.admin);
  await using traffic = startTraffic({
    port: here.listener.port,
    path: "/",
    admin: here.admin,
    heldStreams: 1,
    stream: { chunks: 10, everyMs: 50 },
  });
  let previous = first;
  for (const [epoch, version] of ENVOY_VERSIONS.entries()) {
    if (epoch === 0) continue;
    await until("the version is seen", () => traffic.snapshot().envoyVersions.length === epoch);
    const stream = traffic.hold({ chunks: 60, everyMs: 50 });
    await stream.opened;
    const next = here.start(here.write({ generation: `g${epoch}` }, `${epoch}.yaml`), { version, epoch });
    await next.untilLive(here.admin);
    assert.ok(stream.received < 60, "the stream must be under way when the new epoch is LIVE");
    const outcome = await stream.outcome;
    assert.deepEqual(outcome, { kind: "complete", chunks: 60 });
    assert.equal((await previous.exit).code, 0);
    previous = next;
  }
  await until("the last version is seen", () => traffic.snapshot().envoyVersions.length === 3);
  const report = await traffic.stop();
  assert.deepEqual(report.failures, []);
  assert.deepEqual([report.failed, report.streamsBroken, report.idleCloses], [0, 0, 0]);
  assert.ok(report.requests > 1000 && report.streamsComplete >= 3 && report.reconnects >= 2, JSON.stringify(report));
  assert.deepEqual(report.generations, ["g0", "g1", "g2"]);
  assert.deepEqual(report.epochs, [0, 1, 2]);
  assert.deepEqual(report.envoyVersions, [...ENVOY_VERSIONS]);
  assert.ok(report.longestGapMs < 2_000, JSON.stringify(report));
});

Deno.test("the meter sees failures: kill -9 of Envoy under traffic, then its return", async () => {
  await using here = scene();
  const bootstrapPath = here.write();
  const envoy = here.start(bootstrapPath);
  await envoy.untilLive(here.admin);
  await using traffic = startTraffic({ port: here.listener.port, path: "/slow?ms=5", requestsPerSecond: 1_000 });
  const stream = traffic.hold({ chunks: 1_000, everyMs: 20 });
  await stream.opened;
  await until("100 requests", () => traffic.snapshot().requests > 100);
  assert.equal(traffic.snapshot().failed, 0);
  const killedMs = performance.now();
  envoy.kill("SIGKILL");
  await envoy.exit;
  await until("refusals are seen", () => (traffic.snapshot().failuresByKind.refused ?? 0) > 10);
  const back = here.start(bootstrapPath);
  await back.untilLive(here.admin);
  const outageMs = performance.now() - killedMs;
  const { requests } = traffic.snapshot();
  await until("it goes on", () => traffic.snapshot().requests > requests + 100);
  const report = await traffic.stop();
  assert.equal((await stream.outcome).kind, "broken");
  assert.equal(report.streamsBroken, 1);
  assert.equal(report.failures.length, 20);
  // Those under way when it died, beside the refused ones.
  const cut = (report.failuresByKind.closed_early ?? 0) + (report.failuresByKind.reset ?? 0);
  assert.ok(cut >= 1 && report.failed >= 10 + cut, JSON.stringify(report.failuresByKind));
  assert.ok(
    report.longestGapMs > 50 && report.longestGapMs < outageMs + 100,
    `${report.longestGapMs} of ${outageMs} ms`,
  );
});

Deno.test("a stream that Envoy cuts at parent-shutdown-time is seen as broken, requests are not", async () => {
  await using here = scene();
  const parent = here.start(here.write());
  await parent.untilLive(here.admin);
  await using traffic = startTraffic({ port: here.listener.port });
  const stream = traffic.hold({ chunks: 200, everyMs: 50 });
  await stream.opened;
  await here.start(here.write(), { epoch: 1, drainTimeS: 1, parentShutdownTimeS: 2 }).untilLive(here.admin);
  assert.equal((await stream.outcome).kind, "broken");
  const report = await traffic.stop();
  assert.deepEqual([report.failed, report.streamsBroken], [0, 1]);
});

Deno.test("what an Envoy holds is seen: port, sockets, segment, flags, stats", async () => {
  await using here = scene();
  const envoy = here.start(here.write());
  await envoy.untilLive(here.admin);
  assert.equal(canBind(here.listener.port), false);
  assert.equal(domainSockets(here.baseId).length, 4);
  assert.equal(segmentFlags(here.baseId), 0n);
  const info = await serverInfo(here.admin);
  assert.deepEqual(info, { epoch: 0, state: "LIVE", version: "1.40.0", concurrency: 1 });
  assert.equal((await stats(here.admin, "^server\\.live$")).get("server.live"), 1);
  envoy.kill();
  assert.equal((await envoy.exit).code, 0);
  assert.equal(domainSockets(here.baseId).length, 0);
  assert.equal(hasSegment(here.baseId), true);
});

Deno.test("every kind of bootstrap is accepted by every Envoy and does what it says", async () => {
  for (const version of ENVOY_VERSIONS) {
    await using here = scene();
    const extra = freePorts(20);
    const [tcpProxyPort, tlsPort] = [freePort(), freePort()];
    const adminPath = here.scratch.at("admin.sock");
    const bodyPath = here.scratch.write("body.txt", "from a file\n");
    const none = JSON.stringify({ resources: [] });
    const xds = {
      kind: "filesystem",
      ldsPath: here.scratch.write("lds.json", none),
      cdsPath: here.scratch.write("cds.json", none),
    } as const;
    const tlsSecret = { port: tlsPort, sdsPath: here.scratch.write("sds.json", none) };
    const options = { adminPath, bodyPath, extraListenPorts: extra, tcpProxyPort, tlsSecret, xds, generation: "all" };
    const envoy = here.start(here.write(options, "envoy.json"), { version });
    await envoy.untilLive({ path: adminPath });
    const get = async (port: number, path: string) => (await fetchOnce({ port }, { path })).body;
    assert.equal(await get(here.listener.port, "/direct"), "direct\n");
    assert.equal(await get(here.listener.port, "/file"), "from a file\n");
    assert.equal(await get(here.listener.port, "/"), "ok\n");
    assert.equal(await get(tcpProxyPort, "/"), "ok\n");
    for (const port of extra) assert.equal(await get(port, "/"), "ok\n");
    const { headers } = await fetchOnce(here.listener, { path: "/" });
    assert.deepEqual([headers.get("x-generation"), headers.get("x-epoch")], ["all", "0"]);
    const pieces = ReadableStream.from(["slow", "ly"].map((text) => new TextEncoder().encode(text)));
    const upload = await fetchOnce(here.listener, { method: "POST", path: "/upload", body: pieces });
    assert.equal(upload.body, "6\n");
    assert.equal(await echo(here.listener.port, "hello"), "hello");
  }
});

Deno.test("a control plane that never answers, refuses, or answers no REST keeps Envoy initialising", async () => {
  await using silent = blackHole(freePort());
  const controlPlanes = [
    { kind: "ads", port: silent.port, initialFetchTimeoutMs: 0 },
    { kind: "ads", port: freePort(), initialFetchTimeoutMs: 0 },
    { kind: "rest", port: silent.port, initialFetchTimeoutMs: 0 },
  ] as const;
  for (const xds of controlPlanes) {
    await using here = scene();
    const before = silent.connections;
    here.start(here.write({ xds }));
    const info = await until("the admin answers", () => serverInfo(here.admin));
    assert.match(info.state, /INITIALIZING$/);
    if (xds.port === silent.port) await until("it asked the control plane", () => silent.connections > before);
    assert.equal((await adminRequest(here.admin, "/ready")).status, 503);
    assert.equal(segmentFlags(here.baseId), 1n);
  }
  await using here = scene();
  const envoy = here.start(here.write({ xds: { kind: "ads", port: silent.port, initialFetchTimeoutMs: 200 } }));
  await envoy.untilLive(here.admin);
});

Deno.test("bootstraps that preflight must refuse are refused, and a held port is not noticed by it", async () => {
  await using here = scene();
  const missing = { port: freePort(), certificatePath: "/none/cert.pem", privateKeyPath: "/none/key.pem" };
  assert.equal((await validate(here.write())).code, 0);
  assert.match((await validate(here.write({ tls: missing }))).stderr, /\/none\/(cert|key)\.pem/);
  const unknown = here.write({ change: (bootstrap) => bootstrap.no_such_field = 1 });
  assert.match((await validate(unknown)).stderr, /no_such_field/);

  const heldPort = freePort();
  using _held = Deno.listen({ hostname: "127.0.0.1", port: heldPort });
  const parent = here.start(here.write());
  await parent.untilLive(here.admin);
  const path = here.write({ extraListenPorts: [heldPort] });
  assert.equal((await validate(path)).code, 0);
  const child = here.start(path, { epoch: 1 });
  assert.equal((await child.exit).code, 1);
  await until("its reason", () => child.log().includes("Address already in use"));
  assert.equal((await fetchOnce(here.listener, { path: "/" })).status, 200);
});

Deno.test("an idle keep-alive connection outlives the drain and is closed without a failure for who reads it", async () => {
  await using here = scene();
  const parent = here.start(here.write());
  await parent.untilLive(here.admin);
  using idle = await HttpConnection.open(here.listener);
  await idle.request({ path: "/direct" });
  await here.start(here.write(), { epoch: 1, drainTimeS: 1, parentShutdownTimeS: 2 }).untilLive(here.admin);
  assert.equal(idle.reusable, true);
  await parent.exit;
  await until("the close is noticed", () => !idle.reusable);
});

async function echo(port: number, text: string): Promise<string> {
  const socket = new WebSocket(`ws://127.0.0.1:${port}/ws`);
  const answer = await new Promise<string>((resolve, reject) => {
    socket.onopen = () => socket.send(text);
    socket.onmessage = (message) => resolve(message.data);
    socket.onerror = () => reject(new Error("websocket failed"));
  });
  const closed = new Promise((resolve) => socket.onclose = resolve);
  socket.close();
  await closed;
  return answer;
}
