// Owns: the death of a supervisor around a push, whose Envoys outlive it. Must not: look into a push itself (push_kill_test.ts).

import assert from "node:assert/strict";
import { envoyPath } from "../../support/envoys.ts";
import { runEpochd } from "../../support/epochd.ts";
import { until } from "../../support/until.ts";
import { assertUnhurt } from "../scene.ts";
import { type Generation, unit } from "./unit.ts";

async function push(epochd: Generation, version: "1.39.3" | "1.40.0"): Promise<void> {
  const args = ["push", envoyPath(version), "--wait=live", "--api-socket", epochd.apiSocket];
  const { code, stderr } = await runEpochd(args);
  assert.equal(code, 0, stderr);
}

function versionOf(epochd: Generation): string {
  return String(epochd.said("epoch_live").at(-1)?.version).split("/")[1] ?? "";
}

Deno.test("kill -9 of epochd with --on-supervisor-death serve + a push on trial is undone by a handoff, a proven one stays: no request fails", async () => {
  await using here = await unit();
  const flags = ["--slots-dir", here.node.directory.at("slots")];
  const start = (...more: string[]) => here.serving({ version: "1.38.3", flags: [...flags, ...more] });
  const first = await start();
  const traffic = here.node.traffic({ heldStreams: 1, stream: { chunks: 20, everyMs: 50 } });
  await push(first, "1.40.0");
  await first.kill();
  const second = await start("--binary-trial", "0s");
  assert.match(String(second.said("slots_mended")[0]?.what), /had not proved itself/);
  assert.equal(versionOf(second), "1.38.3");
  await push(second, "1.39.3");
  await second.event("binary_proven");
  await second.kill();
  const third = await start();
  assert.deepEqual(third.said("slots_mended"), []);
  assert.equal(versionOf(third), "1.39.3");
  await until("it is ready", async () => (await third.status()).ready);
  assertUnhurt(await traffic.stop());
  assert.equal(await third.stop(), 0);
});
