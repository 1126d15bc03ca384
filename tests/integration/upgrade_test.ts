// Owns: the way from one Envoy version to another and back, by the file alone.
import assert from "node:assert/strict";
import { serverInfo } from "../support/admin.ts";
import { envoyPath, type EnvoyVersion } from "../support/envoys.ts";
import { until } from "../support/until.ts";
import {
  assertEndedByProtocol,
  assertUnhurt,
  eventsOf,
  handoff,
  installByRename,
  installByUnlink,
  scene,
} from "./scene.ts";

const SHORT = { drainTimeMs: 1_000, parentShutdownTimeMs: 2_000 };
type Install = typeof installByRename;

Deno.test("--watch-binary: 1.38.3 -> 1.39.3 -> 1.40.0 and back under traffic, by rename and by unlink, nothing failed", async () => {
  await using here = scene();
  const envoy = here.directory.at("envoy");
  installByRename(envoyPath("1.38.3"), envoy);
  const epochd = await here.start({ ...SHORT, envoyPath: envoy, extraArguments: ["--watch-binary"] });
  const traffic = here.traffic({ requestsPerSecond: 200 });
  const upgrades: readonly (readonly [EnvoyVersion, Install])[] = [
    ["1.39.3", installByRename],
    ["1.40.0", installByUnlink],
    ["1.39.3", installByUnlink],
    ["1.38.3", installByRename],
  ];
  for (const [at, [version, install]] of upgrades.entries()) {
    const held = traffic.hold({ chunks: 30, everyMs: 50 });
    await held.opened;
    install(envoyPath(version), envoy);
    await handoff(epochd, at + 1);
    const info = await serverInfo(here.admin);
    assert.deepEqual([info.epoch, info.version, info.state], [at + 1, version, "LIVE"]);
    await handoff(epochd, at + 1, "done");
    await held.outcome;
  }
  const report = await traffic.stop();
  assertUnhurt(report);
  assert.deepEqual(report.epochs, [0, 1, 2, 3, 4]);
  assert.deepEqual(eventsOf(epochd, "handoff_began").map(({ source }) => source), Array(4).fill("binary"));
  assertEndedByProtocol(epochd, [0, 1, 2, 3]);
});

Deno.test("--watch-binary: the same content under a new inode, and a touch, cause nothing", async () => {
  await using here = scene();
  const envoy = here.directory.at("envoy");
  installByRename(envoyPath("1.39.3"), envoy);
  const epochd = await here.start({ ...SHORT, envoyPath: envoy, extraArguments: ["--watch-binary"] });
  await epochd.waitForEvent("watch_changed", ({ subject }) => subject === "binary");
  Deno.utimeSync(envoy, new Date(), new Date());
  installByRename(envoyPath("1.39.3"), envoy);
  // SIGHUP looks at the binary again: by then the watch has had what came before, and the digest is the same.
  epochd.signal("SIGHUP");
  await handoff(epochd, 1);
  const passed = eventsOf(epochd, "preflight_passed");
  assert.deepEqual(passed.map(({ cached }) => cached), [true]);
  installByRename(envoyPath("1.40.0"), envoy);
  await handoff(epochd, 2);
  assert.deepEqual(eventsOf(epochd, "handoff_began").map(({ source }) => source), ["signal", "binary"]);
  assert.deepEqual(eventsOf(epochd, "content_changed").map(({ subject }) => subject), ["binary"]);
});

Deno.test("without --watch-binary a new binary waits for SIGHUP; a binary that is gone does not harm the serving epoch", async () => {
  await using here = scene();
  const envoy = here.directory.at("envoy");
  installByRename(envoyPath("1.39.3"), envoy);
  const epochd = await here.start({ ...SHORT, envoyPath: envoy });
  Deno.removeSync(envoy);
  epochd.signal("SIGHUP");
  const refused = await epochd.waitForEvent("handoff_failed");
  assert.equal(refused.refusal, "binary_missing");
  assert.equal((await serverInfo(here.admin)).state, "LIVE");
  installByRename(envoyPath("1.40.0"), envoy);
  epochd.signal("SIGHUP");
  await handoff(epochd, 2);
  assert.equal((await serverInfo(here.admin)).version, "1.40.0");
  await until("nobody else was started", () => eventsOf(epochd, "epoch_spawned").length === 2);
});
