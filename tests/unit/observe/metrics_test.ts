import assert from "node:assert/strict";
import type { Fact } from "../../../lib/core/fact.ts";
import type { ServiceStatus } from "../../../lib/core/status.ts";
import { Metrics } from "../../../lib/observe/metrics.ts";

const serving: ServiceStatus = {
  phase: "serving",
  ready: true,
  epochs: [
    {
      epoch: 4,
      attempt: 5,
      role: "newest",
      version: "1.40.0",
      bootstrapDigest: "b",
      binaryDigest: "e",
      admin: "127.0.0.1:1",
      ageMs: 1,
    },
    {
      epoch: 3,
      attempt: 4,
      role: "predecessor",
      bootstrapDigest: "b",
      binaryDigest: "e",
      admin: "127.0.0.1:1",
      ageMs: 9,
    },
  ],
  handoffs: 1,
  refused: [],
  watch: [],
};

function metricsOf(...facts: Fact[]): Metrics {
  const metrics = new Metrics({ status: () => ({ edge: serving }), droppedLogLines: () => 3 });
  facts.forEach((fact, index) => metrics.observe({ seq: index + 1, service: "edge", wallMs: 0, fact }));
  return metrics;
}

function line(text: string, start: string): string {
  return text.split("\n").find((one) => one.startsWith(start)) ?? `no ${start} in\n${text}`;
}

Deno.test("metrics + a handoff counts with its source and its phases", async () => {
  const { text } = await metricsOf(
    { kind: "handoff_began", handoff: 1, from: 3, to: 4, source: "bootstrap", requests: [] },
    { kind: "preflight_passed", cached: false, tookMs: 120, bootstrapDigest: "b", binaryDigest: "e" },
    { kind: "epoch_spawned", epoch: 4, attempt: 5, pid: 1 },
    { kind: "epoch_live", epoch: 4, pid: 1, version: "x/1.40.0/Clean", tookMs: 170 },
    { kind: "handoff_live", handoff: 1, from: 3, to: 4, requests: [], tookMs: 300 },
    { kind: "handoff_done", handoff: 1, from: 3, to: 4, requests: [], drainedMs: 15_000 },
  ).text();
  assert.equal(
    line(text, 'epochd_handoffs_total{service="edge",source="bootstrap",result="live"'),
    'epochd_handoffs_total{service="edge",source="bootstrap",result="live"} 1',
  );
  assert.equal(line(text, "epochd_handoff_seconds_sum"), 'epochd_handoff_seconds_sum{service="edge"} 0.3');
  assert.equal(line(text, "epochd_drain_seconds_sum"), 'epochd_drain_seconds_sum{service="edge"} 15');
  assert.equal(line(text, "epochd_preflight_seconds_sum"), 'epochd_preflight_seconds_sum{service="edge"} 0.12');
  assert.equal(line(text, "epochd_epochs_spawned_total"), 'epochd_epochs_spawned_total{service="edge"} 1');
});

Deno.test("metrics + a failed handoff counts its refusal by name", async () => {
  const { text } = await metricsOf(
    { kind: "handoff_began", handoff: 1, from: 3, to: 4, source: "api", requests: ["r1"] },
    {
      kind: "handoff_failed",
      handoff: 1,
      from: 3,
      to: 4,
      requests: ["r1"],
      refusal: { name: "child_died", detail: "x" },
      tookMs: 10,
    },
  ).text();
  assert.equal(
    line(text, 'epochd_handoffs_total{service="edge",source="api",result="failed"'),
    'epochd_handoffs_total{service="edge",source="api",result="failed"} 1',
  );
  assert.equal(line(text, "epochd_refusals_total{"), 'epochd_refusals_total{service="edge",reason="child_died"} 1');
});

Deno.test("metrics + what is so now is asked at the scrape", async () => {
  const { text } = await metricsOf().text();
  assert.equal(line(text, "epochd_ready{"), 'epochd_ready{service="edge"} 1');
  assert.equal(line(text, "epochd_epoch{"), 'epochd_epoch{service="edge",envoy_version="1.40.0"} 4');
  assert.equal(
    line(text, 'epochd_epochs{service="edge",role="predecessor"'),
    'epochd_epochs{service="edge",role="predecessor"} 1',
  );
  assert.match(line(text, "process_cpu_seconds_total"), / \d+(\.\d+)?$/);
  assert.match(line(text, "process_open_fds"), / [1-9]\d*$/);
});

Deno.test("metrics + child exits tell a clean end from a crash", async () => {
  const exited = (code: number, signal?: string): Fact => ({
    kind: "epoch_exited",
    epoch: 1,
    attempt: 1,
    exit: { code, ...(signal === undefined ? {} : { signal }) },
    role: "newest",
    livedMs: 1,
  });
  const { text } = await metricsOf(exited(0), exited(137, "SIGKILL"), exited(1)).text();
  for (const how of ["clean", "SIGKILL", "failed"]) {
    const labels = `service="edge",role="newest",how="${how}"`;
    assert.equal(line(text, `epochd_child_exits_total{${labels}`), `epochd_child_exits_total{${labels}} 1`);
  }
});

Deno.test("metrics + what never happened is 0, so that the first time shows as an increase", async () => {
  const { text } = await metricsOf().text();
  for (
    const labels of [
      'epochd_handoffs_total{service="edge",source="signal",result="failed"}',
      'epochd_triggers_total{service="edge",source="api",answer="dropped"}',
      'epochd_segment_repairs_total{service="edge",result="cleared"}',
      'epochd_newest_deaths_total{service="edge",answer="exit"}',
      'epochd_marker_failures_total{service="edge"}',
      'epochd_handoff_seconds_count{service="edge"}',
    ]
  ) assert.equal(line(text, labels), `${labels} 0`);
});

Deno.test("metrics + requests to the API count by the route's pattern, dropped log lines and the phase show", async () => {
  const metrics = metricsOf();
  const request = { route: "/v1/services/{name}/restart", method: "POST", code: 202 };
  for (const _ of [1, 2]) metrics.countRequest(request);
  const { text, type } = await metrics.text();
  const labels = 'epochd_api_requests_total{route="/v1/services/{name}/restart",method="POST",code="202"}';
  assert.equal(line(text, labels), `${labels} 2`);
  assert.equal(line(text, "epochd_log_lines_dropped_total"), "epochd_log_lines_dropped_total 3");
  assert.equal(
    line(text, 'epochd_phase{service="edge",phase="serving"'),
    'epochd_phase{service="edge",phase="serving"} 1',
  );
  assert.equal(line(text, 'epochd_phase{service="edge",phase="ended"'), 'epochd_phase{service="edge",phase="ended"} 0');
  assert.match(type, /^text\/plain; version=0\.0\.4/);
});
