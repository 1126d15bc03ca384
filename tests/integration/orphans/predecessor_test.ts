// Owns: the death of an Envoy that drains together with its supervisor's, on a real Envoy under load: what serves must not follow.

import assert from "node:assert/strict";
import { isAlive, processesWithArgument } from "../../support/procfs.ts";
import { until } from "../../support/until.ts";
import { assertUnhurt } from "../scene.ts";
import { unit } from "./unit.ts";

const LONG = { flags: ["--parent-shutdown-time", "60s", "--drain-time", "30s"] };

/** New connections only: what the dead one held is lost with it. */
const FRESH = { keepAliveClients: 0, newConnectionClients: 2 };

Deno.test("epochd and the draining Envoy are killed (-9) + the next one stands by as it takes over, nothing is refused", async () => {
  await using here = await unit();
  const first = await here.serving(LONG);
  const traffic = here.node.traffic(FRESH);
  first.signal("SIGHUP");
  await first.event("handoff_live");
  const draining = here.envoys().get(0)!;
  await first.kill();
  Deno.kill(draining, "SIGKILL");
  await until("it is gone", () => !isAlive(draining));
  const second = await here.serving();
  await second.event("ready_changed", ({ ready }) => ready === true);
  assertUnhurt(await traffic.stop());
  assert.deepEqual(second.said("epoch_live").map(({ epoch }) => epoch), [2]);
  assert.equal(await second.stop(), 0);
  assert.deepEqual([...here.envoys()], []);
  await until("no stand-in is left", () => standIns(here.node.baseId).length === 0);
});

Deno.test("epochd is killed (-9) while its stand-in stands, and the one that serves as well + nobody has a name that epoch 0 needs", async () => {
  await using here = await unit();
  const first = await here.serving(LONG);
  first.signal("SIGHUP");
  await first.event("handoff_live");
  Deno.kill(here.envoys().get(0)!, "SIGKILL");
  await first.event("stand_in_began");
  const serving = here.envoys().get(1)!;
  await first.kill();
  Deno.kill(serving, "SIGKILL");
  await until("nobody stands in for anybody", () => standIns(here.node.baseId).length === 0);
  const second = await here.serving();
  assert.deepEqual(second.said("epoch_exited", "epoch_live").map(({ event, epoch }) => [event, epoch]), [
    ["epoch_live", 0],
  ]);
  assert.equal(await second.stop(), 0);
});

Deno.test("epochd is killed (-9) in a handoff, and the Envoy that serves as well + the orphan that waits for it is not waited for", async () => {
  await using here = await unit();
  const first = await here.serving();
  // A child that finds its parent stopped waits for its word.
  const parent = here.envoys().get(0)!;
  Deno.kill(parent, "SIGSTOP");
  first.signal("SIGHUP");
  await first.event("epoch_spawned", ({ epoch }) => epoch === 1);
  await first.kill();
  Deno.kill(parent, "SIGKILL");
  const second = await here.start();
  await second.event("epoch_live", undefined, 20_000);
  assert.equal(await second.stop(), 0);
  assert.deepEqual([...here.envoys()], []);
});

function standIns(baseId: number): number[] {
  return processesWithArgument(String(baseId), "0");
}
