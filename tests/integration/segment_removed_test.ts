// Owns: what follows when somebody removes Envoy's segment in /dev/shm while it is used, as systemd's RemoveIPC= does at a logout.
import assert from "node:assert/strict";
import { serverInfo } from "../support/admin.ts";
import { segmentPath } from "../support/base_ids.ts";
import { eventsOf, handoff, scene } from "./scene.ts";
import { within } from "../support/until.ts";
import { unit } from "./orphans/unit.ts";

const SHORT = { drainTimeMs: 1_000, parentShutdownTimeMs: 2_000 };

Deno.test("the segment is removed: a handoff is refused with what to do, nothing fails, a drained restart makes it anew", async () => {
  await using here = scene();
  const epochd = await here.start(SHORT);
  const traffic = here.traffic();
  Deno.removeSync(segmentPath(epochd.baseId));
  epochd.signal("SIGHUP");
  const refused = await epochd.waitForEvent("handoff_failed");
  assert.equal(refused.refusal, "segment_missing");
  assert.match(String(refused.detail), /was removed.*epochd restart --drained makes a new one/);
  assert.deepEqual([(await serverInfo(here.admin)).state, eventsOf(epochd, "epoch_spawned").length], ["LIVE", 1]);
  assert.deepEqual((await traffic.stop()).failures, []);
  const drained = await epochd.command("restart", "--drained", "--wait");
  assert.equal(drained.code, 0, drained.stderr);
  epochd.signal("SIGHUP");
  await handoff(epochd, 3);
  assert.equal((await serverInfo(here.admin)).epoch, 1);
});

Deno.test("the segment is removed and epochd killed: the next one says which Envoy has to end, exit code 3, and that one serves on", async () => {
  await using here = await unit();
  const first = await here.serving();
  const traffic = here.node.traffic();
  await first.kill();
  const [[epoch, pid] = []] = here.envoys();
  assert.equal(epoch, 0);
  Deno.removeSync(segmentPath(here.node.baseId));
  const next = await here.start();
  assert.equal((await within("its end", next.exit)).code, 3);
  assert.match(next.log.tail(), new RegExp(`segment_missing.*Envoy ${pid} without it`));
  assert.deepEqual((await traffic.stop()).failures, []);
  Deno.kill(pid!, "SIGTERM");
  await here.serving();
  assert.deepEqual([...here.envoys().keys()], [0]);
});
