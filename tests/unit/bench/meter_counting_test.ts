// Owns: how the drop meter counts, and whose fault a loss is: drops, Envoy's own limits, clients told to go. No process, no clock.
import assert from "node:assert/strict";
import { excuseOf, type Limit, type Mark } from "../../../bench/meter/blame.ts";
import type { LoadReport } from "../../../bench/meter/load.ts";
import { parseLog, parseWrkErrors } from "../../../bench/meter/load_log.ts";
import { scenarioReport } from "../../../bench/meter/meter_report.ts";
import type { Protocol } from "../../../bench/meter/protocols.ts";
import { type Loss, type LossKind, type Session, Tally } from "../../../bench/meter/tally.ts";

const BOUNDS = { drainTimeMs: 3_000, parentShutdownTimeMs: 5_000 };
const HANDOFF: Mark = {
  number: 1,
  kind: "handoff",
  triggeredAtMs: 10_000,
  liveAtMs: 10_200,
  goneAtMs: 15_220,
  from: "1.40.0",
  to: "1.40.0",
};
const OLD: Mark = { ...HANDOFF, from: "1.39.3" };
const REPLACED: Mark = { ...HANDOFF, kind: "replaced", goneAtMs: 10_050 };
const STOP: Mark = { number: 1, kind: "stop", triggeredAtMs: 10_000, goneAtMs: 13_100, from: "1.40.0" };

function loss(kind: LossKind, atMs: number, sentAtMs = atMs - 1): Loss {
  return { kind, atMs, sentAtMs, detail: "as told" };
}

const CASES: readonly [string, Protocol | "load", Loss, Mark, Limit | undefined][] = [
  ["a reset in the middle of a handoff", "h1-keep-alive", loss("reset", 12_000), HANDOFF, undefined],
  ["a refused connection in a handoff", "h1-new", loss("refused", 10_210), HANDOFF, undefined],
  [
    "a session cut at parent-shutdown, though it should have ended before",
    "tcp",
    loss("reset", 15_210),
    HANDOFF,
    undefined,
  ],
  ["what is never closed, cut at parent-shutdown", "tcp-for-ever", loss("reset", 15_210), HANDOFF, "parent_shutdown"],
  ["the same, cut while the parent drains", "tcp-for-ever", loss("reset", 12_000), HANDOFF, undefined],
  ["the same, refused", "tcp-for-ever", loss("refused", 15_210), HANDOFF, undefined],
  ["the same where the parent had been killed", "tcp-for-ever", loss("reset", 10_050), REPLACED, undefined],
  ["a datagram in the dark of an old parent", "udp", loss("unanswered", 12_700, 12_000), OLD, "udp_dark"],
  ["a datagram right after that parent's end", "udp", loss("unanswered", 16_000, 15_300), OLD, "udp_dark"],
  ["a datagram long after it", "udp", loss("unanswered", 18_000, 17_300), OLD, undefined],
  ["a datagram while Envoy 1.40 drains", "udp", loss("unanswered", 12_700, 12_000), HANDOFF, undefined],
  ["a datagram that Envoy 1.40 is at when it ends", "udp", loss("unanswered", 15_900, 15_190), HANDOFF, "udp_end"],
  ["a datagram after the end of Envoy 1.40", "udp", loss("unanswered", 16_000, 15_290), HANDOFF, undefined],
  ["a datagram at the end of a parent that was killed", "udp", loss("unanswered", 10_740, 10_040), REPLACED, undefined],
  ["an HTTP/3 request while an old Envoy drains", "h3", loss("unanswered", 15_000, 12_000), OLD, undefined],
  ["a connection refused after a stop", "h1-new", loss("refused", 13_050), STOP, "stopped"],
  ["a connection that is reset as the listener closes", "h1-new", loss("reset", 13_010, 13_009), STOP, "stopped"],
  ["a request that is reset while a stop drains", "h1-keep-alive", loss("reset", 10_020), STOP, undefined],
  ["what is never closed, cut when the drain time is over", "tcp-for-ever", loss("reset", 13_010), STOP, "stopped"],
  ["the same, cut at the signal", "tcp-for-ever", loss("reset", 10_010), STOP, undefined],
  ["an answer of the wrong kind", "load", loss("wrong", 12_000), OLD, undefined],
];

for (const [what, protocol, seen, mark, limit] of CASES) {
  Deno.test(`drop meter + ${what} is ${limit === undefined ? "a drop" : `Envoy's own (${limit})`}`, () => {
    assert.equal(excuseOf(protocol, seen, [mark], BOUNDS)?.limit, limit);
  });
}

Deno.test("drop meter + what two handoffs could explain belongs to the later one", () => {
  const next: Mark = { ...OLD, number: 2, triggeredAtMs: 15_230, liveAtMs: 15_400, goneAtMs: 20_420 };
  const excuse = excuseOf("udp", loss("unanswered", 17_300, 15_300), [OLD, next], BOUNDS);
  assert.deepEqual([excuse?.limit, excuse?.mark.number], ["udp_dark", 2]);
});

Deno.test("tally + told to go and idle closes are no losses; what is taken back was never sent", () => {
  const tally = new Tally();
  for (const atMs of [100, 200, 450]) {
    tally.sent();
    tally.answered(5, atMs);
  }
  tally.toldToGo();
  tally.idleClosed();
  tally.sent();
  tally.unsent();
  tally.sent();
  tally.lost(loss("reset", 500));
  tally.finish(900);
  const { sent, answered, toldToGo, idleClosed, losses, longestGapMs } = tally.counts();
  assert.deepEqual([sent, answered, toldToGo, idleClosed, losses.length], [4, 3, 1, 1, 1]);
  assert.equal(longestGapMs, 450, "from the last answer to the end");
});

Deno.test("tally + the wait for the first answer is no gap, and pieces of a stream end one", () => {
  const tally = new Tally();
  tally.sent();
  tally.piece(90, 5_000);
  tally.piece(100, 5_100);
  tally.answered(0, 5_300);
  tally.finish(5_300);
  tally.finish(99_000);
  assert.deepEqual([tally.counts().answered, tally.counts().longestGapMs], [1, 200]);
});

const LOAD: LoadReport = {
  tool: "wrk",
  startMs: 9_000,
  endMs: 20_000,
  answers: Array.from({ length: 1_100 }, (_, at) => ({ atMs: 9_005 + 10 * at, tookMs: 1 })),
  wrong: [{ sentAtMs: 12_000, atMs: 12_001, status: 503 }],
  toldToGo: 16,
  errors: { refused: 40_000, reset: 2, unanswered: 0 },
  restartsAtMs: [],
};

function reportOf(marks: readonly Mark[], losses: readonly Loss[], load = LOAD, sessions: readonly Session[] = []) {
  const tally = new Tally();
  for (const session of sessions) tally.session(session);
  for (const one of losses) {
    tally.sent();
    tally.lost(one);
  }
  const counts = new Map([["udp", tally.counts()]] as const);
  const about = { scenario: "restart", subject: "s", key: "k", envoy: "1.40.0" } as const;
  return scenarioReport({ ...about, marks, bounds: BOUNDS, counts, load });
}

Deno.test("scenario report + drops and Envoy's own are counted apart, and the latter by version", () => {
  const quiet = { ...LOAD, wrong: [], errors: { refused: 0, reset: 0, unanswered: 0 } };
  const report = reportOf([OLD], [loss("unanswered", 12_700, 12_000), loss("unanswered", 19_000, 18_300)], quiet);
  assert.equal(report.drops, 1);
  assert.deepEqual(report.rows[0]?.drops, { unanswered: 1 });
  assert.deepEqual(report.rows[0]?.limits, { udp_dark: 1 });
  assert.deepEqual(report.ownLimits, [{ from: "1.39.3", to: "1.40.0", handoffs: 1, counts: { udp_dark: 1 } }]);
  assert.deepEqual(report.dropsAtMs, [10_000]);
});

Deno.test("scenario report + connections held across a handoff, and through its whole drain", () => {
  const sessions = [[9_000, 10_100], [9_000, 12_000], [9_500, 13_300], [10_300, 14_000]] as const;
  const [row] =
    reportOf([HANDOFF], [], LOAD, sessions.map(([openedAtMs, lastAtMs]) => ({ openedAtMs, lastAtMs }))).rows;
  assert.deepEqual([row?.heldAcross, row?.wholeDrains], [2, 1]);
});

Deno.test("scenario report + each kind of the load's errors counts, wrk's tight tries once a connection and change", () => {
  const report = reportOf([REPLACED], []);
  assert.deepEqual(report.rows[1]?.drops, { refused: 16, reset: 2, wrong: 1 });
  assert.equal(report.rows[1]?.sent, 1_100 + 19);
  assert.equal(report.drops, 19);
  assert.deepEqual(report.losses.map(({ detail }) => detail), [
    "2 reset, counted by wrk",
    "16 refused, counted by wrk",
    "1 wrong, status 503",
  ]);
});

Deno.test("scenario report + connections that the load finds refused after a stop are no drops", () => {
  const load = { ...LOAD, wrong: [], errors: { refused: 500, reset: 1, unanswered: 0 } };
  const report = reportOf([STOP], [], load);
  assert.deepEqual([report.rows[1]?.limits, report.rows[1]?.drops], [{ stopped: 16 }, { reset: 1 }]);
});

Deno.test("load log + answers, wrong ones and those told to go are read; a line cut in the middle is not counted", () => {
  const log = parseLog("1000000\t200\t1500\t0\n1002000\t503\t700\t0\n1003000\t200\t100\t1\n1004000\t20");
  assert.deepEqual(log.answers, [{ atMs: 1_001.5, tookMs: 1.5 }, { atMs: 1_003.1, tookMs: 0.1 }]);
  assert.deepEqual(log.wrong, [{ sentAtMs: 1_002, atMs: 1_002.7, status: 503 }]);
  assert.equal(log.toldToGo, 1);
});

Deno.test("wrk's last words + socket errors by kind, none where it says nothing", () => {
  const words = "  17994 requests in 12.14s\n  Socket errors: connect 3, read 113, write 4, timeout 2\n";
  assert.deepEqual(parseWrkErrors(words), { refused: 7, reset: 113, unanswered: 2 });
  assert.deepEqual(parseWrkErrors("17994 requests in 12.14s"), { refused: 0, reset: 0, unanswered: 0 });
});
