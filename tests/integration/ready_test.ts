// Owns: the ready marker over the life of an epochd, and what epochd-probe says of it.
import assert from "node:assert/strict";
import { until } from "../support/until.ts";
import { freePort } from "../support/ports.ts";
import { eventsOf, handoff, probe, scene } from "./scene.ts";

Deno.test("the marker comes with LIVE, is refreshed, outlives a handoff, and goes at SIGTERM before the drain has ended", async () => {
  await using here = scene();
  const epochd = await here.start();
  await until("the probe says ready", async () => (await probe(epochd)).code === 0);
  const [writtenMs, epoch, pid] = markerOf(epochd.readyMarker);
  assert.deepEqual([epoch, pid], [0, epochd.pid]);
  await until("it is refreshed", () => markerOf(epochd.readyMarker)[0]! > writtenMs!);
  epochd.signal("SIGHUP");
  await handoff(epochd, 1);
  await until("it names the new epoch", () => markerOf(epochd.readyMarker)[1] === 1);
  assert.deepEqual(await probe(epochd), { code: 0, stdout: "", stderr: "" });
  await handoff(epochd, 1, "done");

  const traffic = here.traffic({ keepAliveClients: 0, newConnectionClients: 0 });
  await traffic.hold({ chunks: 10_000, everyMs: 50 }).opened;
  epochd.signal("SIGTERM");
  await epochd.waitForEvent("drain_began");
  const gone = await until("the probe says not ready", async () => {
    const answer = await probe(epochd);
    return answer.code === 1 && answer;
  });
  assert.equal(gone.stdout, `not ready: ${epochd.readyMarker} does not exist\n`);
  await traffic.stop();
  assert.equal((await epochd.exit).code, 0);
  assert.throws(() => Deno.statSync(epochd.readyMarker), Deno.errors.NotFound);
  // Ready once and not ready once: a handoff changes nothing.
  assert.deepEqual(eventsOf(epochd, "ready_changed").map(({ ready }) => ready), [true, false]);
});

Deno.test("the marker of a stopped epochd (SIGSTOP) grows too old, and is fresh again after SIGCONT", async () => {
  await using here = scene();
  const epochd = await here.start();
  await until("the probe says ready", async () => (await probe(epochd, ["--max-age", "3s"])).code === 0);
  epochd.signal("SIGSTOP");
  try {
    const stale = await until("the probe says not ready", async () => {
      const answer = await probe(epochd, ["--max-age", "3s"]);
      return answer.code === 1 && answer;
    });
    assert.match(stale.stdout, /^not ready: \S+ is too old by \d+ ms: written \d+ ms ago, expected 3000 ms at most\n$/);
  } finally {
    epochd.signal("SIGCONT");
  }
  await until("the probe says ready", async () => (await probe(epochd, ["--max-age", "3s"])).code === 0);
  assert.deepEqual(eventsOf(epochd, "ready_changed").map(({ ready }) => ready), [true]);
});

Deno.test("a marker that an earlier run left is gone before the first epoch runs, and comes only with LIVE", async () => {
  const xds = { kind: "ads", port: freePort(), initialFetchTimeoutMs: 0 } as const;
  await using here = scene({ bootstrap: { xds } });
  const marker = here.directory.at("run", "ready");
  here.directory.write("run/ready", `${Date.now()} 7 1\n`);
  here.start().catch(() => {});
  const epochd = await until("it is started", () => here.started[0]);
  assert.equal(epochd.readyMarker, marker);
  await epochd.waitForEvent("epoch_spawned");
  assert.throws(() => Deno.statSync(marker), Deno.errors.NotFound);
  await epochd.waitForEvent("epoch_progress");
  assert.equal((await probe(epochd)).code, 1);
  // A stop while nothing serves yet needs no drain.
  epochd.signal("SIGTERM");
  assert.equal((await epochd.exit).code, 0);
  assert.deepEqual(eventsOf(epochd, "ready_changed", "drain_began"), []);
});

Deno.test("epochd-probe: misuse ends with 2 and names flag, value and expectation", async () => {
  await using here = scene();
  const epochd = { readyMarker: here.directory.at("none") };
  const cases: readonly (readonly [readonly string[], RegExp])[] = [
    [["--max-age", "soon"], /--max-age soon: expected a duration/],
    [["--max-age", "0"], /--max-age 0: expected a duration over 0/],
    [["--maxage", "3s"], /unknown argument --maxage/],
    [["--max-age"], /--max-age has no value/],
  ];
  for (const [args, expected] of cases) {
    const { code, stdout, stderr } = await probe(epochd, args);
    assert.deepEqual([code, stdout], [2, ""]);
    assert.match(stderr, expected);
  }
  const absent = await probe(epochd);
  assert.deepEqual([absent.code, absent.stderr], [1, ""]);
  assert.match(absent.stdout, /^not ready: \S+ does not exist\n$/);
});

/** Unix milliseconds, epoch, pid. */
function markerOf(path: string): number[] {
  return Deno.readTextFileSync(path).trimEnd().split(" ").map(Number);
}
