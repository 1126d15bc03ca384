import assert from "node:assert/strict";
import { judge } from "../../../lib/probe/judge.ts";
import { probe } from "../../../lib/probe/main.ts";
import { tempDir } from "../../support/tempdir.ts";
import { probeCases } from "./cases.ts";

Deno.test("probe answers every case of its table with the exit code and at most one line", async (test) => {
  await using table = probeCases();
  for (const { name, args, exitCode, line } of table.cases.filter((probeCase) => probeCase.process === undefined)) {
    await test.step(name, () => {
      table.refresh();
      const answer = probe(args, Date.now());
      assert.equal(answer.exitCode, exitCode, `${answer.stdout}${answer.stderr}`);
      const [said, silent] = exitCode === 2 ? [answer.stderr, answer.stdout] : [answer.stdout, answer.stderr];
      assert.equal(silent, "");
      if (line === undefined) assert.equal(said, "");
      else assert.match(said.replace(/\n$/, ""), line);
      if (exitCode !== 0) assert.equal(said.split("\n").length, 2);
    });
  }
});

Deno.test("probe takes a marker of exactly the greatest age, and none a millisecond older", async () => {
  await using dir = tempDir();
  const path = dir.write("marker", "");
  const writtenMs = 1_700_000_000_000;
  Deno.utimeSync(path, new Date(writtenMs), new Date(writtenMs));
  assert.equal(judge({ path, maxAgeMs: 10_000, nowMs: writtenMs + 10_000 }), undefined);
  assert.match(judge({ path, maxAgeMs: 10_000, nowMs: writtenMs + 10_001 }) ?? "", /too old by 1 ms/);
  assert.equal(judge({ path, maxAgeMs: 10_000, nowMs: writtenMs - 2_000 }), undefined);
  assert.match(judge({ path, maxAgeMs: 10_000, nowMs: writtenMs - 2_001 }) ?? "", /2001 ms from the future/);
});
