import assert from "node:assert/strict";
import { followRequest, type Outcome, type Until } from "../../../lib/api/outcome.ts";
import type { Fact } from "../../../lib/core/fact.ts";
import { handoffFacts } from "./fake_control.ts";

const facts = handoffFacts("r1");

function outcomes(until: Until, happened: readonly Fact[], service = "edge"): readonly (Outcome | undefined)[] {
  const follow = followRequest("edge", "r1", until);
  return happened.map((fact, seq) => follow({ seq, service, wallMs: 0, fact }));
}

const whole = [facts.accepted, facts.began, facts.passed, facts.spawned, facts.live, facts.done];

Deno.test("outcome comes with the fact that is waited for, and not before", () => {
  assert.deepEqual(outcomes("accepted", whole)[0], { kind: "accepted" });
  assert.deepEqual(outcomes("live", whole.slice(0, 5)), [
    ...Array(4).fill(undefined),
    { kind: "live", from: 0, to: 1, tookMs: 300 },
  ]);
  assert.deepEqual(outcomes("drained", whole), [
    ...Array(5).fill(undefined),
    { kind: "drained", from: 0, to: 1, tookMs: 300, drainedMs: 900 },
  ]);
});

Deno.test("outcome of a request that joined others is accepted too", () => {
  const joined: Fact = { kind: "trigger_coalesced", source: "api", requests: ["r0", "r1"], waiting: 2 };
  assert.deepEqual(outcomes("accepted", [joined]), [{ kind: "accepted" }]);
  assert.deepEqual(outcomes("live", [joined]), [undefined]);
});

Deno.test("outcome is the refusal wherever it comes from", () => {
  for (const until of ["accepted", "live", "drained"] as const) {
    assert.deepEqual(outcomes(until, [facts.dropped]), [
      { kind: "refused", refusal: { name: "stopping", detail: "epochd stops" } },
    ]);
  }
  assert.deepEqual(outcomes("live", [facts.began, facts.failed]).at(-1), {
    kind: "refused",
    refusal: { name: "bootstrap_invalid", detail: "envoy.yaml: no such field" },
  });
});

Deno.test("outcome of a service that ends is a refusal, so that nobody waits for ever", () => {
  const [outcome] = outcomes("drained", [{ kind: "ended", exitCode: 1, reason: "newest died" }]);
  assert.deepEqual(outcome, {
    kind: "refused",
    refusal: { name: "stopping", detail: "service edge has ended: newest died" },
  });
});

Deno.test("outcome ignores other requests and other services", () => {
  const other = handoffFacts("r2");
  assert.deepEqual(outcomes("accepted", [other.accepted, other.dropped, other.live, other.failed]), [
    ...Array(4).fill(undefined),
  ]);
  assert.deepEqual(outcomes("drained", whole, "core"), [...Array(6).fill(undefined)]);
});
