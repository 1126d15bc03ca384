// Owns: kill -9 across pods, at every moment of a join and after it, on a real Envoy.

import assert from "node:assert/strict";
import { segmentFlags } from "../../support/base_ids.ts";
import { freePorts } from "../../support/ports.ts";
import { pause, until, within } from "../../support/until.ts";
import { blackHole } from "../../support/xds.ts";
import { assertUnhurt } from "../scene.ts";
import { node } from "./node.ts";
import type { Pod } from "./pod.ts";
import { isMarkerFresh, watchReadiness } from "./readiness.ts";

const MOMENTS = 20;
const STREAM = { chunks: 70, everyMs: 50 };

Deno.test("kill -9 of a joining supervisor or its child at 20 moments + the old pod serves, Ready, and the next join works", async () => {
  await using here = node();
  const [xdsPort] = freePorts(1) as [number];
  // Never LIVE, so that no moment comes too late.
  await using hole = blackHole(xdsPort);
  const gated = { xds: { kind: "ads", port: xdsPort, initialFetchTimeoutMs: 0 } } as const;
  const old = here.pod("old", { version: "1.39.3" });
  await old.ready();
  const traffic = here.traffic();
  await until("its marker", () => isMarkerFresh(old.marker));
  const readiness = watchReadiness([old], here.listenPort);
  let poisoned = 0;
  for (let moment = 0; moment < MOMENTS; moment++) {
    const joining = here.pod(`joining-${moment}`, { bootstrap: gated });
    if (moment % 2 === 0) await spread(joining, moment / MOMENTS);
    else await killChild(joining, moment / MOMENTS);
    await joining.kill();
    if (segmentFlags(here.baseId) % 2n === 1n) poisoned++;
    assert.equal(old.ended, undefined);
  }
  assert.ok(poisoned > 0, "some of them must have left the flag set");
  assert.ok(hole.connections > 0, "some of them must have come as far as their control plane");
  const epoch = Number((await newestOf(old))?.[0]);
  // The old pod alone was watched: it is not Ready any more from when the new one is.
  await readiness.stop();
  const next = here.pod("next");
  await next.event("epoch_live");
  await next.ready();
  assertUnhurt(await traffic.stop());
  assert.deepEqual(readiness.gaps(), { nobody: [], hollow: [] });
  assert.ok(Number(next.said("epoch_live")[0]?.epoch) > epoch);
  assert.equal(segmentFlags(here.baseId), 0n);
  assert.equal(await old.stop(), 0);
});

Deno.test("kill -9 of the new Envoy while the old one drains + its supervisor starts it again, the held stream is whole", async () => {
  await using here = node();
  const old = here.pod("old", { parentShutdownTime: "5s" });
  await old.ready();
  const traffic = here.traffic({ newConnectionClients: 0, keepAliveClients: 0 });
  const held = traffic.hold(STREAM);
  await held.opened;
  const next = here.pod("next", { parentShutdownTime: "5s" });
  await next.live(1);
  const since = next.log.mark();
  Deno.kill((await until("its Envoy", () => next.envoys().get(1)))!, "SIGKILL");
  await next.live(1, since);
  assert.deepEqual(await within("the stream", held.outcome), { kind: "complete", chunks: STREAM.chunks });
  await next.ready(since);
  const [gap] = next.said("service_gap");
  assert.ok(Number(gap?.refusedMs) < 3_000, JSON.stringify(gap));
  assert.deepEqual(old.said("epoch_exited").map(({ exitCode }) => exitCode), [0]);
  assert.equal(await old.stop(), 0);
  assert.equal(await next.stop(), 0);
});

Deno.test("the new pod is gone while the old one drains + the old supervisor revives the successor, the held stream is whole", async () => {
  await using here = node();
  const old = here.pod("old", { parentShutdownTime: "6s" });
  await old.ready();
  const traffic = here.traffic({ newConnectionClients: 0, keepAliveClients: 0 });
  const held = traffic.hold(STREAM);
  await held.opened;
  const next = here.pod("next", { parentShutdownTime: "6s" });
  await next.live(1);
  await old.event("successor_attached");
  await until("its marker", () => isMarkerFresh(old.marker));
  const readiness = watchReadiness([old], here.listenPort);
  await next.kill();
  await old.event("successor_vanished", ({ wasLive }) => wasLive === true);
  await old.live(1);
  assert.deepEqual(await within("the stream", held.outcome), { kind: "complete", chunks: STREAM.chunks });
  await readiness.stop();
  const [gap] = old.said("service_gap");
  assert.ok(Number(gap?.refusedMs) < 4_000, JSON.stringify(gap));
  assert.equal(old.said("ready_changed").at(-1)?.ready, true);
  // And another one may come.
  await old.event("handoff_done");
  const third = here.pod("third");
  await third.live(2);
  await third.ready();
  assert.equal(await old.stop(), 0);
});

Deno.test("kill -9 of a joining supervisor that is no container + the old Envoy serves on and gets its admin back by a handoff", async () => {
  await using here = node();
  const [xdsPort] = freePorts(1) as [number];
  await using hole = blackHole(xdsPort);
  const gated = { xds: { kind: "ads", port: xdsPort, initialFetchTimeoutMs: 0 } } as const;
  const old = here.pod("old");
  await old.ready();
  const traffic = here.traffic();
  const joining = here.pod("joining", { bootstrap: gated, isolated: false });
  await until("the successor asks its control plane", () => hole.connections > 0);
  await old.event("successor_attached");
  // Envoy alone would get SIGTERM now, by which it ends its parent as well.
  await joining.kill();
  await old.event("successor_vanished", ({ wasLive }) => wasLive === false);
  await old.live(1);
  await old.event("handoff_done");
  assertUnhurt(await traffic.stop());
  assert.equal(await old.stop(), 0);
});

/** Any moment from the start of the process until it waits for its control plane, which takes less than a second and a half. */
async function spread(joining: Pod, part: number): Promise<void> {
  if (part > 0.4) await joining.event("supervisor_started");
  await pause(part * 1_000);
}

async function killChild(joining: Pod, part: number): Promise<void> {
  await joining.event("epoch_spawned");
  await pause(part * 400);
  const pid = await until("its child", () => [...joining.envoys().values()][0]);
  const since = joining.log.mark();
  Deno.kill(pid, "SIGKILL");
  await joining.event("segment_repaired", undefined, 10_000, since).catch(() => {});
}

function newestOf(pod: Pod): Promise<[number, number] | undefined> {
  return until("an Envoy of the old pod", () => [...pod.envoys()].sort(([a], [b]) => b - a)[0]);
}
