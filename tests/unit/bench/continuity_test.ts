// Owns: that what is said of Envoy's stats is computed as Prometheus would. Must not: run an Envoy.
import assert from "node:assert/strict";
import { parseExposition } from "../../../bench/continuity/exposition.ts";
import { increase, type Point, rate, resets, total } from "../../../bench/continuity/promql.ts";
import { take } from "../../../bench/continuity/statsd.ts";
import { differing, lostAtResetsMs, rateDeviation } from "../../../bench/continuity/verdict.ts";

/** Each `stepMs` from `fromMs` on. */
function points(values: readonly number[], stepMs = 1_000, fromMs = 0): Point[] {
  return values.map((value, at) => ({ atMs: fromMs + at * stepMs, value }));
}

function close(actual: number | undefined, expected: number): void {
  assert.ok(actual !== undefined && Math.abs(actual - expected) < 1e-9, `${actual} is not ${expected}`);
}

Deno.test("rate of a steady counter is its slope, wherever the window lies", () => {
  const steady = points(Array.from({ length: 20 }, (_, at) => 1_000 + 50 * at));
  for (const atMs of [10_000, 10_100, 10_500, 10_900]) close(rate(steady, atMs, 5_000), 50);
});

Deno.test("increase goes on to both edges of the window, but only half a step where samples are missing", () => {
  const samples = points([1_000, 1_010, 1_020, 1_030]);
  // 300 ms before the first and 500 ms after the last: thought to have gone on.
  close(increase(samples, 3_500, 3_800), 38);
  // 7 s before the first: half a step is added there.
  close(increase(samples, 3_500, 10_500), 40);
  // 4 s after the last.
  close(increase(samples, 7_000, 7_300), 38);
});

Deno.test("increase does not go on below zero: there the counter began", () => {
  // From 2 on, 10 a second: 0.2 s before the first sample it was 0.
  close(increase(points([2, 12, 22]), 2_000, 2_900), 22);
});

Deno.test("a counter reset counts what is seen after it, and what was lost between shows as a dip", () => {
  const reset = points([100, 110, 120, 5, 15]);
  assert.deepEqual(resets(reset), [{ atMs: 3_000, before: 120, after: 5 }]);
  assert.equal(total(reset), 35);
  close(increase(reset, 4_500, 5_000), 35 * 5 / 4);
});

Deno.test("without two samples there is no rate; a sample at the beginning of the window is not in it", () => {
  assert.equal(rate([], 1_000, 5_000), undefined);
  assert.equal(rate(points([1]), 1_000, 5_000), undefined);
  assert.equal(rate(points([1, 2]), 1_000, 1_000), undefined);
  assert.deepEqual([total([]), resets([])], [0, []]);
});

Deno.test("deviation: none of what is the same, a dip and its depth where a scrape missed something", () => {
  const truth = points(Array.from({ length: 40 }, (_, at) => 10_000 + 100 * at));
  const none = rateDeviation(truth, truth, { rangeMs: 5_000, scrapeEveryMs: 1_000 });
  assert.deepEqual([none.dip, none.spike], [0, 0]);
  assert.ok(none.windows > 100);
  const missing = truth.map(({ atMs, value }, at) => ({ atMs, value: at < 20 ? value : value - 100 }));
  const { dip, spike } = rateDeviation(missing, truth, { rangeMs: 5_000, scrapeEveryMs: 1_000 });
  assert.ok(dip <= -20 && dip > -30, String(dip));
  assert.equal(spike, 0);
  // Nothing was scraped at all for longer than the window: that is a dip to zero, not a window less.
  const silent = truth.filter(({ atMs }) => atMs < 15_000 || atMs > 25_000);
  assert.equal(rateDeviation(silent, truth, { rangeMs: 5_000, scrapeEveryMs: 1_000 }).dip, -100);
});

Deno.test("what a reset lost is told in time of the load; what is counted twice is negative", () => {
  const truth = points([0, 100, 200, 300, 400]);
  close(lostAtResetsMs(points([0, 100, 40, 140, 240]), truth)[0], 600);
  close(lostAtResetsMs(points([0, 100, 99, 199, 120]), truth)[1], -200);
  assert.deepEqual(lostAtResetsMs(truth, truth), []);
});

Deno.test("a gauge's samples are compared with the truth of the same moment", () => {
  assert.equal(differing(points([25, 25, 26]), points([25, 25, 25])), 1);
  assert.equal(differing(points([25], 1_000, 7_000), points([25])), 1);
});

Deno.test("the text format is read by series, comments and what is no number left out", () => {
  const text = [
    "# TYPE a counter",
    'a{b="c d",e="}"} 12',
    "plain 1.5e3 1700000000000",
    "up +Inf",
    "",
    "not a line at all!",
  ].join("\n");
  assert.deepEqual([...parseExposition(text)].slice(0, 3), [['a{b="c d",e="}"}', 12], ["plain", 1_500], [
    "up",
    Infinity,
  ]]);
});

Deno.test("statsd: counters add up, gauges replace, timings are passed over", () => {
  const values = new Map<string, number>();
  for (const line of ["a.b:2|c", "a.b:3|c", "g:7|g", "g:4|g", "t:12|ms", "listener.127.0.0.1_80.x:1|g", "nonsense"]) {
    take(values, line);
  }
  assert.deepEqual([...values], [["a.b", 5], ["g", 4], ["listener.127.0.0.1_80.x", 1]]);
});
