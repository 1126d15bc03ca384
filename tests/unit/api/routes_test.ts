import assert from "node:assert/strict";
import { until, within } from "../../support/until.ts";
import { FakeControl, handoffFacts, servingStatus } from "./fake_control.ts";
import { request, serve } from "./serving.ts";

function json(body: string): Record<string, unknown> {
  return JSON.parse(body) as Record<string, unknown>;
}

Deno.test("GET /v1/status answers with what the supervisor says", async () => {
  await using api = await serve();
  const { status, headers, body } = await request(api.path, "GET", "/v1/status");
  assert.equal(status, 200);
  assert.match(headers.get("content-type") ?? "", /^application\/json/);
  assert.equal(headers.get("content-length"), String(new TextEncoder().encode(body).length));
  assert.deepEqual(json(body), { ...api.control.status(), config: api.scene.configuration.summary() });
});

Deno.test("GET /v1/status rounds times to a tenth of a millisecond", async () => {
  await using api = await serve();
  api.control.services = { edge: { ...servingStatus, waiting: { sources: ["api"], forMs: 48.408018000000084 } } };
  const { body } = await request(api.path, "GET", "/v1/status");
  assert.match(body, /"forMs":48\.4}/);
});

Deno.test("GET /healthz answers while the supervisor works, GET /readyz only while every service is ready", async () => {
  await using api = await serve();
  assert.equal((await request(api.path, "GET", "/healthz")).status, 200);
  assert.equal((await request(api.path, "GET", "/readyz")).status, 200);
  const core = { ...servingStatus, ready: false, phase: "starting", note: "not LIVE yet" } as const;
  api.control.services = { edge: servingStatus, core };
  const { status, headers, body } = await request(api.path, "GET", "/readyz");
  assert.equal(status, 503);
  assert.equal(headers.get("content-type"), "application/problem+json");
  assert.equal(json(body).detail, "not ready: core (starting, not LIVE yet)");
  assert.equal((await request(api.path, "GET", "/healthz")).status, 200);
});

Deno.test("POST restart answers 202 once the supervisor took it, even when it takes it at once", async () => {
  const control = new FakeControl();
  control.onTrigger = ({ request }) => control.happen(handoffFacts(request).accepted);
  await using api = await serve({}, control);
  const { status, body } = await request(api.path, "POST", "/v1/services/edge/restart");
  assert.equal(status, 202);
  assert.deepEqual(json(body), { service: "edge", request: "r1", outcome: "accepted" });
  assert.deepEqual(control.asked, [{ service: "edge", source: "api", force: false, drained: false, request: "r1" }]);
  assert.equal(control.observers, 0);
});

Deno.test("POST restart passes force on", async () => {
  await using api = await serve({ acceptMs: 1 });
  await request(api.path, "POST", "/v1/services/edge/restart?force=true");
  assert.equal(api.control.asked[0]?.force, true);
});

Deno.test("POST restart with wait answers when the new epoch is LIVE, or its predecessor has ended", async () => {
  for (const wait of ["live", "drained"] as const) {
    await using api = await serve();
    const answer = request(api.path, "POST", `/v1/services/edge/restart?wait=${wait}`);
    await until("it is asked", () => api.control.asked.length === 1);
    const facts = handoffFacts("r1");
    let answered = false;
    void answer.then(() => answered = true);
    for (const fact of [facts.accepted, facts.began, facts.passed, facts.spawned]) api.control.happen(fact);
    if (wait === "drained") api.control.happen(facts.live);
    await request(api.path, "GET", "/healthz");
    assert.equal(answered, false);
    api.control.happen(wait === "live" ? facts.live : facts.done);
    const { status, body } = await within("the answer", answer);
    assert.equal(status, 200);
    const common = { service: "edge", request: "r1", outcome: wait, from: 0, to: 1, tookMs: 300 };
    assert.deepEqual(json(body), wait === "live" ? common : { ...common, drainedMs: 900 });
    assert.equal(api.control.observers, 0);
  }
});

Deno.test("POST restart that is refused answers 409 with the refusal's name", async () => {
  const control = new FakeControl();
  await using api = await serve({}, control);
  for (
    const [wait, fact, name] of [["accepted", "dropped", "stopping"], ["live", "failed", "bootstrap_invalid"]] as const
  ) {
    control.onTrigger = ({ request }) => control.happen(handoffFacts(request)[fact]);
    const { status, headers, body } = await request(api.path, "POST", `/v1/services/edge/restart?wait=${wait}`);
    assert.equal(status, 409);
    assert.equal(headers.get("content-type"), "application/problem+json");
    const problem = json(body);
    assert.equal(problem.refusal, name);
    assert.equal(problem.type, `urn:epochd:problem:${name}`);
    assert.equal(problem.status, 409);
    assert.equal(problem.service, "edge");
    assert.equal(typeof problem.title, "string");
    assert.equal(typeof problem.detail, "string");
  }
});

Deno.test("POST restart refuses unknown services and wrong parameters before anything is asked", async () => {
  await using api = await serve();
  const cases = [
    ["/v1/services/nobody/restart", 404, "no service nobody, expected one of: edge"],
    ["/v1/services/edge/restart?wait=soon", 400, "wait=soon: expected accepted, live, drained"],
    ["/v1/services/edge/restart?force=yes", 400, "force=yes: expected true, false"],
    ["/v1/services/edge/restart?wiat=live", 400, "unknown parameter wiat: expected wait, force, drained, dry_run"],
  ] as const;
  for (const [target, status, detail] of cases) {
    const answer = await request(api.path, "POST", target);
    assert.equal(answer.status, status);
    assert.equal(json(answer.body).detail, detail);
  }
  assert.equal(api.control.asked.length, 0);
  assert.equal(api.control.observers, 0);
});

Deno.test("POST restart whose outcome does not come in time answers 504, and the request goes on", async () => {
  await using api = await serve({ waitMs: 30 });
  const { status, body } = await request(api.path, "POST", "/v1/services/edge/restart?wait=live");
  assert.equal(status, 504);
  assert.equal(json(body).request, "r1");
  assert.equal(api.control.observers, 0);
});

Deno.test("POST restart whose client leaves is no longer waited for", async () => {
  await using api = await serve();
  const connection = await Deno.connect({ transport: "unix", path: api.path });
  await connection.write(new TextEncoder().encode("POST /v1/services/edge/restart?wait=live HTTP/1.1\r\n\r\n"));
  await until("it is asked", () => api.control.observers === 1);
  connection.close();
  await until("the wait is over", () => api.control.observers === 0);
});

Deno.test("API answers 404 for what it does not have, and 405 with what it takes for another method", async () => {
  await using api = await serve();
  const nothing = await request(api.path, "GET", "/v2");
  assert.deepEqual([nothing.status, json(nothing.body).title], [404, "not found"]);
  for (
    const [method, target, allow] of [
      ["POST", "/v1/status", "GET"],
      ["DELETE", "/v1/services/edge/restart", "POST"],
      ["DELETE", "/v1/config", "GET, PUT, PATCH"],
    ] as const
  ) {
    const { status, headers } = await request(api.path, method, target);
    assert.deepEqual([status, headers.get("allow")], [405, allow]);
  }
});

Deno.test("API tells a bug in the log and to the client without its details", async () => {
  const control = new FakeControl();
  control.status = () => {
    throw new Error("secret state");
  };
  await using api = await serve({}, control);
  const { status, body } = await request(api.path, "GET", "/v1/status");
  assert.equal(status, 500);
  assert.ok(!body.includes("secret"));
  const bug = api.told.find(({ kind }) => kind === "bug");
  assert.ok(bug?.kind === "bug" && bug.problem.includes("secret state"));
});
