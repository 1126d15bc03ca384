import assert from "node:assert/strict";
import type { LedgerEntry } from "../../../lib/observe/ledger.ts";
import { handoffFacts } from "./fake_control.ts";
import { request, serve } from "./serving.ts";

const entry: LedgerEntry = {
  service: "edge",
  handoff: 1,
  from: 0,
  to: 1,
  source: "api",
  requests: ["r1"],
  who: "key ci",
  beganAt: "2026-01-01T00:00:00.000Z",
  outcome: "done",
};

Deno.test("GET /metrics answers in Prometheus' type, uncached", async () => {
  await using api = await serve();
  const { status, headers, body } = await request(api.path, "GET", "/metrics");
  assert.equal(status, 200);
  assert.match(headers.get("content-type") ?? "", /^text\/plain; version=0\.0\.4/);
  assert.equal(headers.get("cache-control"), "no-store");
  assert.equal(body, "epochd_ready 1\n");
});

Deno.test("every request counts once, by the pattern of its route and its status, whatever the client sends", async () => {
  await using api = await serve();
  await request(api.path, "GET", "/v1/services/edge/epochs");
  await request(api.path, "GET", "/v1/services/nobody/epochs");
  await request(api.path, "GET", "/wp-login.php");
  await request(api.path, "DELETE", "/v1/status");
  await request(api.path, "BREW", "/v1/status");
  assert.deepEqual(api.observed.requests.map(({ route, method, code }) => `${method} ${route} ${code}`), [
    "GET /v1/services/{name}/epochs 200",
    "GET /v1/services/{name}/epochs 404",
    "GET none 404",
    "DELETE none 405",
    "other none 405",
  ]);
});

Deno.test("GET /v1/history has both kinds, each saying which it is; kind asks for one", async () => {
  await using api = await serve();
  api.observed.ledger = [entry];
  const history = async (query: string) => JSON.parse((await request(api.path, "GET", `/v1/history${query}`)).body);
  const all = await history("");
  assert.deepEqual(all.handoffs, [{ kind: "handoff", ...entry }]);
  assert.deepEqual(all.configurations.map(({ kind, id }: { kind: string; id: number }) => [kind, id]), [[
    "configuration",
    1,
  ]]);
  assert.deepEqual((await history("?kind=handoff")).configurations, []);
  assert.deepEqual((await history("?kind=configuration")).handoffs, []);
  assert.equal((await request(api.path, "GET", "/v1/history?kind=rumour")).status, 400);
});

Deno.test("GET /v1/status asks Envoy for its connections only where that is asked for", async () => {
  await using api = await serve();
  api.observed.census = { edge: { active: 5, draining: 2 } };
  const status = async (query: string) => JSON.parse((await request(api.path, "GET", `/v1/status${query}`)).body);
  assert.equal((await status("")).connections, undefined);
  assert.deepEqual((await status("?connections=true")).connections, { edge: { active: 5, draining: 2 } });
});

Deno.test("GET /v1/events with follow=false ends after what is held", async () => {
  await using api = await serve();
  api.control.happen(handoffFacts("r1").began);
  api.control.happen(handoffFacts("r1").live);
  const { body } = await request(api.path, "GET", "/v1/events?follow=false", "last-event-id: 0\r\n");
  assert.deepEqual(body.match(/^event: .*$/gm), ["event: handoff_began", "event: handoff_live"]);
  assert.equal(api.control.observers, 0);
});

Deno.test("a restart and a change are credited to who asked", async () => {
  await using api = await serve({ acceptMs: 1 });
  await request(api.path, "POST", "/v1/services/edge/restart");
  assert.deepEqual([...api.observed.credits], [["r1", "unix socket"]]);
  await request(api.path, "POST", "/v1/config/reload");
  assert.ok([...api.observed.credits.values()].every((who) => who === "unix socket"));
  assert.ok(api.observed.credits.size > 1);
});

Deno.test("GET / is one page that runs nothing but its own script, and is not sent again", async () => {
  await using api = await serve();
  const { status, headers, body } = await request(api.path, "GET", "/");
  assert.equal(status, 200);
  const policy = headers.get("content-security-policy") ?? "";
  for (
    const part of [
      "default-src 'none'",
      "connect-src 'self'",
      "frame-ancestors 'none'",
      "script-src 'sha256-",
      "style-src 'sha256-",
    ]
  ) {
    assert.ok(policy.includes(part), policy);
  }
  assert.ok(!policy.includes("unsafe"), policy);
  assert.doesNotMatch(body, /\son\w+=|javascript:|<link[^>]+stylesheet|src="/);
  const [, script = ""] = /<script>([\s\S]*)<\/script>/.exec(body) ?? [];
  const digest = new Uint8Array(await crypto.subtle.digest("SHA-256", new TextEncoder().encode(script)));
  assert.ok(
    policy.includes(`'sha256-${btoa(String.fromCharCode(...digest))}'`),
    "the policy names the script that is sent",
  );
  const again = await request(api.path, "GET", "/", `if-none-match: ${headers.get("etag")}\r\n`);
  assert.equal(again.status, 304);
});

Deno.test("what a browser sends for a page of elsewhere is refused and written down; curl, the own page and a link are let in", async () => {
  await using api = await serve();
  const of = async (method: string, target: string, headers: string) => {
    const lines = headers.split("|").filter((line) => line !== "").map((line) => `${line}\r\n`).join("");
    return (await request(api.path, method, target, lines)).status;
  };
  const restart = "/v1/services/edge/restart";
  assert.equal(await of("POST", restart, "sec-fetch-site: cross-site|origin: https://evil.example"), 403);
  assert.equal(await of("POST", restart, "sec-fetch-site: same-site|origin: http://localhost:1"), 403);
  assert.equal(await of("POST", restart, "origin: null"), 403);
  assert.equal(
    await of("POST", restart, "sec-fetch-site: cross-site|sec-fetch-mode: navigate|sec-fetch-dest: document"),
    403,
  );
  assert.equal(await of("GET", "/v1/status", "sec-fetch-site: cross-site"), 403);
  // A name of somebody else's that leads here: to its page this listener is its own site.
  assert.equal(await of("GET", "/v1/status", "sec-fetch-site: same-origin"), 403);
  assert.equal(api.control.asked.length, 0);
  const denied = api.told.filter((fact) => fact.kind === "api_audit");
  assert.ok(
    denied.length === 6 && denied.every((fact) => fact.kind === "api_audit" && fact.outcome === "foreign_page"),
  );
  assert.equal(await of("GET", "/v1/status", ""), 200);
  assert.equal(
    await of("GET", "/", "sec-fetch-site: cross-site|sec-fetch-mode: navigate|sec-fetch-dest: document"),
    403,
    "not by another name",
  );
});
