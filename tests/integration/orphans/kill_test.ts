// Owns: the death of a supervisor on a plain node, by kill -9 and by a crash, on a real Envoy under load.

import assert from "node:assert/strict";
import { freeLargeBaseId } from "../../support/base_ids.ts";
import { runEpochd } from "../../support/epochd.ts";
import { processFacts } from "../../support/procfs.ts";
import { ENVOY_VERSIONS } from "../../support/envoys.ts";
import { pause, until, within } from "../../support/until.ts";
import { assertUnhurt } from "../scene.ts";
import { unit } from "./unit.ts";

const KILLS = 20;

Deno.test("epochd with --on-supervisor-death serve + Envoy is nobody's child; a stop leaves no Envoy, no launcher, no segment in use", async () => {
  await using here = await unit();
  const epochd = await here.serving();
  const [pid] = [...here.envoys().values()] as [number];
  assert.notEqual(processFacts(pid)?.parentPid, epochd.pid);
  await until("its watcher", () => epochd.watchers().length === 1);
  assert.equal(await epochd.stop(), 0);
  assert.deepEqual(epochd.said("epoch_exited").map(({ exitCode }) => exitCode), [0]);
  assert.deepEqual([...here.envoys()], []);
  await until("no launcher is left", () => here.launchers().length === 0);
});

Deno.test(`kill -9 of epochd ${KILLS} times in a row + each next one takes over: no request fails, streams end by protocol only`, async () => {
  await using here = await unit();
  let epochd = await here.serving();
  const traffic = here.node.traffic({ heldStreams: 1, stream: { chunks: 20, everyMs: 50 } });
  for (let kill = 0; kill < KILLS; kill++) {
    const socket = await echoing(here.node.listenPort);
    await epochd.kill();
    assert.ok(here.envoys().size > 0, "its Envoy serves on");
    assert.equal(await socket.ask(`${kill}`), `${kill}`, "a WebSocket outlives the supervisor");
    epochd = await here.serving({ version: ENVOY_VERSIONS[kill % ENVOY_VERSIONS.length]! });
    assert.equal(await socket.ask(`${kill} again`), `${kill} again`, "and the handoff to the next one");
    await socket.close();
  }
  assertUnhurt(await traffic.stop());
  await epochd.event("ready_changed", ({ ready }) => ready === true);
  assert.equal(await epochd.stop(), 0);
  assert.deepEqual([...here.envoys()], []);
});

Deno.test("kill -9 of epochd with a base id whose sockets have numbers from 2^31 on + the next one knows the Envoy as LIVE and takes over", async () => {
  await using here = await unit({}, freeLargeBaseId());
  const epochd = await here.serving();
  const traffic = here.node.traffic();
  await epochd.kill();
  const next = await here.serving();
  assert.deepEqual(next.said("orphan_awaited", "orphan_ending"), []);
  assertUnhurt(await traffic.stop());
  assert.equal(await next.stop(), 0);
  assert.deepEqual([...here.envoys()], []);
});

Deno.test("epochd killed again and again before it has come far + no request fails, and one that is let live takes over", async () => {
  await using here = await unit();
  await (await here.serving()).kill();
  const traffic = here.node.traffic();
  for (let moment = 0; moment < KILLS; moment++) {
    const epochd = await here.start();
    await epochd.event("supervisor_started");
    // The moment is what is varied, from before its first look until after LIVE.
    await pause(moment * 40);
    await epochd.kill();
  }
  const last = await here.serving();
  await last.event("ready_changed", ({ ready }) => ready === true);
  assertUnhurt(await traffic.stop());
  assert.equal(await last.stop(), 0);
  assert.deepEqual([...here.envoys()], []);
});

Deno.test("--on-supervisor-death serve as PID 1 + refused with 2 and one line, nothing is started", async () => {
  await using here = await unit();
  const epochd = await here.start({ under: ["unshare", "--pid", "--fork", "--mount-proc", "--mount"] });
  assert.equal((await within("its end", epochd.exit)).code, 2);
  const refused = epochd.said("start_refused");
  assert.equal(refused.length, 1);
  assert.match(
    String(refused[0]?.problem),
    /^--on-supervisor-death serve: epochd is PID 1 here, whose end is everyone's/,
  );
  assert.deepEqual([...here.envoys()], []);
});

Deno.test("--on-supervisor-death serve in a Kubernetes pod, or without epochd-launch + refused with 2", async () => {
  await using here = await unit();
  const pod = await here.start({ environment: { KUBERNETES_SERVICE_HOST: "10.0.0.1" } });
  assert.equal((await within("its end", pod.exit)).code, 2);
  assert.match(String(pod.said("start_refused")[0]?.problem), /this is a Kubernetes pod/);
  const bare = await here.start({ environment: { EPOCHD_LAUNCHER: "/none/epochd-launch" } });
  assert.equal((await within("its end", bare.exit)).code, 2);
  assert.match(String(bare.said("start_refused")[0]?.problem), /\/none\/epochd-launch is no executable file/);
});

Deno.test("status and doctor + say that Envoy outlives epochd", async () => {
  await using here = await unit();
  const epochd = await here.serving();
  await until("its API", async () => (await runEpochd(["status", "--api-socket", epochd.apiSocket])).code === 0);
  const status = await runEpochd(["status", "--api-socket", epochd.apiSocket]);
  assert.match(status.stdout, /its Envoys outlive epochd/);
  const doctor = await runEpochd(["doctor", "--api-socket", epochd.apiSocket]);
  assert.match(doctor.stdout, /ok +supervisor death +epoch 0 is a child of process \d+ and outlives epochd/);
  assert.equal(await epochd.stop(), 0);
});

for (const signal of ["SIGABRT", "SIGSEGV"] as const) {
  Deno.test(`epochd ends by ${signal} + its Envoy serves on, the next one takes over`, async () => {
    await using here = await unit();
    const first = await here.serving();
    const traffic = here.node.traffic();
    const held = traffic.hold({ chunks: 30, everyMs: 50 });
    await held.opened;
    await first.kill(signal);
    const second = await here.serving();
    assert.deepEqual(await within("the stream", held.outcome), { kind: "complete", chunks: 30 });
    assertUnhurt(await traffic.stop());
    assert.equal(await second.stop(), 0);
    assert.deepEqual([...here.envoys()], []);
  });
}

Deno.test("kill -9 of the watcher + neither Envoy's death nor its end, and it is watched again", async () => {
  await using here = await unit();
  const epochd = await here.serving();
  const traffic = here.node.traffic();
  for (let kill = 0; kill < 3; kill++) {
    const [watcher] = await until("its watcher", () => {
      const found = epochd.watchers();
      return found.length === 1 ? found as [number] : undefined;
    });
    Deno.kill(watcher, "SIGKILL");
    await until("another watcher", () => epochd.watchers().some((pid) => pid !== watcher));
  }
  assert.deepEqual(epochd.said("epoch_exited", "newest_died"), []);
  assertUnhurt(await traffic.stop());
  const [pid] = [...here.envoys().values()] as [number];
  Deno.kill(pid, "SIGKILL");
  const died = await epochd.event("epoch_exited");
  assert.deepEqual([died.exitCode, died.exitSignal], [137, "SIGKILL"]);
  assert.equal((await within("its end", epochd.exit)).code, 1);
});

/** A WebSocket that is held, and says back what it is told. */
async function echoing(port: number) {
  const socket = new WebSocket(`ws://127.0.0.1:${port}/ws`);
  const once = (name: "open" | "message" | "close") =>
    new Promise<unknown>((resolve, reject) => {
      socket.addEventListener(name, (event) => resolve("data" in event ? event.data : undefined), { once: true });
      if (name !== "close") socket.addEventListener("close", () => reject(new Error("it was closed")), { once: true });
    });
  await within("a WebSocket", once("open"));
  return {
    async ask(text: string) {
      const answer = once("message");
      socket.send(text);
      return await within("its answer", answer);
    },
    async close() {
      const closed = once("close");
      socket.close();
      await within("its end", closed);
    },
  };
}
