// Owns: executables that come into the slots by other means than a push, watched: rsync, a node agent, a DaemonSet.
import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { serverInfo } from "../support/admin.ts";
import { envoyPath, type EnvoyVersion } from "../support/envoys.ts";
import { signer } from "../support/minisign.ts";
import { until } from "../support/until.ts";
import { linkOf, startWithSlots } from "./push_scene.ts";
import { assertUnhurt, eventsOf, handoff, installByRename, type Scene, scene } from "./scene.ts";

const SHORT = { drainTimeMs: 1_000, parentShutdownTimeMs: 2_000 };
const WATCH = ["--watch-binary", "--poll", "500ms"];

function digestOf(version: EnvoyVersion): string {
  return createHash("sha256").update(Deno.readFileSync(envoyPath(version))).digest("hex");
}

/** Moves `current` as a careful tool does. */
function point(here: Scene, digest: string): void {
  const path = here.directory.at("slots/envoy/current");
  Deno.symlinkSync(digest, `${path}.new`);
  Deno.renameSync(`${path}.new`, path);
}

function slot(here: Scene, digest: string): string {
  const path = here.directory.at("slots/envoy", digest);
  Deno.mkdirSync(path, { recursive: true });
  Deno.chmodSync(path, 0o755);
  return `${path}/envoy`;
}

Deno.test("--watch-binary with slots: a slot that is filled and then linked, and one that is linked while it is being written", async () => {
  await using here = scene();
  const options = { ...SHORT, envoyPath: envoyPath("1.38.3"), extraArguments: WATCH };
  const epochd = await startWithSlots(here, options);
  await epochd.waitForEvent("watch_changed", ({ subject }) => subject === "binary");
  const traffic = here.traffic({ requestsPerSecond: 200 });
  const first = digestOf("1.39.3");
  Deno.copyFileSync(envoyPath("1.39.3"), slot(here, first));
  point(here, first);
  await handoff(epochd, 1);
  assert.equal((await serverInfo(here.admin)).version, "1.39.3");
  await handoff(epochd, 1, "done");
  // As `rsync --inplace` in a hurry: the link first, the bytes in pieces.
  const second = digestOf("1.40.0");
  const bytes = Deno.readFileSync(envoyPath("1.40.0"));
  {
    using file = Deno.openSync(slot(here, second), { write: true, create: true, mode: 0o755 });
    point(here, second);
    for (let sent = 0; sent < bytes.length;) {
      sent += file.writeSync(bytes.subarray(sent, sent + 20_000_000));
      await new Promise((resolve) => setTimeout(resolve, 150));
      assert.equal(eventsOf(epochd, "epoch_spawned").length, 2, "half a binary was taken");
    }
  }
  await epochd.waitForEvent("handoff_live", ({ to }) => to === 2);
  assert.equal((await serverInfo(here.admin)).version, "1.40.0");
  assertUnhurt(await traffic.stop());
});

Deno.test("--watch-binary with slots: the installed executable counts until there is a current one", async () => {
  await using here = scene();
  const envoy = here.directory.at("envoy");
  installByRename(envoyPath("1.38.3"), envoy);
  const epochd = await startWithSlots(here, { ...SHORT, envoyPath: envoy, extraArguments: WATCH });
  await epochd.waitForEvent("watch_changed", ({ subject }) => subject === "binary");
  installByRename(envoyPath("1.39.3"), envoy);
  await handoff(epochd, 1);
  assert.equal((await serverInfo(here.admin)).version, "1.39.3");
  assert.equal((await epochd.command("push", envoyPath("1.40.0"), "--wait=drained")).code, 0);
  installByRename(envoyPath("1.38.3"), envoy);
  epochd.signal("SIGHUP");
  await until("SIGHUP has its epoch", () => eventsOf(epochd, "handoff_live").length === 3);
  assert.equal((await serverInfo(here.admin)).version, "1.40.0");
});

Deno.test("--watch-binary with slots: content under another digest, others' write permission and a missing signature are not run", async () => {
  await using here = scene();
  const mine = signer();
  const extraArguments = [...WATCH, "--binary-public-key", mine.publicKey];
  const epochd = await startWithSlots(here, { ...SHORT, envoyPath: envoyPath("1.38.3"), extraArguments });
  await epochd.waitForEvent("watch_changed", ({ subject }) => subject === "binary");
  const traffic = here.traffic({ requestsPerSecond: 200 });
  const refusals = () => eventsOf(epochd, "handoff_failed").map(({ refusal }) => refusal);
  const wrong = "0".repeat(64);
  Deno.copyFileSync(envoyPath("1.39.3"), slot(here, wrong));
  point(here, wrong);
  await until("refused", () => refusals().includes("digest_differs"));
  const digest = digestOf("1.39.3");
  const path = slot(here, digest);
  Deno.copyFileSync(envoyPath("1.39.3"), path);
  point(here, digest);
  await until("refused", () => {
    epochd.signal("SIGHUP");
    return refusals().includes("signature_missing");
  }, { everyMs: 500 });
  // In this order: a SIGHUP of before may still be on its way.
  Deno.chmodSync(path, 0o777);
  Deno.writeTextFileSync(`${path}.minisig`, mine.sign(Deno.readFileSync(path)));
  await until("refused", () => {
    epochd.signal("SIGHUP");
    return refusals().includes("slot_unsafe");
  }, { everyMs: 500 });
  assert.equal(eventsOf(epochd, "epoch_spawned").length, 1);
  Deno.chmodSync(path, 0o755);
  epochd.signal("SIGHUP");
  await epochd.waitForEvent("handoff_live");
  assert.equal((await serverInfo(here.admin)).version, "1.39.3");
  assertUnhurt(await traffic.stop());
});

Deno.test("--watch-binary with slots: one that crashes on trial is gone back from, and current follows what serves", async () => {
  await using here = scene();
  const epochd = await startWithSlots(here, { ...SHORT, envoyPath: envoyPath("1.38.3"), extraArguments: WATCH });
  assert.equal((await epochd.command("push", envoyPath("1.39.3"), "--wait=drained")).code, 0);
  const good = linkOf(here, "current")!;
  const crash = here.directory.at("crash");
  const script = `#!/bin/sh\ncase "$*" in *--restart-epoch*) pid=$$; ` +
    `(while ! [ -e ${crash} ]; do kill -0 $pid || exit; sleep 0.05; done; kill -SEGV $pid) >/dev/null 2>&1 & ;; esac\n` +
    `exec ${envoyPath("1.40.0")} "$@"\n`;
  const digest = createHash("sha256").update(script).digest("hex");
  Deno.writeTextFileSync(slot(here, digest), script, { mode: 0o755 });
  point(here, digest);
  await epochd.waitForEvent("handoff_live", ({ to }) => to === 2);
  Deno.writeTextFileSync(crash, "");
  await epochd.waitForEvent("newest_died", ({ answer }) => answer === "rollback");
  await until("current follows", () => linkOf(here, "current") === good);
  assert.equal((await serverInfo(here.admin)).version, "1.39.3");
});
