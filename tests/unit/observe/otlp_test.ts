import assert from "node:assert/strict";
import type { LedgerEntry } from "../../../lib/observe/ledger.ts";
import { otelSettings } from "../../../lib/observe/otel_settings.ts";
import { OtlpExporter } from "../../../lib/observe/otlp.ts";
import { startCollector } from "../../support/collector.ts";
import { freePorts } from "../../support/ports.ts";
import { until } from "../../support/until.ts";

const entry: LedgerEntry = {
  service: "edge",
  handoff: 3,
  from: 4,
  to: 5,
  source: "api",
  requests: ["r1"],
  who: "key ci",
  beganAt: "2026-01-01T00:00:00.000Z",
  outcome: "done",
  bootstrapDigest: "bd",
  binaryDigest: "ed",
  envoyVersion: "1.40.0",
  preflightMs: 80,
  startMs: 170.5,
  liveMs: 260,
  drainMs: 4_000,
};

function settings(env: Record<string, string>) {
  return otelSettings((name) => env[name]);
}

function exporter(endpoint: string, more: Record<string, string> = {}, retryMs = 20) {
  const otel = settings({ OTEL_EXPORTER_OTLP_ENDPOINT: endpoint, ...more });
  if (typeof otel !== "object") assert.fail(String(otel));
  const problems: string[] = [];
  return { problems, otlp: new OtlpExporter({ ...otel, retryMs, problem: (problem) => problems.push(problem) }) };
}

Deno.test("OTLP + a handoff is one trace: handoff, preflight, start, drain, with their times and attributes", async () => {
  await using collector = startCollector();
  const { otlp, problems } = exporter(collector.endpoint, {
    OTEL_EXPORTER_OTLP_HEADERS: "authorization=Bearer%20x,x-team=edge",
    OTEL_SERVICE_NAME: "edge-epochd",
    OTEL_RESOURCE_ATTRIBUTES: "k8s.pod.name=p1",
  });
  otlp.send(entry);
  await otlp.close();
  assert.deepEqual(problems, []);
  const [post] = collector.posts;
  assert.deepEqual([post?.path, post?.headers.get("authorization"), post?.headers.get("x-team")], [
    "/v1/traces",
    "Bearer x",
    "edge",
  ]);
  assert.deepEqual(post?.body.resourceSpans[0].resource.attributes, [
    { key: "service.name", value: { stringValue: "edge-epochd" } },
    { key: "k8s.pod.name", value: { stringValue: "p1" } },
  ]);
  const spans = collector.spans();
  assert.deepEqual(spans.map(({ name, tookMs, status }) => [name, tookMs, status.code]), [
    ["handoff", 4_260, 1],
    ["preflight", 80, 1],
    ["start", 170.5, 1],
    ["drain", 4_000, 1],
  ]);
  const [root, ...parts] = spans;
  assert.ok(parts.every(({ traceId, parentSpanId }) => traceId === root?.traceId && parentSpanId === root.spanId));
  assert.match(`${root?.traceId} ${root?.spanId}`, /^[0-9a-f]{32} [0-9a-f]{16}$/);
  assert.equal(root?.attributes["epochd.epoch.to"], "5");
  assert.equal(root?.attributes["epochd.outcome"], "done");
  assert.equal(root?.attributes["epochd.bootstrap.digest"], "bd");
});

Deno.test("OTLP + a refused handoff is an error with its reason, in the phase that refused it", async () => {
  await using collector = startCollector();
  const { otlp } = exporter(collector.endpoint);
  const { bootstrapDigest: _b, startMs: _s, liveMs: _l, drainMs: _d, ...rest } = entry;
  otlp.send({ ...rest, outcome: "failed", refusal: { name: "bootstrap_invalid", detail: "no such field" } });
  await otlp.close();
  assert.deepEqual(collector.spans().map(({ name, status }) => [name, status]), [
    ["handoff", { code: 2, message: "no such field" }],
    ["preflight", { code: 2, message: "no such field" }],
  ]);
});

Deno.test("OTLP + a collector that is away is told once, and gets everything when it is back", async () => {
  await using collector = startCollector();
  collector.answer = () => new Response("busy", { status: 503 });
  const { otlp, problems } = exporter(collector.endpoint);
  otlp.send(entry);
  await until("it is tried again", () => collector.posts.length >= 3);
  otlp.send({ ...entry, handoff: 4 });
  assert.equal(problems.length, 1);
  assert.match(problems[0]!, /^send traces to http:\/\/127\.0\.0\.1:\d+\/v1\/traces: status 503$/);
  collector.answer = () => new Response("{}");
  await until("both came", () => collector.posts.at(-1)?.body.resourceSpans[0].scopeSpans[0].spans.length >= 4);
  await otlp.close();
  const last = collector.spans().filter(({ name }) => name === "handoff").map(({ attributes }) =>
    attributes["epochd.handoff"]
  );
  assert.ok(last.includes("3") && last.includes("4"), last.join());
});

Deno.test("OTLP + what a collector refuses for good is not sent again, and nobody there or no answer ends within the bound", async () => {
  await using collector = startCollector();
  collector.answer = () => new Response("", { status: 401 });
  const refused = exporter(collector.endpoint);
  refused.otlp.send(entry);
  await refused.otlp.close();
  assert.deepEqual([collector.posts.length, refused.problems.length], [1, 1]);
  const [port] = freePorts(1);
  const absent = exporter(`http://127.0.0.1:${port}`, {}, 60_000);
  absent.otlp.send(entry);
  await absent.otlp.close();
  assert.equal(absent.problems.length, 1);
  collector.answer = () => new Promise((resolve) => setTimeout(() => resolve(new Response("")), 500));
  const hangs = exporter(collector.endpoint, { OTEL_EXPORTER_OTLP_TIMEOUT: "100" }, 60_000);
  const began = performance.now();
  hangs.otlp.send(entry);
  await hangs.otlp.close();
  assert.ok(performance.now() - began < 450);
  assert.match(hangs.problems[0]!, /no answer within 100 ms$/);
  await new Promise((resolve) => setTimeout(resolve, 600));
});

Deno.test("OTLP + a collector on this machine is asked without HTTP_PROXY", async () => {
  await using collector = startCollector();
  const lib = (name: string) => import.meta.resolve(`../../../lib/observe/${name}`);
  const program = `
    const { OtlpExporter } = await import(${JSON.stringify(lib("otlp.ts"))});
    const { otelSettings } = await import(${JSON.stringify(lib("otel_settings.ts"))});
    const otlp = new OtlpExporter({ ...otelSettings((name) => Deno.env.get(name)), problem: (problem) => { throw new Error(problem); } });
    otlp.send(${JSON.stringify(entry)});
    await otlp.close();`;
  const [dead] = freePorts(1);
  const { code, stderr } = await new Deno.Command(Deno.execPath(), {
    args: ["eval", program],
    env: {
      HTTP_PROXY: `http://127.0.0.1:${dead}`,
      http_proxy: `http://127.0.0.1:${dead}`,
      OTEL_EXPORTER_OTLP_ENDPOINT: collector.endpoint,
    },
  }).output();
  assert.equal(code, 0, new TextDecoder().decode(stderr));
  assert.equal(collector.posts.length, 1);
});

Deno.test("OTEL settings + follow the standard's variables", () => {
  assert.equal(settings({}), undefined);
  assert.equal(settings({ OTEL_EXPORTER_OTLP_ENDPOINT: "http://c:4318", OTEL_SDK_DISABLED: "true" }), undefined);
  assert.equal(settings({ OTEL_EXPORTER_OTLP_ENDPOINT: "http://c:4318", OTEL_TRACES_EXPORTER: "none" }), undefined);
  const of = (env: Record<string, string>) => {
    const found = settings(env);
    return typeof found === "object" ? found.endpoint : found;
  };
  assert.equal(of({ OTEL_EXPORTER_OTLP_ENDPOINT: "http://c:4318/" }), "http://c:4318/v1/traces");
  assert.equal(
    of({ OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: "http://c:4318/own", OTEL_EXPORTER_OTLP_ENDPOINT: "http://d" }),
    "http://c:4318/own",
  );
  assert.match(
    String(settings({ OTEL_EXPORTER_OTLP_ENDPOINT: "c:4317" })),
    /^send traces to c:4317\/v1\/traces: expected an address/,
  );
  assert.match(
    String(settings({ OTEL_EXPORTER_OTLP_ENDPOINT: "http://c:4317", OTEL_EXPORTER_OTLP_PROTOCOL: "grpc" })),
    /by grpc/,
  );
});
