// Owns: binaries that a real Envoy is not: hanging, of another hot restart version, talking nonsense.
import assert from "node:assert/strict";
import { fakeEnvoy } from "../support/fake_envoy.ts";
import { argvOf, isAlive } from "../support/procfs.ts";
import { until, within } from "../support/until.ts";
import { eventsOf, scene } from "./scene.ts";

Deno.test("a validator that hangs holds up neither SIGTERM nor anything else, and is ended with epochd", async () => {
  await using here = scene({ validate: { afterMs: "never" } });
  const epochd = here.start();
  await epochd.waitForEvent("epoch_live");
  here.edit();
  const [{ pid = 0 } = {}] = await here.envoy.untilRecord("validate");
  assert.ok(argvOf(pid).includes("validate"));
  await epochd.waitForEvent("handoff_began");
  const { code, stdout } = await epochd.command("status");
  assert.equal(code, 0);
  assert.match(stdout, /^envoy: replacing \(preflight\), ready, 1 handoff$/m);
  epochd.signal("SIGTERM");
  assert.equal((await within("its end", epochd.exit)).code, 0);
  await until("the validator is gone", () => !isAlive(pid));
  assert.deepEqual(here.envoy.recordsOf("start").map(({ epoch }) => epoch), [0]);
});

Deno.test("new content is checked while its debounce runs, once; newer content ends the check of the older", async () => {
  await using here = scene({ validate: { afterMs: "never" } });
  const epochd = here.start({ extraArguments: ["--debounce", "4s"] });
  await epochd.waitForEvent("epoch_live");
  await epochd.waitForEvent("watch_changed");
  here.edit();
  const [{ pid = 0 } = {}] = await here.envoy.untilRecord("validate");
  here.envoy.behave({});
  here.edit();
  await here.envoy.untilRecord("validate", undefined, 2);
  assert.deepEqual(eventsOf(epochd, "handoff_began"), [], "the debounce must still run");
  await until("the first check is ended", () => !isAlive(pid));
  await epochd.waitForEvent("handoff_live");
  assert.equal(here.envoy.recordsOf("validate").length, 2);
  assert.deepEqual(eventsOf(epochd, "preflight_passed").map(({ cached }) => cached), [true]);
});

Deno.test("a first epoch that dies, and a validator that hangs on the diagnosis: SIGTERM still ends it", async () => {
  await using here = scene({ dieAt: { moment: "before_init", code: 1 }, validate: { afterMs: "never" } });
  const epochd = here.start();
  const [{ pid = 0 } = {}] = await here.envoy.untilRecord("validate");
  epochd.signal("SIGTERM");
  const { code } = await within("its end", epochd.exit);
  assert.equal(code, 0);
  await until("the validator is gone", () => !isAlive(pid));
});

Deno.test("a binary whose --hot-restart-version differs is refused before the fork; the way back goes through", async () => {
  await using here = scene();
  const epochd = here.start();
  await epochd.waitForEvent("epoch_live");
  const other = fakeEnvoy(here.directory.path, { hotRestartVersion: "12.104" }, "other");
  const script = Deno.readTextFileSync(here.envoy.path);
  install(Deno.readTextFileSync(other.path), here.envoy.path);
  epochd.signal("SIGHUP");
  const failed = await epochd.waitForEvent("handoff_failed");
  assert.equal(failed.refusal, "hot_restart_version_differs");
  assert.match(String(failed.detail), /12\.104.*11\.104/);
  assert.deepEqual(other.recordsOf("start"), []);
  assert.deepEqual(other.recordsOf("validate"), []);
  install(script, here.envoy.path);
  epochd.signal("SIGHUP");
  await epochd.waitForEvent("handoff_live", ({ to }) => to === 1);
  assert.deepEqual(eventsOf(epochd, "epoch_ending"), []);
});

Deno.test("a binary that hangs on --hot-restart-version is refused after its bound, the serving epoch stays", async () => {
  await using here = scene();
  const epochd = here.start();
  await epochd.waitForEvent("epoch_live");
  const other = fakeEnvoy(here.directory.path, { versionAfterMs: "never" }, "other");
  install(Deno.readTextFileSync(other.path), here.envoy.path);
  epochd.signal("SIGHUP");
  const failed = await epochd.waitForEvent("handoff_failed");
  assert.equal(failed.refusal, "binary_hangs");
  const [{ pid = 0 } = {}] = other.recordsOf("version");
  await until("it is ended", () => !isAlive(pid));
  assert.deepEqual(other.recordsOf("start"), []);
  assert.equal(epochd.envoyPids().length, 1);
});

Deno.test("a binary that is no Envoy, but runs, is refused with what it said", async () => {
  await using here = scene();
  const epochd = here.start();
  await epochd.waitForEvent("epoch_live");
  install("#!/bin/sh\necho 'no such flag' >&2; exit 64\n", here.envoy.path);
  epochd.signal("SIGHUP");
  const failed = await epochd.waitForEvent("handoff_failed");
  assert.equal(failed.refusal, "spawn_failed");
  assert.match(String(failed.detail), /--hot-restart-version: ended with 64 and said no such flag/);
  assert.equal(epochd.envoyPids().length, 1);
});

function install(script: string, path: string): void {
  Deno.writeTextFileSync(`${path}.new`, script);
  Deno.chmodSync(`${path}.new`, 0o755);
  Deno.renameSync(`${path}.new`, path);
}
