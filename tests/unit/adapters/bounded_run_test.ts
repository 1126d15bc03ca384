import { deepStrictEqual, strictEqual } from "node:assert/strict";
import { runBounded } from "../../../lib/adapters/bounded_run.ts";
import { readProcStat } from "../../../lib/adapters/proc_stat.ts";
import { tempDir } from "../../support/tempdir.ts";
import { until, within } from "../../support/until.ts";

const never = new AbortController().signal;
const sh = (script: string, run = { timeoutMs: 10_000, signal: never }) =>
  within("the run", runBounded("/bin/sh", ["-c", script], run));

Deno.test("runBounded: exit code and both streams", async () => {
  deepStrictEqual(await sh("echo out; echo err >&2; exit 3"), {
    kind: "ended",
    code: 3,
    stdout: "out\n",
    stderr: "err\n",
  });
  deepStrictEqual(await sh("kill -9 $$"), { kind: "ended", code: 137, stdout: "", stderr: "" });
});

Deno.test("runBounded: keeps the end of what is too long, and never blocks the writer", async () => {
  const ran = await sh("head -c 3000000 /dev/zero | tr '\\0' x >&2; printf END >&2");
  if (ran.kind !== "ended") throw new Error(ran.kind);
  strictEqual(ran.stderr.length, 65_536);
  strictEqual(ran.stderr.endsWith("xEND"), true);
});

Deno.test("runBounded: ends and reaps what takes too long", async () => {
  await using dir = tempDir();
  const pid = dir.at("pid");
  strictEqual((await sh(`echo $$ > ${pid}; exec sleep 600`, { timeoutMs: 150, signal: never })).kind, "timeout");
  strictEqual(await readProcStat(Number(Deno.readTextFileSync(pid))), undefined);
});

Deno.test("runBounded: an abort ends and reaps at once, before the start and after it", async () => {
  await using dir = tempDir();
  const pid = dir.at("pid");
  const abort = new AbortController();
  const run = sh(`echo $$ > ${pid}; exec sleep 600`, { timeoutMs: 60_000, signal: abort.signal });
  await until("the child has started", () => Deno.readTextFileSync(pid));
  abort.abort();
  strictEqual((await run).kind, "aborted");
  strictEqual(await readProcStat(Number(Deno.readTextFileSync(pid))), undefined);
  Deno.removeSync(pid);
  strictEqual((await sh(`echo $$ > ${pid}`, { timeoutMs: 60_000, signal: abort.signal })).kind, "aborted");
  strictEqual([...Deno.readDirSync(dir.path)].length, 0);
});

Deno.test("runBounded: a grandchild that keeps the pipes open doesn't hold the answer", async () => {
  await using dir = tempDir();
  const pid = dir.at("pid");
  const ran = await sh(`echo said; sleep 600 & echo $! > ${pid}; exit 0`);
  try {
    deepStrictEqual(ran, { kind: "ended", code: 0, stdout: "said\n", stderr: "" });
  } finally {
    Deno.kill(Number(Deno.readTextFileSync(pid)), "SIGKILL");
  }
});

Deno.test("runBounded: what can't be started", async () => {
  const ran = await runBounded("/nowhere/envoy", [], { timeoutMs: 1000, signal: never });
  strictEqual(ran.kind === "failed" && ran.error instanceof Deno.errors.NotFound, true);
});
