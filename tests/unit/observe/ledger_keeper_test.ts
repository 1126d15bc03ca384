import assert from "node:assert/strict";
import type { Fact } from "../../../lib/core/fact.ts";
import { LedgerKeeper } from "../../../lib/observe/ledger_keeper.ts";
import type { Census } from "../../../lib/observe/observed.ts";
import { tempDir } from "../../support/tempdir.ts";
import { until } from "../../support/until.ts";

const began: Fact = { kind: "handoff_began", handoff: 1, from: 0, to: 1, source: "api", requests: ["r1"] };
const live: Fact = { kind: "handoff_live", handoff: 1, from: 0, to: 1, requests: ["r1"], tookMs: 260 };
const done: Fact = { kind: "handoff_done", handoff: 1, from: 0, to: 1, requests: ["r1"], drainedMs: 4_000 };

function keeperIn(directory: string, census: () => Promise<Census | undefined>) {
  const problems: string[] = [];
  const keeper = new LedgerKeeper({
    pid: 42,
    directoryOf: () => directory,
    census,
    problem: (problem) => problems.push(problem),
    pollMs: 5,
  });
  let seq = 0;
  const happen = (...facts: Fact[]) =>
    facts.forEach((fact) => keeper.observe({ seq: ++seq, service: "edge", wallMs: 0, fact }));
  return { keeper, happen, problems };
}

Deno.test("ledger keeper + a line tells who asked and what the predecessor held when its drain began and at its end", async () => {
  await using dir = tempDir();
  let draining = 9;
  let asked = 0;
  const { keeper, happen } = keeperIn(dir.path, () => {
    asked++;
    return Promise.resolve({ active: 12, draining });
  });
  keeper.credit("r1", "key ci from 10.0.0.7");
  happen(began, live);
  await until("the first answer", () => asked >= 1);
  draining = 3;
  await until("it is asked again", () => asked >= 3);
  // Envoy flushed after the parent's end: that 0 is no number of the parent's.
  draining = 0;
  happen(done);
  await keeper.close();
  const [entry] = await keeper.recent(["edge"], 5);
  assert.equal(entry?.who, "key ci from 10.0.0.7");
  assert.deepEqual([entry?.connectionsAtDrain, entry?.connectionsAtEnd, entry?.pid], [9, 3, 42]);
});

Deno.test("ledger keeper + Envoy that can't be asked costs the numbers, not the line; a source is who where nobody is named", async () => {
  await using dir = tempDir();
  const { keeper, happen, problems } = keeperIn(dir.path, () => Promise.reject(new Error("gone")));
  happen({ ...began, source: "signal", requests: [] }, live, done);
  await keeper.close();
  const [entry] = await keeper.recent(["edge"], 5);
  assert.deepEqual([entry?.who, entry?.outcome, entry?.connectionsAtEnd], ["SIGHUP", "done", undefined]);
  assert.deepEqual(problems, []);
});

Deno.test("ledger keeper + what is under way comes first, and is cut short at the end", async () => {
  await using dir = tempDir();
  const { keeper, happen } = keeperIn(dir.path, () => Promise.resolve(undefined));
  happen(began, live, done, { ...began, handoff: 2, from: 1, to: 2 });
  await until("the first line", async () => (await keeper.recent(["edge"], 5)).length === 2);
  assert.deepEqual((await keeper.recent(["edge"], 5)).map(({ outcome }) => outcome), ["under_way", "done"]);
  await keeper.close();
  assert.deepEqual((await keeper.recent(["edge"], 5)).map(({ outcome }) => outcome).sort(), ["cut_short", "done"]);
});
