// Owns: rolling from and to the Go supervisor of the same design.

import assert from "node:assert/strict";
import { serverInfo } from "../../support/admin.ts";
import { until, within } from "../../support/until.ts";
import { assertUnhurt } from "../scene.ts";
import { goSupervisor } from "./go_supervisor.ts";
import { node } from "./node.ts";
import { isMarkerFresh, watchReadiness } from "./readiness.ts";

Deno.test("from the Go supervisor to epochd and back + 0 failed, its concurrency is kept, neither one's lock is held for long", async () => {
  await using here = node();
  const common = { baseId: here.baseId, stateDir: here.stateDir, adminPort: here.adminPort, parentShutdownTimeS: 2 };
  await using before = await goSupervisor({
    ...common,
    version: "1.39.3",
    bootstrapPath: here.bootstrap("go"),
    concurrency: 2,
  });
  await until("its beat", () => /^0 \d+\n$/.test(Deno.readTextFileSync(`${here.stateDir}/epoch`)));
  const traffic = here.traffic();
  const pod = here.pod("pod", { concurrency: 1 });
  await pod.ready();
  assert.deepEqual(pod.said("predecessor_found").map(({ epoch, by }) => [epoch, by]), [[0, "admin"]]);
  assert.equal((await within("the Go supervisor's Envoy", before.envoy.exit)).code, 0);
  assert.equal((await serverInfo({ port: here.adminPort })).concurrency, 2);
  await until("epochd's beat", () => /^1 \d+\n$/.test(Deno.readTextFileSync(`${here.stateDir}/epoch`)));

  const readiness = watchReadiness([pod], here.listenPort);
  await using after = await goSupervisor({
    ...common,
    bootstrapPath: here.bootstrap("go-again"),
    epoch: 2,
    concurrency: 2,
    drainTimeS: 1,
  });
  await pod.event("superseded");
  assert.ok(isMarkerFresh(pod.marker), "until the new one can be Ready");
  await pod.event("ready_changed", ({ ready }) => ready === false);
  await readiness.stop();
  assert.deepEqual(readiness.gaps().hollow, []);
  assertUnhurt(await traffic.stop());
  assert.equal(await pod.stop(), 0);
  assert.equal((await serverInfo({ port: here.adminPort })).epoch, 2);
  assert.deepEqual([before.missed, after.missed], [0, 0]);
});

Deno.test("a Go supervisor's Envoy that has no admin any more + joined by its heartbeat", async () => {
  await using here = node();
  const common = { baseId: here.baseId, stateDir: here.stateDir, parentShutdownTimeS: 2 };
  await using before = await goSupervisor({
    ...common,
    adminPort: here.adminPort,
    bootstrapPath: here.bootstrap("go"),
  });
  await until("its beat", () => /^0 \d+\n$/.test(Deno.readTextFileSync(`${here.stateDir}/epoch`)));
  const traffic = here.traffic();
  // It listens where this pod's bootstrap does not say.
  const [elsewhere] = (await import("../../support/ports.ts")).freePorts(1) as [number];
  const pod = here.pod("pod", { bootstrap: { adminPort: elsewhere } });
  await pod.ready();
  assert.deepEqual(pod.said("predecessor_found").map(({ epoch, by }) => [epoch, by]), [[0, "beat"]]);
  assert.equal((await within("the Go supervisor's Envoy", before.envoy.exit)).code, 0);
  assertUnhurt(await traffic.stop());
});
