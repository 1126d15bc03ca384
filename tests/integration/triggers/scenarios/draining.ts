// Owns: how open connections fare when epochd is asked to stop, and what a second signal may and may not do.
// Must not: try phases in which nothing serves (stopping.ts does).

import assert from "node:assert/strict";
import { adminRequest } from "../../../support/admin.ts";
import { fetchOnce, HttpConnection } from "../../../support/http_client.ts";
import { freePort } from "../../../support/ports.ts";
import { until, within } from "../../../support/until.ts";
import type { Scenario } from "../../faults/scenario.ts";
import type { Scene } from "../../faults/scene.ts";
import type { Stage } from "../../faults/stage.ts";
import { childHeldBack, serveManaged } from "../control_plane.ts";

const LONG = { drainTimeMs: 60_000, parentShutdownTimeMs: 90_000 };

/** The scene's only connections: streams that a scenario holds. */
async function onlyStreams(stage: Stage, scene: Scene) {
  await scene.traffic.stop();
  return stage.load(scene.listenPort, { newConnectionClients: 0, keepAliveClients: 0 });
}

async function endsWith0(scene: Scene): Promise<void> {
  assert.equal((await within("its end", scene.epochd.exit, 30_000)).code, 0);
  assert.deepEqual(scene.epochd.envoyPids(), []);
  assert.equal(scene.hasMarker(), false);
}

/** What was signalled and what ended, in order: `ending newest 1`. */
function ends(scene: Scene, since: number): string[] {
  return scene.epochd.log.events.slice(since)
    .filter(({ event }) => event === "epoch_ending" || event === "epoch_exited")
    .map(({ event, role, epoch }) => `${event === "epoch_ending" ? "ending" : "ended"} ${role} ${epoch}`);
}

/** As Envoy itself tells it: a signal that did not come of its successor's request (Envoy then signals itself). */
function wasSignalled(scene: Scene, epoch: number): boolean {
  const said = scene.epochd.log.envoyLines.filter((line) => line.includes(`[epoch ${epoch}]`)).join("\n");
  const beforeTheRequest = said.split("shutting down due to child request")[0] ?? "";
  return /caught (ENVOY_)?SIG(TERM|INT)/.test(beforeTheRequest);
}

export const scenarios: readonly Scenario[] = [
  {
    line: 13,
    name: "SIGTERM with an open stream and a scraper's keep-alive on the admin: ends when the stream has ended",
    async run(stage) {
      const scene = await stage.serve(LONG);
      const streams = await onlyStreams(stage, scene);
      const stream = streams.hold({ chunks: 40, everyMs: 50 });
      await stream.opened;
      const scraper = stage.use(await HttpConnection.open({ port: scene.adminPort }));
      assert.equal((await scraper.request({ path: "/stats?filter=server.live" })).status, 200);
      scene.epochd.signal("SIGTERM");
      await scene.event("drain_began", undefined, 0);
      assert.deepEqual(await stream.outcome, { kind: "complete", chunks: 40 });
      assert.equal(scraper.reusable, true);
      await endsWith0(scene);
      const ended = await scene.event("drain_ended", undefined, 0);
      assert.deepEqual([ended.why, ended.connections], ["quiet", 0]);
      return "ended early, the stream was whole";
    },
  },
  {
    line: 13,
    name: "SIGTERM with connections that never end, HTTP and TCP: ends at the drain time and says how many it cut",
    mayFail: ["broken_stream"],
    async run(stage) {
      const tcpProxyPort = freePort();
      const scene = await stage.serve({
        drainTimeMs: 2_000,
        parentShutdownTimeMs: 4_000,
        bootstrap: { tcpProxyPort },
      });
      const streams = await onlyStreams(stage, scene);
      const stream = streams.hold({ chunks: 10_000, everyMs: 50 });
      const raw = stage.use(await HttpConnection.open({ port: tcpProxyPort }));
      assert.equal((await raw.request({ path: "/" })).status, 200);
      await stream.opened;
      const askedMs = performance.now();
      scene.epochd.signal("SIGTERM");
      await endsWith0(scene);
      const ended = await scene.event("drain_ended", undefined, 0);
      assert.deepEqual([ended.why, ended.connections], ["time_over", 2]);
      assert.ok(performance.now() - askedMs >= 2_000, "it ended before the drain time");
      assert.equal((await stream.outcome).kind, "broken");
      return "2 connections cut at the drain time, told";
    },
  },
  {
    line: 13,
    name: "a pre-drain delay: health checks fail at once, new connections are served on, the drain begins after it",
    async run(stage) {
      const scene = await stage.serve({ extraArguments: ["--pre-drain-delay", "2s"] });
      scene.epochd.signal("SIGTERM");
      const failing = await scene.event("drain_began", (event) => event.form === "fail_health", 0);
      await until("/ready says no", async () => {
        return (await adminRequest({ port: scene.adminPort }, "/ready")).status === 503;
      });
      assert.equal(scene.hasMarker(), false);
      const { status, headers } = await fetchOnce({ port: scene.listenPort }, { path: "/direct" });
      assert.deepEqual([status, headers.get("connection")], [200, "close"]);
      const draining = await scene.event("drain_began", (event) => event.form === "listeners", 0);
      assert.ok(draining.receivedAtMs - failing.receivedAtMs >= 1_900, "the delay was cut short");
      await scene.traffic.stop();
      await endsWith0(scene);
      return "not ready first, then drained";
    },
  },
  {
    line: 13,
    name: "a second SIGTERM in the pre-drain delay, and one in the drain: the end comes at once",
    mayFail: ["broken_stream"],
    async run(stage) {
      for (const extraArguments of [["--pre-drain-delay", "1h"], []]) {
        const scene = await stage.serve({ ...LONG, extraArguments });
        const streams = await onlyStreams(stage, scene);
        const stream = streams.hold({ chunks: 10_000, everyMs: 50 });
        await stream.opened;
        scene.epochd.signal("SIGTERM");
        await scene.event("drain_began", undefined, 0);
        scene.epochd.signal("SIGTERM");
        await endsWith0(scene);
        assert.equal((await scene.event("drain_ended", undefined, 0)).why, "asked_twice");
        assert.equal((await stream.outcome).kind, "broken");
      }
      return "ended at once, told";
    },
  },
  {
    line: 13,
    name: "SIGTERM twice while the predecessor drains: it is not signalled before its successor has ended",
    mayFail: ["broken_stream"],
    async run(stage) {
      const scene = await stage.serve(LONG);
      const streams = await onlyStreams(stage, scene);
      const stream = streams.hold({ chunks: 10_000, everyMs: 50 });
      await stream.opened;
      await scene.hup();
      const since = scene.mark();
      scene.epochd.signal("SIGTERM");
      await scene.event("drain_began", undefined, since);
      assert.equal(stream.received > 0 && !wasSignalled(scene, 0), true);
      scene.epochd.signal("SIGTERM");
      await endsWith0(scene);
      // An Envoy that is asked to end ends its parent first, by protocol: who is reaped first is a matter of chance.
      const order = ends(scene, since);
      const at = (what: string) => order.includes(what) ? order.indexOf(what) : Infinity;
      assert.equal(order[0], "ending newest 1", order.join(", "));
      assert.ok(at("ending predecessor 0") > at("ended newest 1"), order.join(", "));
      assert.equal(wasSignalled(scene, 0), false);
      return "the newest was signalled, and ended its predecessor by protocol";
    },
  },
  {
    line: 13,
    name: "SIGTERM once while the predecessor drains with a stream: it ends by protocol, the stream is whole",
    async run(stage) {
      const scene = await stage.serve({ drainTimeMs: 4_000, parentShutdownTimeMs: 5_000 });
      const streams = await onlyStreams(stage, scene);
      const stream = streams.hold({ chunks: 40, everyMs: 50 });
      await stream.opened;
      await scene.hup();
      const since = scene.mark();
      scene.epochd.signal("SIGTERM");
      assert.deepEqual(await stream.outcome, { kind: "complete", chunks: 40 });
      await endsWith0(scene);
      assert.deepEqual(ends(scene, since), ["ended predecessor 0", "ending newest 1", "ended newest 1"]);
      assert.equal(wasSignalled(scene, 0), false);
      return "the predecessor ended by protocol";
    },
  },
  {
    line: 13,
    name: "SIGTERM twice while a successor initialises: the serving epoch is not signalled while that one is attached",
    async run(stage) {
      const managed = await serveManaged(stage, { initialFetchTimeoutMs: 0 });
      const { scene, dynamic } = managed;
      await childHeldBack(managed);
      // Somebody may be cut off by a second SIGTERM; who is not there is not.
      await Promise.all([scene.traffic.stop(), dynamic.stop()]);
      const since = scene.mark();
      scene.epochd.signal("SIGTERM");
      await scene.event("stop_asked", undefined, since);
      scene.epochd.signal("SIGTERM");
      await endsWith0(scene);
      const order = ends(scene, since);
      assert.ok(order.indexOf("ended child 1") < order.indexOf("ending newest 0"), order.join(", "));
      return "the successor first";
    },
  },
];
