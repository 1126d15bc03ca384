import assert from "node:assert/strict";
import { until, within } from "../../support/until.ts";
import { FakeControl, handoffFacts } from "./fake_control.ts";
import { type HttpAnswer, request, serve, type Serving } from "./serving.ts";

function json(answer: HttpAnswer): Record<string, unknown> {
  return JSON.parse(answer.body) as Record<string, unknown>;
}

function patchEdge(api: Serving, body: unknown, query = "", headers = ""): Promise<HttpAnswer> {
  return request(api.path, "PATCH", `/v1/config/services/edge${query}`, headers, body);
}

Deno.test("GET of the configuration, its services and one of them carries an ETag, and 304 answers one that is known", async () => {
  await using api = await serve();
  const config = await request(api.path, "GET", "/v1/config");
  const services = await request(api.path, "GET", "/v1/config/services");
  const edge = await request(api.path, "GET", "/v1/config/services/edge");
  assert.deepEqual([config.status, services.status, edge.status], [200, 200, 200]);
  assert.deepEqual(json(config).services, json(services));
  assert.deepEqual(json(services).edge, json(edge));
  assert.equal(json(edge).drain_time, "10s");
  assert.equal(json(edge).parent_shutdown_time, "45s");
  const targets = { "/v1/config": config, "/v1/config/services": services, "/v1/config/services/edge": edge };
  for (const [target, { headers }] of Object.entries(targets)) {
    const etag = headers.get("etag") ?? "";
    assert.match(etag, /^"[0-9a-f]{32}"$/);
    const again = await request(api.path, "GET", target, `if-none-match: W/${etag}\r\n`);
    assert.deepEqual([again.status, again.body, again.headers.get("etag")], [304, "", etag]);
  }
  for (
    const target of ["/v1/history", "/v1/config/schema", "/v1/status", "/v1/services/edge/epochs", "/openapi.json"]
  ) {
    assert.ok((await request(api.path, "GET", target)).headers.has("etag"), target);
  }
  assert.equal((await request(api.path, "GET", "/v1/config/services/nobody")).status, 404);
});

Deno.test("PATCH of a service is a merge patch: null gives a field its default", async () => {
  await using api = await serve();
  const set = await patchEdge(api, { watchdog: "5s", drain_time: null });
  assert.equal(set.status, 202);
  assert.equal(json(set).verdict, "hot_restart");
  const edge = json(await request(api.path, "GET", "/v1/config/services/edge"));
  assert.deepEqual([edge.watchdog, edge.drain_time], ["5s", "30s"]);
  const dynamic = await patchEdge(api, { watchdog: null });
  assert.deepEqual([dynamic.status, json(dynamic).verdict], [200, "dynamic"]);
  const unchanged = await patchEdge(api, { watchdog: "3s" });
  assert.deepEqual([unchanged.status, json(unchanged).verdict], [200, "unchanged"]);
  assert.equal((await request(api.path, "PATCH", "/v1/config/services/nobody", "", {})).status, 404);
});

Deno.test("PUT takes back what GET gave, changed or not, and leaves defaults out of the file", async () => {
  await using api = await serve();
  const got = await request(api.path, "GET", "/v1/config");
  const same = await request(api.path, "PUT", "/v1/config", "", got.body);
  assert.deepEqual([same.status, json(same).verdict], [200, "unchanged"]);
  const before = api.scene.text();
  const config = json(got) as { log: { level: string }; services: Record<string, Record<string, unknown>> };
  config.log.level = "debug";
  const changed = await request(api.path, "PUT", "/v1/config", `if-match: ${got.headers.get("etag")}\r\n`, config);
  assert.deepEqual([changed.status, json(changed).persisted], [200, true]);
  assert.equal(api.scene.text(), before.replace("level: info", "level: debug"));
  delete config.services.core;
  const removed = await request(api.path, "PUT", "/v1/config", "", config);
  assert.equal((json(removed).services as Record<string, { action: string }>).core?.action, "remove");
});

Deno.test("a static change answers 409 with field, both values, why and what to do", async () => {
  await using api = await serve();
  const answer = await patchEdge(api, { base_id: 9 });
  assert.equal(answer.status, 409);
  assert.equal(answer.headers.get("content-type"), "application/problem+json");
  const { type, fields, detail } = json(answer);
  assert.equal(type, "urn:epochd:problem:static_parameter");
  const [field] = fields as Record<string, unknown>[];
  assert.deepEqual([field?.field, field?.running, field?.asked], ["services.edge.base_id", 1, 9]);
  assert.ok(typeof field?.why === "string" && typeof field?.remedy === "string");
  assert.match(String(detail), /services\.edge\.base_id is 1 and can't become 9/);
});

Deno.test("what is no configuration answers 422 with each thing to mend, what is no JSON object 400, another type 415", async () => {
  await using api = await serve();
  const invalid = await patchEdge(api, { drain_tim: "5s", on_hang: "x" });
  assert.equal(invalid.status, 422);
  assert.equal((json(invalid).problems as unknown[]).length, 2);
  for (const body of ["{", "[]", "3", "null", '"x"', `${'{"a":'.repeat(40)}1${"}".repeat(40)}`]) {
    const { status } = await patchEdge(api, body);
    assert.equal(status, 400, body);
  }
  assert.equal((await patchEdge(api, "")).status, 415);
  assert.equal((await request(api.path, "PUT", "/v1/config", "content-type: text/plain\r\n", {})).status, 415);
  assert.equal((await request(api.path, "POST", "/v1/config/rollback", "", { to: {} })).status, 400);
  assert.equal((await request(api.path, "POST", "/v1/config/rollback", "", { to: 99 })).status, 404);
  assert.deepEqual(api.told.filter(({ kind }) => kind === "bug"), []);
});

Deno.test("If-Match of another state answers 412 and changes nothing; a weak tag matches nothing, * everything", async () => {
  await using api = await serve();
  const config = (await request(api.path, "GET", "/v1/config")).headers.get("etag")!;
  const edge = (await request(api.path, "GET", "/v1/config/services/edge")).headers.get("etag")!;
  for (const tag of ['"0123"', `W/${edge}`, "garbage"]) {
    const answer = await patchEdge(api, { watchdog: "9s" }, "", `if-match: ${tag}\r\n`);
    assert.deepEqual([answer.status, json(answer).title], [412, "etag differs"], tag);
  }
  const other = await request(api.path, "PATCH", "/v1/config", `if-match: ${edge}\r\n`, { log: { level: "warn" } });
  assert.equal(other.status, 412, "one service's tag says nothing of the whole");
  assert.equal((await patchEdge(api, { watchdog: "5s" }, "", `if-match: "x", ${edge}\r\n`)).status, 200);
  assert.equal((await patchEdge(api, { watchdog: "6s" }, "", `if-match: ${config}\r\n`)).status, 412);
  const changed = await patchEdge(api, { watchdog: "6s" }, "", "if-match: *\r\n");
  const now = (await request(api.path, "GET", "/v1/config")).headers.get("etag");
  assert.equal(changed.headers.get("etag"), now);
});

Deno.test("dry_run says what would happen and what is affected, and changes nothing", async () => {
  await using api = await serve();
  const answer = await patchEdge(api, { drain_time: "20s" }, "?dry_run=true&wait=live");
  assert.equal(answer.status, 200);
  const { dryRun, verdict, services } = json(answer);
  assert.deepEqual([dryRun, verdict], [true, "hot_restart"]);
  assert.deepEqual(services, { edge: { action: "hot_restart", connections: 7 }, core: { action: "none" } });
  assert.equal(json(await request(api.path, "GET", "/v1/config/services/edge")).drain_time, "10s");
  assert.deepEqual(api.control.asked, []);
});

Deno.test("wait=live holds the answer until the new epoch serves; one that fails answers 409, the configuration stays", async () => {
  await using api = await serve();
  const waiting = patchEdge(api, { drain_time: "20s" }, "?wait=live");
  await until("it is asked", () => api.control.asked.length === 1);
  api.control.happen(handoffFacts("r1").accepted);
  api.control.happen(handoffFacts("r1").live);
  const answer = await within("the answer", waiting);
  assert.equal(answer.status, 200);
  const { edge } = json(answer).services as Record<string, Record<string, unknown>>;
  assert.deepEqual([edge?.outcome, edge?.from, edge?.to], ["live", 0, 1]);
  const failing = patchEdge(api, { drain_time: "21s" }, "?wait=drained");
  await until("it is asked", () => api.control.asked.length === 2);
  api.control.happen(handoffFacts("r2").failed);
  const failed = await within("the answer", failing);
  assert.deepEqual([failed.status, json(failed).refusal], [409, "bootstrap_invalid"]);
  assert.match(String(json(failed).detail), /^the configuration is taken, the new epoch of service edge is not/);
  assert.equal(json(await request(api.path, "GET", "/v1/config/services/edge")).drain_time, "21s");
  assert.equal(api.control.observers, 0);
});

Deno.test("POST reload restarts every service, POST rollback goes back, GET history tells of it", async () => {
  const control = new FakeControl();
  control.services = { edge: control.services.edge!, core: control.services.edge! };
  await using api = await serve({}, control);
  const reloaded = await request(api.path, "POST", "/v1/config/reload");
  assert.equal(reloaded.status, 202);
  assert.deepEqual(control.asked.map(({ service }) => service), ["edge", "core"]);
  await patchEdge(api, { watchdog: "5s" });
  const back = await request(api.path, "POST", "/v1/config/rollback");
  assert.deepEqual([back.status, json(back).verdict], [200, "dynamic"]);
  const to = await request(api.path, "POST", "/v1/config/rollback", "", { to: 2 });
  assert.equal(to.status, 200);
  const { configurations } = json(await request(api.path, "GET", "/v1/history"));
  const entries = configurations as Record<string, unknown>[];
  assert.deepEqual(entries.map(({ id, source, running }) => [id, source, running]), [
    [4, "rollback", true],
    [3, "rollback", false],
    [2, "patch", true],
    [1, "start", false],
  ]);
  assert.match(String(entries[0]?.at), /^\d{4}-\d\d-\d\dT/);
});

Deno.test("every write is in the audit log with who, what and outcome; no read is", async () => {
  await using api = await serve();
  await request(api.path, "GET", "/v1/config");
  await patchEdge(api, { watchdog: "5s" });
  await patchEdge(api, { base_id: 7 }, "?dry_run=true");
  await request(api.path, "POST", "/v1/services/nobody/restart");
  const audit = api.told.flatMap((fact) => fact.kind === "api_audit" ? [fact] : []);
  assert.deepEqual(audit.map(({ who, action, status, outcome }) => [who, action, status, outcome]), [
    ["unix socket", "PATCH /v1/config/services/edge", 200, "dynamic"],
    ["unix socket", "PATCH /v1/config/services/edge?dry_run=true", 409, "static parameter"],
    ["unix socket", "POST /v1/services/nobody/restart", 404, "unknown service"],
  ]);
});

Deno.test("Idempotency-Key asks once, and gets the outcome again; another request with it is refused", async () => {
  await using api = await serve({ acceptMs: 20 });
  const key = "idempotency-key: deploy-17\r\n";
  const first = await request(api.path, "POST", "/v1/services/edge/restart", key);
  assert.deepEqual([first.status, json(first).request], [202, "r1"]);
  api.control.happen(handoffFacts("r1").accepted);
  api.control.happen(handoffFacts("r1").live);
  const again = await request(api.path, "POST", "/v1/services/edge/restart?wait=live", key);
  assert.deepEqual([again.status, json(again).request, json(again).outcome], [200, "r1", "live"]);
  assert.equal(again.headers.get("idempotency-replayed"), "true");
  assert.equal(api.control.asked.length, 1);
  const other = await request(api.path, "POST", "/v1/services/edge/restart?force=true", key);
  assert.deepEqual([other.status, json(other).title], [422, "idempotency key reused"]);
  const long = await request(api.path, "POST", "/v1/services/edge/restart", `idempotency-key: ${"x".repeat(256)}\r\n`);
  assert.equal(long.status, 400);
  assert.equal((await request(api.path, "POST", "/v1/services/edge/restart", "idempotency-key: n\r\n")).status, 202);
  assert.equal(api.control.asked.length, 2);
});

Deno.test("GET epochs shows the epochs of one service", async () => {
  await using api = await serve();
  const answer = await request(api.path, "GET", "/v1/services/edge/epochs");
  assert.deepEqual(json(answer), { service: "edge", epochs: [] });
  assert.equal((await request(api.path, "GET", "/v1/services/constructor/epochs")).status, 404);
});
