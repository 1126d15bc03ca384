import assert from "node:assert/strict";
import { formatDuration, parseDurationMs } from "../../../lib/config/duration.ts";

Deno.test("duration reads units alone and together", () => {
  const cases: Record<string, number> = {
    "500ms": 500,
    "10s": 10_000,
    "1m30s": 90_000,
    "2h": 7_200_000,
    "1h1m1s1ms": 3_661_001,
    "1.5s": 1_500,
    "0.1s": 100,
    "0": 0,
    "0s": 0,
  };
  for (const [text, ms] of Object.entries(cases)) assert.equal(parseDurationMs(text), ms, text);
});

Deno.test("duration refuses what has no unit, no order, no whole milliseconds or is no duration", () => {
  const wrong = [
    "",
    "10",
    "s",
    "10 s",
    "-1s",
    "+1s",
    "1s1m",
    "1s1s",
    "1d",
    "1e3s",
    "0.5ms",
    "1,5s",
    "10S",
    "١s",
    "1s\n",
  ];
  for (const text of wrong) assert.equal(parseDurationMs(text), undefined, JSON.stringify(text));
});

Deno.test("duration is formatted so that it parses to the same", () => {
  for (const ms of [0, 1, 500, 1_000, 1_500, 45_000, 60_000, 90_000, 3_600_000, 86_400_000, 3_661_001]) {
    assert.equal(parseDurationMs(formatDuration(ms)), ms);
  }
  assert.equal(formatDuration(90_000), "1m30s");
  assert.equal(formatDuration(500), "500ms");
});
