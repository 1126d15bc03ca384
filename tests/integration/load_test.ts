// Owns: the long run: twenty restarts under load.
import assert from "node:assert/strict";
import { until } from "../support/until.ts";
import { assertEndedByProtocol, assertUnhurt, eventsOf, handoff, scene } from "./scene.ts";

const RESTARTS = 20;
const REQUESTS = 20_000;

Deno.test(`${RESTARTS} restarts under load: of ${REQUESTS} requests and more, keep-alive and new connections, none failed`, async () => {
  await using here = scene();
  const epochd = await here.start({ drainTimeMs: 1_000, parentShutdownTimeMs: 2_000 });
  const traffic = here.traffic({
    requestsPerSecond: 600,
    newConnectionClients: 4,
    keepAliveClients: 4,
    // Shorter than the parent shutdown time: each one lies across a handoff and can end in it.
    heldStreams: 2,
    stream: { chunks: 15, everyMs: 100 },
  });
  for (let restart = 1; restart <= RESTARTS; restart++) {
    epochd.signal("SIGHUP");
    await handoff(epochd, restart);
    // The next one comes while this one's predecessor drains, and waits for its turn.
    await until("the newest answers", () => traffic.snapshot().epochs.includes(restart));
  }
  await handoff(epochd, RESTARTS, "done");
  await until("enough requests", () => traffic.snapshot().requests >= REQUESTS, { timeoutMs: 60_000 });
  const report = await traffic.stop();
  assertUnhurt(report);
  assert.equal(report.epochs.length, RESTARTS + 1);
  assert.ok(report.reconnects >= RESTARTS, "keep-alive clients must have moved over");
  assert.ok(report.streamsComplete >= RESTARTS, "streams must have lain across handoffs");
  epochd.signal("SIGTERM");
  assert.equal((await epochd.exit).code, 0);
  assert.deepEqual(eventsOf(epochd, "bug", "handoff_failed", "third_generation", "newest_died"), []);
  assertEndedByProtocol(epochd, Array.from({ length: RESTARTS }, (_, epoch) => epoch));
});
