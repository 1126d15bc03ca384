// Owns: the drop meter's arithmetic over time, and the form of its plots. What a plot looks like is for eyes.
import assert from "node:assert/strict";
import { plotSvg } from "../../../bench/meter/plot.ts";
import { longestGap, percentile, timeline } from "../../../bench/meter/timeline.ts";

Deno.test("percentile + the least value that so many do not exceed", () => {
  const values = Array.from({ length: 100 }, (_, at) => at + 1);
  assert.deepEqual([0, 0.5, 0.99, 0.995, 1].map((share) => percentile(values, share)), [1, 50, 99, 100, 100]);
  assert.equal(percentile([7], 0.5), 7);
  assert.ok(Number.isNaN(percentile([], 0.5)));
});

Deno.test("timeline + windows of one length, empty ones without latency, the incomplete last one left out", () => {
  const answers = [{ atMs: 1_010, tookMs: 3 }, { atMs: 1_020, tookMs: 1 }, { atMs: 1_510, tookMs: 2 }, {
    atMs: 1_760,
    tookMs: 9,
  }];
  assert.deepEqual(timeline(answers, 1_000, 1_800, 250), [
    { fromMs: 0, perSecond: 8, p50Ms: 1, p99Ms: 3, maxMs: 3 },
    { fromMs: 250, perSecond: 0 },
    { fromMs: 500, perSecond: 4, p50Ms: 2, p99Ms: 2, maxMs: 2 },
  ]);
  assert.deepEqual(timeline([], 1_000, 1_000, 250), []);
});

Deno.test("longest gap + begin and end included, whatever the order", () => {
  assert.equal(longestGap([{ atMs: 300, tookMs: 1 }, { atMs: 100, tookMs: 1 }], 0, 350), 200);
  assert.equal(longestGap([], 0, 500), 500);
});

const WINDOWS = [
  { fromMs: 0, perSecond: 2_000, p50Ms: 0.2, p99Ms: 2, maxMs: 30 },
  { fromMs: 250, perSecond: 0 },
  { fromMs: 500, perSecond: 1_900, p50Ms: 0.1, p99Ms: 1, maxMs: 3 },
];

Deno.test("plot + lines break where nothing was answered, changes and drops are marked, both themes have colours", () => {
  const svg = plotSvg({
    title: `a <peer> & "another"`,
    durationMs: 750,
    windows: WINDOWS,
    marks: [{ atMs: 250, kind: "live" }, { atMs: 400, kind: "gone" }, { atMs: 300, kind: "drop" }, {
      atMs: 300.01,
      kind: "drop",
    }],
  });
  const count = (pattern: RegExp) => [...svg.matchAll(pattern)].length;
  assert.equal(/class="p50" d="(M[^M]+M[^"]+)"\/>\s*<line class="drop"/.test(svg), true, "two pieces of a line");
  // One of each is in the legend; drops in one place are one tick.
  assert.deepEqual([count(/class="live"/g), count(/class="gone"/g), count(/class="drop"/g)], [2, 2, 2]);
  assert.match(svg, /a &lt;peer&gt; &amp; &quot;another&quot;/);
  assert.match(svg, /prefers-color-scheme: dark/);
  assert.doesNotMatch(svg, /NaN|Infinity|undefined/);
});

Deno.test("plot + nothing measured at all is still a picture", () => {
  const svg = plotSvg({ title: "nothing", durationMs: 0, windows: [], marks: [] });
  assert.doesNotMatch(svg, /NaN|Infinity|undefined/);
});
