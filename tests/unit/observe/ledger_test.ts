import assert from "node:assert/strict";
import type { Fact } from "../../../lib/core/fact.ts";
import { LedgerBook, type LedgerEntry } from "../../../lib/observe/ledger.ts";

const began: Fact = { kind: "handoff_began", handoff: 1, from: 0, to: 1, source: "signal", requests: ["r1"] };
const first: Fact = { kind: "epoch_live", epoch: 0, pid: 8, version: "x/1.39.3/y", tookMs: 200 };

function entriesOf(...facts: Fact[]): { readonly book: LedgerBook; readonly entries: LedgerEntry[] } {
  const book = new LedgerBook();
  const taken = facts.flatMap((fact, seq) => book.take({ seq, service: "edge", wallMs: 1_000, fact }));
  return { book, entries: taken.filter(({ kind }) => kind === "ended").map(({ entry }) => entry) };
}

Deno.test("ledger + a handoff is one entry with its digests, versions and times", () => {
  const { entries } = entriesOf(
    first,
    began,
    { kind: "preflight_passed", cached: false, tookMs: 80.04, bootstrapDigest: "bd", binaryDigest: "ed" },
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
    fromVersion: "1.39.3",
    preflightMs: 80,
    bootstrapDigest: "bd",
    binaryDigest: "ed",
    startMs: 170,
    envoyVersion: "1.40.0",
    liveMs: 260,
    outcome: "done",
    drainMs: 4_000,
  }]);
});

Deno.test("ledger + a failed handoff keeps its refusal, an open one is under way and then cut short", () => {
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
  const open = entriesOf(began).book;
  assert.equal(open.open()[0]?.outcome, "under_way");
  assert.equal(open.cutShort()[0]?.outcome, "cut_short");
  assert.deepEqual(open.open(), []);
});

Deno.test("ledger + the end of a service cuts short what still drains", () => {
  const live: Fact = { kind: "handoff_live", handoff: 1, from: 0, to: 1, requests: [], tookMs: 260 };
  const { entries } = entriesOf(began, live, { kind: "ended", exitCode: 0, reason: "stopped" });
  assert.deepEqual(entries.map(({ outcome, liveMs }) => [outcome, liveMs]), [["cut_short", 260]]);
});

Deno.test("ledger + joining another supervisor's epoch is a handoff too, from the start to the end of that epoch", () => {
  const { entries } = entriesOf(
    { kind: "start_began", epoch: 5, cause: "join" },
    { kind: "preflight_passed", cached: false, tookMs: 80, bootstrapDigest: "bd", binaryDigest: "ed" },
    { kind: "epoch_live", epoch: 5, pid: 9, version: "x/1.40.0/y", tookMs: 170 },
    { kind: "foreign_ended", epoch: 4, drainedMs: 9_000 },
  );
  const { from, to, source, outcome, drainMs, handoff } = entries[0]!;
  assert.deepEqual([from, to, source, outcome, drainMs, handoff], [4, 5, "join", "done", 9_000, undefined]);
});

Deno.test("ledger + a first start is no handoff, a join whose child dies is a failed one and the next try another", () => {
  const { entries, book } = entriesOf(
    { kind: "start_began", epoch: 0, cause: "first" },
    { kind: "start_began", epoch: 5, cause: "join" },
    { kind: "epoch_exited", epoch: 5, attempt: 1, exit: { code: 1 }, role: "child", livedMs: 5 },
    { kind: "start_began", epoch: 5, cause: "join" },
  );
  assert.deepEqual(entries.map(({ outcome, refusal }) => [outcome, refusal?.name]), [["failed", "child_died"]]);
  assert.equal(book.open().length, 1);
});
