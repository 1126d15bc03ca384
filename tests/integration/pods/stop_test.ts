// Owns: SIGTERM across pods, each branch of the design's table, on a real Envoy. Must not: judge single steps; transcripts do.

import assert from "node:assert/strict";
import { serverInfo } from "../../support/admin.ts";
import { envoyPath } from "../../support/envoys.ts";
import { freePorts } from "../../support/ports.ts";
import { until, within } from "../../support/until.ts";
import { startXdsServer } from "../../support/xds_server.ts";
import { blackHole } from "../../support/xds.ts";
import { assertUnhurt } from "../scene.ts";
import { provideStandIn } from "../../../tools/native_stand_in.ts";
import { node } from "./node.ts";
import { watchReadiness } from "./readiness.ts";

// From source epochd finds it where this puts it.
await provideStandIn();

Deno.test("SIGTERM with a successor attached, twice + Envoy's protocol ends the old one, nobody signals it, exit 0", async () => {
  await using here = node();
  const old = here.pod("old", { version: "1.39.3", parentShutdownTime: "4s", gracePeriod: "20s" });
  await old.ready();
  const traffic = here.traffic();
  const next = here.pod("next", { parentShutdownTime: "4s", gracePeriod: "20s" });
  const readiness = watchReadiness(here.pods, here.listenPort);
  const held = traffic.hold({ chunks: 60, everyMs: 50 });
  await held.opened;
  await next.live(1);
  await old.event("successor_attached");
  old.signal("SIGTERM");
  await old.event("stop_asked", ({ times }) => times === 1);
  old.signal("SIGTERM");
  await old.event("stop_asked", ({ times }) => times === 2);
  assert.deepEqual(await within("the stream", held.outcome), { kind: "complete", chunks: 60 });
  assert.equal((await within("the old pod's end", old.exit)).code, 0);
  await next.ready();
  await readiness.stop();
  assertUnhurt(await traffic.stop());
  assert.deepEqual(old.said("epoch_ending", "drain_began"), []);
  assert.deepEqual(old.said("epoch_exited").map(({ exitCode }) => exitCode), [0]);
  // The old one went at once when its Envoy had ended, before kubelet has looked at the new one: only its own end may leave a gap.
  assert.deepEqual(readiness.gaps().hollow, []);
});

Deno.test("SIGTERM while the successor waits for its control plane + it serves and waits, then ends by protocol, exit 0", async () => {
  await using here = node();
  const [xdsPort, dynamicPort] = freePorts(2) as [number, number];
  const snapshot = { listenPorts: [dynamicPort], upstreamPort: here.listenPort, generation: "dynamic" };
  await using xds = await startXdsServer(xdsPort, snapshot);
  xds.pace("silent");
  const old = here.pod("old", { gracePeriod: "60s" });
  await old.ready();
  const traffic = here.traffic();
  const gated = { xds: { kind: "ads", port: xdsPort, initialFetchTimeoutMs: 0 } } as const;
  const next = here.pod("next", { version: "1.39.3", bootstrap: gated, gracePeriod: "60s" });
  const readiness = watchReadiness(here.pods, here.listenPort);
  await until("the successor asks its control plane", () => xds.requests.length > 0);
  old.signal("SIGTERM");
  const asked = await old.event("stop_asked");
  // Ten seconds in which the old pod is to go and the new one can't serve.
  await until("ten seconds are over", () => Date.now() - asked.receivedAtMs > 10_000, { everyMs: 200 });
  assert.equal(old.ended, undefined);
  xds.pace({ delayMs: 0 });
  await next.live(1);
  assert.equal((await within("the old pod's end", old.exit)).code, 0);
  await next.ready();
  await readiness.stop();
  assertUnhurt(await traffic.stop());
  assert.deepEqual(old.said("epoch_ending", "drain_began"), []);
  assert.deepEqual(readiness.gaps().hollow, []);
});

Deno.test("SIGTERM while a successor is being checked and has not attached + waited for, then ends by protocol", async () => {
  await using here = node();
  const old = here.pod("old", { gracePeriod: "60s" });
  await old.ready();
  const traffic = here.traffic();
  const binary = here.directory.at("slow-envoy");
  const gate = here.directory.at("gate");
  slowToValidate(binary, gate);
  const next = here.pod("next", { envoyPath: binary, gracePeriod: "60s" });
  await until("its validation is under way", () => exists(`${gate}.reached`));
  old.signal("SIGTERM");
  await old.event("successor_awaited");
  assert.equal(old.envoys().size, 1);
  const readiness = watchReadiness([old, next], here.listenPort);
  await until("some samples", () => readiness.samples.length >= 10);
  assert.deepEqual(readiness.gaps(), { nobody: [], hollow: [] });
  Deno.writeTextFileSync(gate, "");
  await next.live(1);
  assert.equal((await within("the old pod's end", old.exit)).code, 0);
  await readiness.stop();
  assertUnhurt(await traffic.stop());
  assert.deepEqual(old.said("epoch_ending", "drain_began"), []);
});

Deno.test("SIGTERM and the successor fails before LIVE + the old one drains and exits 0", async () => {
  await using here = node();
  const [xdsPort] = freePorts(1) as [number];
  await using hole = blackHole(xdsPort);
  const old = here.pod("old", { gracePeriod: "60s" });
  await old.ready();
  const gated = { xds: { kind: "ads", port: xdsPort, initialFetchTimeoutMs: 0 } } as const;
  const next = here.pod("next", { bootstrap: gated });
  await until("the successor asks its control plane", () => hole.connections > 0);
  const traffic = here.traffic();
  old.signal("SIGTERM");
  await old.event("successor_attached");
  await next.kill();
  await old.event("successor_vanished", ({ wasLive }) => wasLive === false);
  const began = await old.event("drain_began");
  assertUnhurt(await traffic.stop());
  const { code } = await within("the old pod's end", old.exit);
  assert.equal(code, 0);
  assert.equal(began.epoch, 0);
  assert.deepEqual(old.envoys().size, 0);
});

Deno.test("SIGTERM without a successor + drains, an open stream ends whole, exit 0", async () => {
  await using here = node();
  const old = here.pod("old", { drainTime: "5s", parentShutdownTime: "6s", gracePeriod: "20s" });
  await old.ready();
  const traffic = here.traffic({ newConnectionClients: 0, keepAliveClients: 0 });
  const held = traffic.hold({ chunks: 30, everyMs: 50 });
  await held.opened;
  old.signal("SIGTERM");
  await old.event("drain_began");
  assert.deepEqual(await held.outcome, { kind: "complete", chunks: 30 });
  assert.equal((await within("its end", old.exit)).code, 0);
  assert.deepEqual(old.said("drain_ended").map(({ why }) => why), ["quiet"]);
});

Deno.test("SIGTERM when the child has ended by protocol + gone within a second, exit 0, nothing else is touched", async () => {
  await using here = node();
  const old = here.pod("old");
  await old.ready();
  const next = here.pod("next", { version: "1.39.3" });
  await old.event("superseded");
  await next.ready();
  assert.equal((await old.status()).phase, "superseded");
  assert.equal((await old.command("restart")).code === 0, false, "there is nothing to restart");
  const askedMs = performance.now();
  assert.equal(await old.stop(), 0);
  const tookMs = performance.now() - askedMs;
  assert.ok(tookMs < 1_000, `gone after ${tookMs} ms`);
  assert.equal(next.envoys().size, 1);
});

Deno.test("SIGTERM to the new pod while the old one drains + the new Envoy outlives the old one, which ends by protocol", async () => {
  await using here = node();
  const old = here.pod("old", { parentShutdownTime: "4s" });
  await old.ready();
  const traffic = here.traffic({ newConnectionClients: 0, keepAliveClients: 0 });
  const held = traffic.hold({ chunks: 50, everyMs: 50 });
  await held.opened;
  const next = here.pod("next", { parentShutdownTime: "4s" });
  await next.live(1);
  next.signal("SIGTERM");
  assert.deepEqual(await within("the stream", held.outcome), { kind: "complete", chunks: 50 });
  await old.event("epoch_exited");
  assert.equal((await within("the new pod's end", next.exit)).code, 0);
  // The traffic is the old pod's again: it has not been told to go.
  await old.event("successor_vanished");
  await old.live(0, old.said("epoch_live").length);
  assert.equal(await old.stop(), 0);
});

Deno.test("SIGKILL of the old supervisor while its Envoy drains + the new Envoy serves on, past the ten seconds, and hands over", async () => {
  await using here = node();
  const old = here.pod("old", { parentShutdownTime: "13s" });
  await old.ready();
  const next = here.pod("next", { parentShutdownTime: "13s" });
  await next.live(1);
  const traffic = here.traffic({ keepAliveClients: 0 });
  await old.kill();
  await next.event("foreign_lost");
  await next.event("stand_in_began");
  await next.ready();
  assert.equal((await next.event("stand_in_ended", undefined, 40_000)).why, "terminated");
  const third = here.pod("third", { parentShutdownTime: "2s" });
  await third.ready();
  const { failures } = await traffic.stop();
  assert.deepEqual(failures, []);
  assert.equal(next.said("newest_died").length, 0);
  const { state, epoch } = await serverInfo({ port: here.adminPort });
  assert.deepEqual({ state, epoch }, { state: "LIVE", epoch: 2 });
});

Deno.test("SIGKILL of the old supervisor while its Envoy drains + a third pod joins at once, and ends the stand-in by protocol", async () => {
  await using here = node();
  const old = here.pod("old", { parentShutdownTime: "40s" });
  await old.ready();
  const next = here.pod("next", { parentShutdownTime: "40s" });
  await next.live(1);
  const traffic = here.traffic({ keepAliveClients: 0 });
  await old.kill();
  await next.event("stand_in_began");
  const third = here.pod("third", { parentShutdownTime: "2s" });
  await third.live(2);
  assert.equal((await next.event("stand_in_ended")).why, "terminated");
  await third.ready();
  assert.deepEqual((await traffic.stop()).failures, []);
});

/** Envoy, whose `--mode validate` waits for a file. */
function slowToValidate(path: string, gate: string): void {
  const script = [
    "#!/bin/sh",
    `case "$*" in *validate*) touch ${gate}.reached; while [ ! -e ${gate} ]; do sleep 0.05; done;; esac`,
    `exec ${envoyPath("1.40.0")} "$@"`,
  ];
  Deno.writeTextFileSync(path, `${script.join("\n")}\n`, { mode: 0o755 });
}

function exists(path: string): boolean {
  try {
    Deno.statSync(path);
    return true;
  } catch {
    return false;
  }
}
