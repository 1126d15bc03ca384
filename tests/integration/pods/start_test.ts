// Owns: several supervisors that come to one base id at once, and what lies in the state directory when they come.

import assert from "node:assert/strict";
import { serverInfo } from "../../support/admin.ts";
import { freePorts } from "../../support/ports.ts";
import { until, within } from "../../support/until.ts";
import { startXdsServer } from "../../support/xds_server.ts";
import { assertUnhurt } from "../scene.ts";
import { holdLock } from "./lock_holder.ts";
import { type Node, node } from "./node.ts";
import type { Pod } from "./pod.ts";

for (const count of [2, 3]) {
  Deno.test(`${count} supervisors at once on an empty state directory + epochs 0 to ${count - 1}, one after the other`, async () => {
    await using here = node();
    const pods = Array.from({ length: count }, (_, index) => here.pod(`p${index}`));
    const epochs = await Promise.all(pods.map(async (pod) => Number((await pod.event("epoch_live")).epoch)));
    assert.deepEqual(epochs.toSorted(), Array.from({ length: count }, (_, index) => index));
    const last = pods[epochs.indexOf(count - 1)]!;
    await last.ready();
    const causes = pods.flatMap((pod) => pod.said("start_began").map(({ cause }) => cause)).toSorted();
    assert.deepEqual(causes, ["first", ...Array.from({ length: count - 1 }, () => "join")]);
    for (const pod of pods) {
      if (pod !== last) assert.equal((await pod.event("superseded")).policy, "wait");
    }
    assert.equal((await serverInfo({ port: here.adminPort })).epoch, count - 1);
    // Nobody's concurrency, nobody's flags were lost in the crowd.
    assert.equal(pods.flatMap((pod) => pod.said("newest_died", "predecessor_overdue")).length, 0);
    for (const pod of pods) assert.equal(await pod.stop(), 0);
  });
}

Deno.test("a join of what serves already + proven by that, not checked again; of anything else, checked in full", async () => {
  await using here = node();
  const path = here.bootstrap("shared");
  const [a, b] = await rolled(here, path);
  assert.deepEqual(b.said("preflight_passed").map(({ cached }) => cached), [true]);
  assert.equal(await a.stop(), 0);
  const other = here.pod("other", { bootstrapPath: path, version: "1.39.3" });
  await other.ready();
  assert.deepEqual(other.said("preflight_passed").map(({ cached }) => cached), [false]);
  const edited = here.pod("edited", { version: "1.39.3" });
  await edited.ready();
  assert.deepEqual(edited.said("preflight_passed").map(({ cached }) => cached), [false]);
  const wrong = here.pod("wrong", { version: "1.39.3", bootstrap: { change: (bootstrap) => bootstrap.no_such = 1 } });
  assert.equal((await within("its end", wrong.exit)).code, 3);
  assert.equal((await edited.status()).ready, true);
});

Deno.test("the same edit seen by both pods + one new epoch, by the pod that serves; the other one's wish is dropped with the reason", async () => {
  await using here = node();
  const path = here.bootstrap("shared");
  const [a, b] = await rolled(here, path);
  const traffic = here.traffic();
  here.bootstrap("shared", { generation: "edited" });
  await b.event("handoff_done", ({ to }) => to === 2);
  await a.event("trigger_dropped", ({ refusal }) => refusal === "superseded" || String(refusal).includes("superseded"));
  const report = await traffic.stop();
  assertUnhurt(report);
  assert.deepEqual(report.generations, ["shared", "edited"]);
  assert.deepEqual(a.said("handoff_began"), []);
  assert.equal((await serverInfo({ port: here.adminPort })).epoch, 2);
});

Deno.test("an edit while the other pod joins + the joining one's epoch or the next has it, 0 failed", async () => {
  await using here = node();
  const path = here.bootstrap("shared");
  const flags = ["--debounce", "0s"];
  const a = here.pod("a", { bootstrapPath: path, flags });
  await a.ready();
  const traffic = here.traffic();
  const b = here.pod("b", { bootstrapPath: path, flags });
  await b.event("supervisor_started");
  here.bootstrap("shared", { generation: "edited" });
  await until("the edit serves", () => traffic.snapshot().generations.includes("edited"));
  await until("one of the two serves alone", async () => {
    const states = await Promise.all([a, b].map(async (pod) => (await pod.status()).phase));
    return states.includes("superseded") && states.includes("serving");
  });
  const report = await traffic.stop();
  assertUnhurt(report);
  assert.deepEqual(report.generations, ["shared", "edited"]);
});

Deno.test("a join while the control plane is away + waits while the old pod serves, and goes on when it is back, 0 failed", async () => {
  await using here = node();
  const [xdsPort, dynamicPort] = freePorts(2) as [number, number];
  const snapshot = { listenPorts: [dynamicPort], upstreamPort: here.listenPort, generation: "dynamic" };
  await using xds = await startXdsServer(xdsPort, snapshot);
  const bootstrap = { xds: { kind: "ads", port: xdsPort, initialFetchTimeoutMs: 1_000 } } as const;
  const a = here.pod("a", { bootstrap });
  await a.ready();
  const traffic = here.traffic({ port: dynamicPort });
  await xds.stop();
  const b = here.pod("b", { bootstrap });
  await b.event("control_plane_awaited");
  assert.equal((await a.status()).ready, true);
  await xds.start();
  await b.live(1);
  await b.ready();
  assertUnhurt(await traffic.stop());
  assert.equal(await a.stop(), 0);
  // And where it does not come back.
  await xds.stop();
  const c = here.pod("c", { bootstrap, flags: ["--control-plane-wait", "1s"] });
  assert.equal((await within("its end", c.exit)).code, 4);
  assert.match(c.log.tail(), /control_plane_away: epoch 1 of another supervisor/);
  assert.equal((await b.status()).ready, true);
});

Deno.test("handoff.lock held for ever + a joining supervisor ends with exit code 4, the other one's handoff is refused", async () => {
  await using here = node();
  const old = here.pod("old", { flags: ["--live-timeout", "1s"] });
  await old.ready();
  const traffic = here.traffic();
  await using _ = await holdLock(`${here.stateDir}/handoff.lock`);
  const next = here.pod("next", { flags: ["--live-timeout", "1s"] });
  assert.equal((await within("its end", next.exit)).code, 4);
  assert.match(String(next.said("ended")[0]?.msg), /another supervisor has held handoff\.lock for 2 s/);
  old.signal("SIGHUP");
  await old.event("handoff_failed", ({ msg }) => String(msg).includes("handoff.lock"));
  assert.equal((await old.status()).ready, true);
  // Neither does the way out wait for it.
  assertUnhurt(await traffic.stop());
  assert.equal(await old.stop(), 0);
});

Deno.test("epoch.lock held by another + beats are skipped and reported, the service goes on, beats come again", async () => {
  await using here = node();
  const old = here.pod("old");
  await old.ready();
  {
    await using _ = await holdLock(`${here.stateDir}/epoch.lock`);
    await old.event("publish_failed", ({ problem }) => String(problem).includes("epoch.lock is held by another"));
    // Without a fresh beat sockets and admin tell enough.
    const next = here.pod("next");
    await next.live(1);
    await old.event("superseded");
  }
  const next = here.pods.at(-1)!;
  await next.event("publish_back");
  await next.ready();
});

Deno.test("two epoch 0 on one base id, not cross-pod + the later one names the holder and ends with 3; --base-id auto takes a free one", async () => {
  await using here = node();
  const [listenPort, adminPort] = freePorts(2) as [number, number];
  const flags = ["--no-cross-pod", "--when-superseded", "exit"];
  const first = here.pod("first", { isolated: false, flags });
  await first.ready();
  const elsewhere = { isolated: false, bootstrap: { listenPort, adminPort }, stateDir: here.directory.at("elsewhere") };
  const second = here.pod("second", { ...elsewhere, flags });
  assert.equal((await within("its end", second.exit)).code, 3);
  const [refused] = second.said("ended");
  assert.match(String(refused?.msg), /base_id_held: .* held by process \d+; stop it or use another --base-id/);
  assert.equal(first.envoys().size, 1);
  const third = here.pod("third", { ...elsewhere, flags: [...flags, "--base-id", "auto"] });
  await third.ready();
  const [chosen] = third.said("base_id_chosen");
  assert.notEqual(chosen?.baseId, here.baseId);
  assert.equal((await serverInfo({ port: adminPort })).state, "LIVE");
  assert.equal(await third.stop(), 0);
  assert.equal(await first.stop(), 0);
});

Deno.test("--base-id auto with --cross-pod + refused before anything starts, exit code 2", async () => {
  await using here = node();
  const pod = here.pod("pod", { flags: ["--base-id", "auto"] });
  assert.equal((await within("its end", pod.exit)).code, 2);
  assert.match(pod.log.tail(), /--base-id auto: expected a number/);
});

/** Two pods of one bootstrap, of which the second serves alone. */
async function rolled(here: Node, bootstrapPath: string): Promise<[Pod, Pod]> {
  const a = here.pod("a", { bootstrapPath });
  await a.ready();
  const b = here.pod("b", { bootstrapPath });
  await b.ready();
  await a.event("superseded");
  return [a, b];
}
