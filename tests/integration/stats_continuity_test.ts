// Owns: that Envoy's stats go on across handoffs: counters as deltas, gauges absolute. How well graphs show it is bench/continuity.ts.
import assert from "node:assert/strict";
import { total } from "../../bench/continuity/promql.ts";
import { CONNECTIONS, HANDOFFS, HELD, runContinuity, SINK_CONNECTIONS } from "../../bench/continuity/run.ts";
import { ENVOY_VERSIONS } from "../support/envoys.ts";

const HANDOFF_COUNT = 3;

for (const version of ENVOY_VERSIONS) {
  Deno.test(`stats across ${HANDOFF_COUNT} handoffs, Envoy ${version} + a sink counts each request once, gauges are what is held, epochd's counters go on`, async () => {
    const run = await runContinuity({
      version,
      program: Deno.env.get("EPOCHD_TEST_PROGRAM") === "dist" ? "dist" : "source",
      handoffs: HANDOFF_COUNT,
      everyMs: 2_700,
      scrapeEveryMs: 500,
      flushEveryMs: 100,
      requestsPerSecond: 150,
      held: 25,
      drainTimeMs: 1_000,
      parentShutdownTimeMs: 2_000,
    });
    assert.equal(run.failed, 0);
    assert.ok(run.sent > 0, "there must have been traffic");
    assert.equal(run.counted, run.sent);
    const last = (name: string) => run.envoy.series.get(name)?.at(-1)?.value;
    assert.deepEqual([last(CONNECTIONS), last(SINK_CONNECTIONS), last(HELD)], [25, 25, 25]);
    assert.equal(total(run.epochd.series.get(HANDOFFS) ?? []), HANDOFF_COUNT);
    for (const [name, points] of run.epochd.series) {
      points.forEach(({ value }, at) => assert.ok(value >= (points[at - 1]?.value ?? 0), `${name} fell to ${value}`));
    }
  });
}
