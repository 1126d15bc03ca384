import assert from "node:assert/strict";
import type { LedgerEntry } from "../../../lib/observe/ledger.ts";
import { LedgerFile } from "../../../lib/observe/ledger_file.ts";
import { tempDir } from "../../support/tempdir.ts";

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

Deno.test("ledger file + a line after a torn one is whole", async () => {
  await using dir = tempDir();
  const file = new LedgerFile({ directory: dir.path, problem: () => {} });
  Deno.writeTextFileSync(dir.at("handoffs.jsonl"), '{"service":"ed');
  await file.append(entry(7));
  assert.deepEqual((await file.read(5)).map(({ handoff }) => handoff), [7]);
});

Deno.test("ledger file + is readable by its owner only", async () => {
  await using dir = tempDir();
  await new LedgerFile({ directory: dir.path, problem: () => {} }).append(entry(1));
  assert.equal(Deno.statSync(dir.at("handoffs.jsonl")).mode! & 0o777, 0o600);
});
