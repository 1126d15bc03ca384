// Owns: pods that roll into each other on a real Envoy under traffic: nothing fails, somebody is always Ready, stats go on.

import assert from "node:assert/strict";
import { serverInfo, stats } from "../../support/admin.ts";
import { until, within } from "../../support/until.ts";
import { assertUnhurt } from "../scene.ts";
import { node } from "./node.ts";
import { isMarkerFresh, watchReadiness } from "./readiness.ts";
import { counted, scrape } from "./scrape.ts";

const ROLLS = 5;
const REQUESTS = 1_500;
const PER_SECOND = 600;
const STREAM = { chunks: 50, everyMs: 50 };
const SHUTDOWN = { drainTime: "1s", parentShutdownTime: "4s", gracePeriod: "10s" };

Deno.test("five rolls between 1.39.3 and 1.40.0 + 0 failed, streams whole, always a Ready pod that serves, stats go on", async () => {
  await using here = node({ statsFlushIntervalMs: 200 });
  const first = here.pod("p0", { version: "1.39.3", ...SHUTDOWN });
  await until("its marker", () => isMarkerFresh(first.marker));
  const traffic = here.traffic({ requestsPerSecond: PER_SECOND });
  const scraper = scrape(here.adminPort, "http.main.downstream_rq_total", () => traffic.snapshot().requests);
  const readiness = watchReadiness(here.pods, here.listenPort);
  let old = first;
  for (let roll = 1; roll <= ROLLS; roll++) {
    const before = traffic.snapshot().requests;
    const held = traffic.hold(STREAM);
    await held.opened;
    const next = here.pod(`p${roll}`, { version: roll % 2 === 1 ? "1.40.0" : "1.39.3", ...SHUTDOWN });
    await next.live(roll);
    assert.ok(held.received < STREAM.chunks, "the stream must be under way when the successor is LIVE");
    await until("the new pod's marker", () => isMarkerFresh(next.marker));
    assert.deepEqual(await within("the stream", held.outcome), { kind: "complete", chunks: STREAM.chunks });
    // As a DaemonSet with surge: the old pod is told to go when the new one is Ready.
    assert.equal(await old.stop(), 0);
    assert.deepEqual(old.said("epoch_ending"), [], "Envoy's protocol ended it, nobody signalled it");
    const { epoch, state, concurrency } = await serverInfo({ port: here.adminPort });
    assert.deepEqual({ epoch, state, concurrency }, { epoch: roll, state: "LIVE", concurrency: 1 });
    const seen = await stats(
      { port: here.adminPort },
      "^(server|listener_manager|cluster_manager|cluster.upstream)\\.",
    );
    const gauges = {
      "server.hot_restart_epoch": roll,
      "server.hot_restart_generation": roll + 1,
      "server.concurrency": 1,
      "server.live": 1,
      "listener_manager.total_listeners_active": 1,
      "cluster_manager.active_clusters": 1,
      "cluster.upstream.membership_total": 1,
    };
    assert.deepEqual(Object.fromEntries(Object.keys(gauges).map((name) => [name, seen.get(name)])), gauges);
    assert.ok(traffic.snapshot().requests - before >= REQUESTS, `${traffic.snapshot().requests - before} requests`);
    old = next;
  }
  await readiness.stop();
  const scraped = await scraper.stop();
  const report = await traffic.stop();
  assertUnhurt(report);
  assert.deepEqual(report.epochs, [0, 1, 2, 3, 4, 5]);
  assert.deepEqual(readiness.gaps(), { nobody: [], hollow: [] });
  // A roll that lost the parent's last counts would dip by its part of a window, one that counted them twice would double it.
  const windows = counted(scraped, 2_000);
  assert.ok(windows.length >= ROLLS, `${scraped.length} samples`);
  const [least, most] = [Math.min(...windows), Math.max(...windows)];
  assert.ok(least > 0.8 && most < 1.25, `of what was sent, windows of 2 s have counted ${windows.join(", ")}`);
});
