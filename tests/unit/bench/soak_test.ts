// Owns: that the soak counts what it should, and nothing else. Must not: run one.
import assert from "node:assert/strict";
import { requestExcuse, streamExcuse } from "../../../bench/soak/excuse.ts";
import { readOptions } from "../../../bench/soak/options.ts";
import { plot, roundUp } from "../../../bench/soak/plot.ts";
import { faults, type Soak, toMarkdown } from "../../../bench/soak/report.ts";
import { watchStandstills } from "../../../bench/soak/standstill.ts";
import {
  type HandoffRecord,
  quantiles,
  type Sample,
  slope,
  tallyByTrigger,
  thin,
  trend,
} from "../../../bench/soak/tally.ts";

const TIMES = { drainMs: 1_000, parentShutdownMs: 2_000 };

function sample(handoffs: number, more: Partial<Sample> = {}): Sample {
  return {
    atS: handoffs,
    handoffs,
    requests: 0,
    rssAnonKb: 24_000,
    openFiles: 22,
    threads: 9,
    cpuMs: 0,
    envoys: 2,
    zombies: 0,
    segmentBytes: 104,
    stateFiles: 4,
    stateBytes: 0,
    ledgerBytes: 0,
    p50Ms: 0.3,
    p99Ms: 1,
    maxMs: 2,
    ...more,
  };
}

const LOAD: Soak["load"] = {
  traffic: {
    durationMs: 60_000,
    requests: 1_000,
    failed: 0,
    failuresByKind: {},
    failures: [],
    streamsComplete: 0,
    streamsBroken: 0,
    streamsAbandoned: 0,
    reconnects: 4,
    idleCloses: 0,
    longestGapMs: 20,
    longestGapAtMs: 0,
    latency: { p50Ms: 0.3, p90Ms: 0.5, p99Ms: 1, p999Ms: 5, maxMs: 20 },
    generations: [],
    epochs: [0, 1],
    envoyVersions: [],
  },
  requestsFailed: 0,
  streamsComplete: 10,
  streamsBroken: 0,
  failures: [],
  excused: 0,
  excuses: [],
  longestStandstillMs: 60,
};

function soak(more: Partial<Soak> = {}): Soak {
  return {
    options: { handoffs: 1, requests: 1_000, requestsPerSecond: 500 },
    environment: {
      date: "now",
      cores: 2,
      cpu: "one",
      kernel: "6",
      memoryMb: 1,
      scheduling: "normal",
      load: [0, 0],
      compiled: "epochd 0.1.0",
    },
    envoyVersions: ["1.40.0"],
    durationMs: 60_000,
    load: LOAD,
    handoffs: [{ number: 1, trigger: "edit", atMs: 0, outcome: "done", liveMs: 50 }],
    samples: [sample(0), sample(1)],
    warnings: {},
    exit: { code: 0, signal: null, envoysLeft: 0 },
    ...more,
  };
}

Deno.test("soak's flags: the defaults, and a requests' number that follows the handoffs", () => {
  const all = readOptions([]);
  assert.ok(typeof all === "object" && !("problem" in all));
  assert.deepEqual([all.handoffs, all.requests, all.requestsPerSecond], [1_000, 1_000_000, 500]);
  const few = readOptions(["--handoffs", "50", "--output", "/somewhere"]);
  assert.deepEqual(few, { handoffs: 50, requests: 50_000, requestsPerSecond: 500, output: "/somewhere" });
  assert.equal(readOptions(["--help"]), "help");
});

Deno.test("soak's flags: what is wrong is told with flag, value and what is expected", () => {
  for (
    const [args, problem] of [
      [["--handoffs", "x"], '--handoffs is "x", expected a whole number from 1 to 1000000'],
      [["--rate", "0"], '--rate is "0", expected a whole number from 1 to 5000'],
      [["--requests", "-1"], /requests/],
      [["--requests", "1e3"], '--requests is "1e3", expected a whole number from 1 to 999999999'],
      [["--no-such"], /--no-such/],
      [["50"], /50/],
    ] as const
  ) {
    const read = readOptions(args);
    assert.ok(typeof read === "object" && "problem" in read, args.join(" "));
    if (typeof problem === "string") assert.equal(read.problem, problem);
    else assert.match(read.problem, problem);
  }
});

Deno.test("a failure is excused only where the bench itself, or the promise, explains it", () => {
  const failed = {
    atMs: 0,
    kind: "closed_early",
    detail: "closed_early: before the answer",
    client: "keep-1",
  } as const;
  assert.match(requestExcuse(failed, 1_700, TIMES) ?? "", /stood still for 1700 ms/);
  assert.equal(requestExcuse(failed, 900, TIMES), undefined);
  assert.equal(requestExcuse({ ...failed, client: "new-1" }, 1_700, TIMES), undefined);
  assert.equal(requestExcuse({ ...failed, kind: "refused" }, 1_700, TIMES), undefined);
  assert.equal(requestExcuse({ ...failed, kind: "timeout" }, 1_700, TIMES), undefined);
  const local = { ...failed, kind: "local", client: "new-1" } as const;
  assert.equal(requestExcuse({ ...local, detail: "connect: who knows" }, 0, TIMES), undefined);
  assert.ok(requestExcuse({ ...local, detail: "connect: Cannot assign requested address (os error 99)" }, 0, TIMES));
  assert.equal(streamExcuse("closed_early: 11 of 12 chunks", 1_990, TIMES), undefined);
  assert.ok(streamExcuse("closed_early: 11 of 12 chunks", 2_010, TIMES));
  assert.equal(streamExcuse("timeout: body paused for 30000 ms", 30_100, TIMES), undefined);
});

Deno.test("a standstill is seen in the moment in which it ends, and forgotten soon", () => {
  let nowMs = 0;
  using standstills = watchStandstills(() => nowMs);
  nowMs = 1_500;
  assert.equal(standstills.recentMs(), 1_500);
  nowMs = 1_600;
  assert.equal(standstills.recentMs(), 1_500);
  nowMs = 2_100;
  assert.equal(standstills.recentMs(), 500);
  assert.equal(standstills.longestMs(), 1_500);
});

Deno.test("handoffs are counted by trigger and outcome", () => {
  const records: HandoffRecord[] = [
    { number: 1, trigger: "edit", atMs: 0, outcome: "done", liveMs: 50, preflightMs: NaN },
    { number: 2, trigger: "edit", atMs: 0, outcome: "done", liveMs: 70, preflightMs: 2 },
    { number: 3, trigger: "edit", atMs: 0, outcome: "failed" },
    { number: 4, trigger: "binary", atMs: 0, outcome: "lost" },
  ];
  const rows = new Map(tallyByTrigger(records).map((row) => [row.trigger, row]));
  const edit = rows.get("edit")!;
  assert.deepEqual([edit.asked, edit.done, edit.failed, edit.lost], [3, 2, 1, 0]);
  assert.deepEqual([edit.live, edit.preflight], [{ p50: 50, p99: 70, max: 70 }, { p50: 2, p99: 2, max: 2 }]);
  assert.deepEqual([rows.get("binary")!.lost, rows.get("SIGHUP")!.asked], [1, 0]);
  assert.deepEqual(quantiles([]), { p50: 0, p99: 0, max: 0 });
});

Deno.test("a leak shows in the slope, a steady saw-tooth does not", () => {
  const leaking = Array.from({ length: 1_000 }, (_, at) => sample(at, { rssAnonKb: 24_000 + at + 500 * (at % 7) }));
  const found = trend(leaking, ({ rssAnonKb }) => rssAnonKb);
  assert.ok(Math.abs(found.perThousandHandoffs! - 1_000) < 20, String(found.perThousandHandoffs));
  assert.ok(found.late - found.early > 500);
  const steady = Array.from({ length: 1_000 }, (_, at) => sample(at, { rssAnonKb: 24_000 + 500 * (at % 7) }));
  assert.ok(Math.abs(trend(steady, ({ rssAnonKb }) => rssAnonKb).perThousandHandoffs!) < 20);
  assert.equal(trend([sample(0), sample(9)], ({ threads }) => threads).perThousandHandoffs, undefined);
  assert.equal(trend([], ({ threads }) => threads).most, 0);
  assert.equal(slope([[1, 5], [1, 7]]), 0);
});

Deno.test("thinning keeps the peaks", () => {
  const items = Array.from({ length: 1_000 }, (_, at) => at === 501 ? 99 : 1);
  const kept = thin(items, 100, (item) => item);
  assert.ok(kept.length <= 100 && kept.includes(99));
  assert.deepEqual(thin([1, 2], 100, (item) => item), [1, 2]);
});

Deno.test("each kind of failure makes the soak fail, by name", () => {
  assert.deepEqual(faults(soak()), []);
  assert.deepEqual(faults(soak({ load: { ...LOAD, requestsFailed: 2 } })), ["2 requests failed"]);
  assert.deepEqual(faults(soak({ load: { ...LOAD, streamsBroken: 1 } })), ["1 streams broke"]);
  assert.deepEqual(faults(soak({ load: { ...LOAD, excused: 3 } })), []);
  const failed: HandoffRecord = { number: 1, trigger: "edit", atMs: 0, outcome: "failed", detail: "child_died: why" };
  assert.deepEqual(faults(soak({ handoffs: [failed] })), ["1 handoffs failed or were lost"]);
  assert.match(toMarkdown(soak({ handoffs: [failed] })), /1 \(edit\) at 0 ms, failed: child_died: why/);
  assert.deepEqual(faults(soak({ exit: { code: 70, signal: null, envoysLeft: 1 } })), [
    "epochd ended with 70",
    "1 Envoys were left behind",
  ]);
});

Deno.test("the report says first what it is: whole or partial, failed or not", () => {
  assert.match(
    toMarkdown(soak()),
    /^# Soak\n\nNothing failed\.\n\n1 handoffs of 1, 1000 requests of 1000, in 1 minutes\./,
  );
  const text = toMarkdown(
    soak({ partial: "ended by SIGINT", load: { ...LOAD, requestsFailed: 1, failures: ["new-1: reset"] } }),
  );
  assert.match(text, /^# Soak\n\n\*\*Partial\*\*: ended by SIGINT\..*\n\n\*\*Failed\*\*: 1 requests failed\./);
  assert.match(text, /## Failures\n\n```\nnew-1: reset\n```/);
});

Deno.test("a plot is well-formed whatever it is given", () => {
  assert.deepEqual([0.3, 1, 1.2, 24, 51, 5_000].map(roundUp), [0.5, 1, 2, 50, 100, 5_000]);
  const nothing = plot([{ title: "a < b", unit: "ms", lines: [{ name: "", points: [] }] }], "min");
  assert.ok(!nothing.includes("NaN") && nothing.includes("a &lt; b"));
  const svg = plot([{ title: "a", unit: "ms", lines: [{ name: "x", points: [[0, 0], [10, 5]] }] }], "min");
  assert.match(svg, /points="70\.0,146\.0 880\.0,28\.0"/);
});
