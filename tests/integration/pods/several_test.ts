// Owns: supervisors with several services each, taken over one after the other. Must not: hold what one service shows as well.
import assert from "node:assert/strict";
import { domainSockets, freeBaseId, removeSegment } from "../../support/base_ids.ts";
import { writeBootstrap } from "../../support/bootstrap.ts";
import { envoyPath } from "../../support/envoys.ts";
import { startEpochd } from "../../support/epochd.ts";
import { freePorts } from "../../support/ports.ts";
import { processesWithArgument } from "../../support/procfs.ts";
import { tempDir } from "../../support/tempdir.ts";
import { startTraffic } from "../../support/traffic.ts";
import { until, within } from "../../support/until.ts";
import { startUpstream } from "../../support/upstream.ts";
import { assertUnhurt } from "../scene.ts";
import { holdLock } from "./lock_holder.ts";

Deno.test("two services, one of which can't be taken over yet + the old supervisor serves it until it can, exit 0, 0 failed", async () => {
  await using directory = tempDir();
  const names = ["edge", "core"] as const;
  const [upstreamPort, ...ports] = freePorts(5) as [number, ...number[]];
  const baseIds = [freeBaseId(), freeBaseId()];
  await using _upstream = startUpstream(upstreamPort);
  const services = Object.fromEntries(names.map((name, at) => {
    const [listenPort, adminPort] = ports.slice(2 * at) as [number, number];
    const envoy_config = writeBootstrap(directory.at(`${name}.yaml`), { listenPort, adminPort, upstreamPort });
    return [name, {
      envoy_path: envoyPath(),
      envoy_config,
      base_id: baseIds[at],
      concurrency: 1,
      drain_time: "1s",
      parent_shutdown_time: "2s",
      state_dir: directory.at(`state-${name}`),
      cross_pod: true,
      when_superseded: "exit",
    }];
  }));
  const configPath = directory.at("epochd.yaml");
  Deno.writeTextFileSync(configPath, JSON.stringify({ services }));
  const start = () => startEpochd({ envoyPath: "", bootstrapPath: "", configPath });
  const live = (epochd: ReturnType<typeof start>, service: string, epoch: number) =>
    epochd.waitForEvent("epoch_live", (event) => event.service === service && event.epoch === epoch);
  try {
    await using old = start();
    for (const name of names) await live(old, name, 0);
    await using edge = startTraffic({ port: ports[0]! });
    await using core = startTraffic({ port: ports[2]! });
    const lock = await holdLock(directory.at("state-core/handoff.lock"));
    await using next = start();
    await live(next, "edge", 1);
    await old.waitForEvent("ended", ({ service }) => service === "edge");
    await next.waitForEvent("ready_changed", ({ service, ready }) => service === "edge" && ready === true);
    const { services: left, stopping } = await old.status() as {
      services: Record<string, { phase: string; ready: boolean }>;
      stopping: boolean;
    };
    assert.deepEqual([left.core?.phase, left.core?.ready, stopping], ["serving", true, false]);
    await lock[Symbol.asyncDispose]();
    await live(next, "core", 1);
    assert.equal((await within("its end", old.exit)).code, 0);
    assertUnhurt(await edge.stop());
    assertUnhurt(await core.stop());
  } finally {
    for (const baseId of baseIds) {
      await until(`no process of base id ${baseId} is left`, () => {
        const left = processesWithArgument("--base-id", String(baseId));
        for (const pid of left) Deno.kill(pid, "SIGKILL");
        return left.length === 0 && domainSockets(baseId).length === 0;
      });
      removeSegment(baseId);
    }
  }
});
