// Owns: pods that differ: in concurrency, admin address, times, user, base id; and what of it the state directory says.

import assert from "node:assert/strict";
import { serverInfo } from "../../support/admin.ts";
import { HttpConnection } from "../../support/http_client.ts";
import { freePorts } from "../../support/ports.ts";
import { argvOf } from "../../support/procfs.ts";
import { until, within } from "../../support/until.ts";
import { assertUnhurt } from "../scene.ts";
import { holdLock } from "./lock_holder.ts";
import { node } from "./node.ts";
import type { Pod } from "./pod.ts";

Deno.test("another concurrency + the old pod's is kept and both are told, also where no owner.json says it", async () => {
  await using here = node();
  const a = here.pod("a", { concurrency: 1 });
  await a.ready();
  const b = here.pod("b", { concurrency: 3 });
  await b.ready();
  assert.equal((await serverInfo({ port: here.adminPort })).concurrency, 1);
  assert.deepEqual(b.said("settings_adopted").map(({ concurrency, pod }) => [concurrency, pod]), [[1, "a"]]);
  assert.match(String(b.said("concurrency_chosen")[0]?.msg), /--concurrency 1, .* not 3/);
  // Envoy's own admin says it as well.
  await using _ = await holdLock(`${here.stateDir}/epoch.lock`);
  Deno.removeSync(`${here.stateDir}/owner.json`);
  const c = here.pod("c", { concurrency: 4 });
  await c.ready();
  assert.equal((await serverInfo({ port: here.adminPort })).concurrency, 1);
});

Deno.test("another admin address in each pod + the owner's is asked, the new Envoy listens at its own", async () => {
  await using here = node();
  const [firstPort, secondPort] = freePorts(2) as [number, number];
  const a = here.pod("a", { bootstrap: { adminPort: firstPort } });
  await a.ready();
  const traffic = here.traffic();
  const b = here.pod("b", { bootstrap: { adminPort: secondPort } });
  await b.ready();
  assertUnhurt(await traffic.stop());
  assert.deepEqual(b.said("predecessor_found").map(({ epoch, by }) => [epoch, by]), [[0, "admin"]]);
  assert.equal((await serverInfo({ port: secondPort })).epoch, 1);
  const owner = JSON.parse(Deno.readTextFileSync(`${here.stateDir}/owner.json`));
  assert.deepEqual([owner.pod, owner.epoch, owner.ready, owner.admin.port], ["b", 1, true, secondPort]);
});

Deno.test("a longer parent shutdown time than the old pod's grace period bears + it is cut to what fits", async () => {
  await using here = node();
  const a = here.pod("a", { gracePeriod: "9s", parentShutdownTime: "2s" });
  await a.ready();
  const b = here.pod("b", { gracePeriod: "60s", parentShutdownTime: "20s" });
  await b.live(1);
  const pid = await until("its Envoy", () => b.envoys().get(1));
  const argv = argvOf(pid);
  assert.equal(argv[argv.indexOf("--parent-shutdown-time-s") + 1], "4");
  assert.deepEqual(b.said("settings_adopted").map((said) => said.parentShutdownTimeMs), [4_000]);
  await b.ready();
  assert.equal(await a.stop(), 0);
});

Deno.test("a connection that is kept open to the old Envoy's admin + says LIVE for ever, and fools nobody", async () => {
  await using here = node();
  const a = here.pod("a", { parentShutdownTime: "4s" });
  await a.ready();
  using pooled = await HttpConnection.open({ port: here.adminPort });
  const ask = async () => JSON.parse((await pooled.request({ path: "/server_info" })).body);
  assert.equal((await ask()).state, "LIVE");
  const b = here.pod("b", { parentShutdownTime: "4s" });
  await b.live(1);
  const { state, command_line_options: { restart_epoch: epoch = 0 } } = await ask();
  assert.deepEqual({ state, epoch }, { state: "LIVE", epoch: 0 }, "the old Envoy answers on what it had accepted");
  // In spite of that: the new one is told of as what it is, and a third one joins it.
  const c = here.pod("c", { parentShutdownTime: "4s" });
  await c.live(2);
  await c.ready();
  assert.deepEqual(c.said("predecessor_found").map(({ epoch, by }) => [epoch, by]), [[1, "admin"]]);
});

Deno.test("another user than the segment's owner + refused with what to do, exit code 3, the old pod serves", async () => {
  await using here = node();
  const a = here.pod("a");
  await a.ready();
  // The state directory of the other user, so that it is the segment that refuses.
  Deno.chmodSync(here.directory.path, 0o755);
  const own = here.directory.at("nobody");
  for (const path of [own, `${own}/pod`]) {
    Deno.mkdirSync(path);
    Deno.chownSync(path, 65534, 65534);
  }
  const path = here.bootstrap("b");
  Deno.chmodSync(path, 0o644);
  const b = here.pod("b", { isolated: false, ...asNobody(own), bootstrapPath: path });
  assert.equal((await within("its end", b.exit)).code, 3);
  assert.match(
    b.log.tail(),
    /segment_foreign: join .* belongs to uid 0, epochd and Envoy run as uid 65534; roll delete-first/,
  );
  assert.equal((await a.status()).ready, true);
});

Deno.test("another base id in one state directory + refused while its Envoy lives, free when it is gone", async () => {
  await using here = node();
  await using there = node();
  const a = here.pod("a");
  await a.ready();
  const b = there.pod("b", { stateDir: here.stateDir });
  assert.equal((await within("its end", b.exit)).code, 3);
  assert.match(
    b.log.tail(),
    new RegExp(`state directory is that of base id ${here.baseId}, where an Envoy of a lives`),
  );
  assert.equal(await a.stop(), 0);
  const c = there.pod("c", { stateDir: here.stateDir });
  await c.ready();
  assert.deepEqual(c.said("start_began").map(({ epoch, cause }) => [epoch, cause]), [[0, "first"]]);
});

Deno.test("torn, foreign and misdated files + the Envoy that lives is joined by its sockets and its admin", async () => {
  await using here = node();
  let old: Pod = here.pod("p0");
  await old.ready();
  const spoils: (() => void)[] = [
    () => Deno.writeTextFileSync(`${here.stateDir}/epoch`, "7 17"),
    () => Deno.writeTextFileSync(`${here.stateDir}/owner.json`, '{"epoch": 12, "ready'),
    () => Deno.writeTextFileSync(`${here.stateDir}/epoch`, `41 ${Date.now() + 3_600_000}\n`),
    () => {
      const path = `${here.stateDir}/owner.json`;
      const owner = JSON.parse(Deno.readTextFileSync(path));
      const admin = { kind: "tcp", host: "127.0.0.1", port: 1 };
      Deno.writeTextFileSync(path, JSON.stringify({ ...owner, bootId: "of another boot", admin, epoch: 99 }));
    },
  ];
  for (const [index, spoil] of spoils.entries()) {
    const traffic = here.traffic();
    // What is spoilt stays so: nobody can write while the lock is held.
    const lock = await holdLock(`${here.stateDir}/epoch.lock`);
    spoil();
    const next = here.pod(`p${index + 1}`);
    await next.live(index + 1);
    await lock[Symbol.asyncDispose]();
    await next.ready();
    assertUnhurt(await traffic.stop());
    assert.equal(await old.stop(), 0);
    old = next;
  }
});

Deno.test("a state directory that can't be written any more + the service and its end go on, the beats are reported", async () => {
  await using here = node();
  const mount = (...args: string[]) => new Deno.Command("mount", { args }).outputSync();
  Deno.mkdirSync(here.stateDir, { mode: 0o700 });
  assert.ok(mount("-t", "tmpfs", "-o", "mode=700", "none", here.stateDir).success, "tests of pods run as root");
  try {
    const a = here.pod("a", { isolated: false });
    await a.ready();
    const traffic = here.traffic();
    mount("-o", "remount,ro", here.stateDir);
    await a.event("publish_failed");
    a.signal("SIGHUP");
    await a.event("handoff_failed");
    assert.equal((await a.status()).ready, true);
    const b = here.pod("b", { isolated: false });
    assert.equal((await within("its end", b.exit)).code, 2);
    mount("-o", "remount,rw", here.stateDir);
    await a.event("publish_back");
    // Full, as a disk can be.
    await a.event("handoff_done");
    assertUnhurt(await traffic.stop());
    assert.equal(await a.stop(), 0);
  } finally {
    await until("it is unmounted", () => new Deno.Command("umount", { args: [here.stateDir] }).outputSync().success);
  }
});

function asNobody(directory: string) {
  return {
    directory: `${directory}/pod`,
    stateDir: `${directory}/state`,
    under: ["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups"],
  };
}
