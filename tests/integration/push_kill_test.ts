// Owns: kill -9 of epochd at every step of a push and of its rollback: what starts next serves, and the directory is whole.
import assert from "node:assert/strict";
import { serverInfo } from "../support/admin.ts";
import { removeSegment } from "../support/base_ids.ts";
import { envoyPath, type EnvoyVersion } from "../support/envoys.ts";
import type { Epochd } from "../support/epochd.ts";
import { isAlive } from "../support/procfs.ts";
import { until } from "../support/until.ts";
import { linkOf, slotNames, slotsOf, startWithSlots } from "./push_scene.ts";
import { eventsOf, type Scene, scene } from "./scene.ts";

const SHORT = { drainTimeMs: 1_000, parentShutdownTimeMs: 2_000 };

interface Step {
  readonly name: string;
  readonly reached: (here: Scene, epochd: Epochd, before: string | undefined) => boolean;
  /** Which version may serve after it; a rollback's own are the other way round. */
  readonly proven?: true;
}

const incomingBytes = (here: Scene): number => {
  const name = slotNames(here).find((one) => one.startsWith(".incoming-"));
  return name === undefined ? -1 : Deno.statSync(here.directory.at("slots/envoy", name, "envoy")).size;
};
const has = (here: Scene, name: string) => slotNames(here).includes(name);
const told = (epochd: Epochd, kind: string, count = 1) => eventsOf(epochd, kind).length >= count;

const STEPS: readonly Step[] = [
  { name: "the upload begins", reached: (here) => incomingBytes(here) >= 0 },
  { name: "the upload is half there", reached: (here) => incomingBytes(here) > 50_000_000 },
  { name: "the upload is whole", reached: (here) => incomingBytes(here) > 100_000_000 },
  { name: "it is in its slot", reached: (here) => slotNames(here).some((name) => name.length === 64) },
  { name: "the record is written", reached: (here) => has(here, "trial.json") },
  { name: "current is switched", reached: (here, _, before) => linkOf(here, "current") !== before },
  { name: "the handoff began", reached: (_, epochd) => told(epochd, "handoff_began") },
  { name: "the epoch is spawned", reached: (_, epochd) => told(epochd, "epoch_spawned", 2) },
  { name: "the epoch is LIVE", reached: (_, epochd) => told(epochd, "epoch_live", 2) },
  { name: "it is proven", reached: (_, epochd) => told(epochd, "binary_proven"), proven: true },
];

/**
 * The kernel ends its Envoys with it, but for one that has not got to its prctl yet; neither that nor the segment of a killed one
 * is what is tested.
 */
async function kill(epochd: Epochd): Promise<void> {
  epochd.signal("SIGKILL");
  await epochd.exit;
  for (const { pid } of eventsOf(epochd, "epoch_spawned")) {
    try {
      Deno.kill(Number(pid), "SIGKILL");
    } catch { /* It has ended. */ }
    await until(`Envoy ${pid} has ended`, () => !isAlive(Number(pid)));
  }
  removeSegment(epochd.baseId);
}

async function startsAnew(here: Scene, baseId: number, expected: readonly string[], step: string): Promise<void> {
  const later = await startWithSlots(here, { ...SHORT, envoyPath: envoyPath("1.38.3"), baseId });
  const { version } = await serverInfo(here.admin);
  assert.ok(expected.includes(version), `${step}: ${version} serves, expected ${expected.join(" or ")}`);
  const strange = slotNames(here).filter((name) => !/^([0-9a-f]{64}|current|previous)$/.test(name));
  assert.deepEqual(strange, [], step);
  // What the link says is what runs.
  const running = (await slotsOf(later)).find((slot) => slot.running);
  assert.equal(linkOf(here, "current"), running?.digest, step);
  const after: EnvoyVersion = version === "1.40.0" ? "1.39.3" : "1.40.0";
  const { code, stderr } = await later.command("push", envoyPath(after), "--wait=live");
  assert.equal(code, 0, `${step}: ${stderr}`);
  await later[Symbol.asyncDispose]();
}

for (const step of STEPS) {
  Deno.test(`push: kill -9 when ${step.name}: what starts next serves, and the next push goes through`, async () => {
    await using here = scene();
    const trial = step.proven === true ? ["--binary-trial", "0s"] : [];
    const epochd = await startWithSlots(here, { ...SHORT, envoyPath: envoyPath("1.38.3"), extraArguments: trial });
    const before = linkOf(here, "current");
    const pushed = epochd.command("push", envoyPath("1.39.3"), "--wait");
    await until(step.name, () => step.reached(here, epochd, before), { everyMs: 1 });
    await kill(epochd);
    assert.equal((await pushed).code, 1, "the client is told");
    await startsAnew(here, epochd.baseId, step.proven === true ? ["1.39.3"] : ["1.38.3"], step.name);
  });
}

Deno.test("rollback --binary: kill -9 when current is switched: what starts next runs what served before", async () => {
  await using here = scene();
  const more = { extraArguments: ["--binary-trial", "0s"] };
  const epochd = await startWithSlots(here, { ...SHORT, envoyPath: envoyPath("1.38.3"), ...more });
  for (const version of ["1.39.3", "1.40.0"] as const) {
    assert.equal((await epochd.command("push", envoyPath(version), "--wait=drained")).code, 0);
  }
  const before = linkOf(here, "current");
  const back = epochd.command("rollback", "--binary", "--wait");
  await until("it is switched", () => linkOf(here, "current") !== before, { everyMs: 1 });
  await kill(epochd);
  await back;
  await startsAnew(here, epochd.baseId, ["1.40.0", "1.39.3"], "rollback");
});
