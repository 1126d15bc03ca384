import assert from "node:assert/strict";
import type { Fact } from "../../../lib/core/fact.ts";
import { LedgerBook, type LedgerEntry, LedgerFile } from "../../../lib/observe/ledger.ts";
import { tempDir } from "../../support/tempdir.ts";

const began: Fact = { kind: "handoff_began", handoff: 1, from: 0, to: 1, source: "signal", requests: ["r1"] };

function entriesOf(...facts: Fact[]): { readonly book: LedgerBook; readonly entries: LedgerEntry[] } {
  const book = new LedgerBook();
  const entries = facts.flatMap((fact, seq) => book.take({ seq, service: "edge", wallMs: 1_000, fact }) ?? []);
  return { book, entries };
}

function entry(handoff: number): LedgerEntry {
  return {
    service: "edge",
    handoff,
    from: handoff - 1,
    to: handoff,
    source: "api",
    requests: [],
    beganAt: "2026-01-01T00:00:00.000Z",
    outcome: "done",
  };
}

Deno.test("ledger + a handoff is one entry with its digests and times", () => {
  const { entries } = entriesOf(
    began,
    { kind: "preflight_passed", cached: false, tookMs: 80, bootstrapDigest: "bd", binaryDigest: "ed" },
    { kind: "epoch_live", epoch: 1, pid: 9, version: "x/1.40.0/y", tookMs: 170 },
    { kind: "handoff_live", handoff: 1, from: 0, to: 1, requests: ["r1"], tookMs: 260 },
    { kind: "handoff_done", handoff: 1, from: 0, to: 1, requests: ["r1"], drainedMs: 4_000 },
  );
  assert.deepEqual(entries, [{
    service: "edge",
    handoff: 1,
    from: 0,
    to: 1,
    source: "signal",
    requests: ["r1"],
    beganAt: "1970-01-01T00:00:01.000Z",
    preflightMs: 80,
    bootstrapDigest: "bd",
    binaryDigest: "ed",
    startMs: 170,
    envoyVersion: "x/1.40.0/y",
    liveMs: 260,
    outcome: "done",
    drainMs: 4_000,
  }]);
});

Deno.test("ledger + a failed handoff keeps its refusal, an open one is cut short", () => {
  const refusal = { name: "live_timeout", detail: "x" } as const;
  const failed = entriesOf(began, {
    kind: "handoff_failed",
    handoff: 1,
    from: 0,
    to: 1,
    requests: [],
    refusal,
    tookMs: 5,
  });
  assert.equal(failed.entries[0]?.outcome, "failed");
  assert.deepEqual(failed.entries[0]?.refusal, refusal);
  assert.deepEqual(failed.book.cutShort(), []);
  assert.equal(entriesOf(began).book.cutShort()[0]?.outcome, "cut_short");
});

Deno.test("ledger file + newest first, rotated by size, a torn line is passed over", async () => {
  await using dir = tempDir();
  const problems: string[] = [];
  const file = new LedgerFile({ directory: dir.path, maxBytes: 400, problem: (problem) => problems.push(problem) });
  await Promise.all([1, 2, 3, 4, 5].map((number) => file.append(entry(number))));
  Deno.writeTextFileSync(dir.at("handoffs.jsonl"), '{"service":"ed', { append: true });
  assert.deepEqual((await file.read(3)).map(({ handoff }) => handoff), [5, 4, 3]);
  assert.ok(Deno.statSync(dir.at("handoffs.1.jsonl")).size >= 400);
  assert.deepEqual(problems, []);
});

Deno.test("ledger file + a directory that can't be written is told once and costs only lines", async () => {
  await using dir = tempDir();
  const problems: string[] = [];
  const file = new LedgerFile({ directory: dir.at("absent"), problem: (problem) => problems.push(problem) });
  await file.append(entry(1));
  await file.append(entry(2));
  assert.equal(problems.length, 1);
  assert.match(problems[0] ?? "", /^append to .*handoffs\.jsonl: /);
  assert.deepEqual(await file.read(5), []);
});
