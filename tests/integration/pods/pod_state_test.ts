import assert from "node:assert/strict";
import type { HotRestartSocket } from "../../../lib/adapters/hot_restart_sockets.ts";
import { parseBeat } from "../../../lib/adapters/heartbeat.ts";
import { SharedPodState } from "../../../lib/adapters/pod_state.ts";
import type { AdminAddress } from "../../../lib/core/epoch.ts";
import type { IdentityAnswer } from "../../../lib/core/event.ts";
import { holdLock } from "./lock_holder.ts";
import { type TempDir, tempDir } from "../../support/tempdir.ts";

const ADMIN: AdminAddress = { kind: "tcp", host: "127.0.0.1", port: 9901 };
const ELSEWHERE: AdminAddress = { kind: "tcp", host: "127.0.0.1", port: 9902 };
const NOW = 1_700_000_000_000;

interface World {
  slots: Record<number, readonly number[]>;
  /** Of this base id; each has the one socket at which a predecessor is asked. */
  standIns?: readonly number[];
  answers: Map<number, number>;
  asked: number[];
  nowMs: number;
}

function envoySockets(slot: number): HotRestartSocket[] {
  return (["parent", "child"] as const).flatMap((role) => [false, true].map((udp) => ({ role, udp, slot, inode: 1 })));
}

function supervisor(dir: TempDir, instance = "a", world: Partial<World> = {}, bootId = "boot", baseId = 7) {
  const is: World = { slots: {}, answers: new Map(), asked: [], nowMs: NOW, ...world };
  const state = new SharedPodState({
    stateDir: dir.path,
    baseId,
    admin: {
      identity(address): Promise<IdentityAnswer> {
        const port = address.kind === "tcp" ? address.port : 0;
        is.asked.push(port);
        const epoch = is.answers.get(port);
        if (epoch === undefined) return Promise.resolve({ kind: "silent", why: "refused", detail: "" });
        const identity = { epoch, state: "LIVE", version: "x", hotRestartVersion: "11.104", concurrency: 2 } as const;
        return Promise.resolve({ kind: "answered", identity });
      },
    },
    sockets: (of) =>
      Promise.resolve([
        ...(is.slots[of] ?? []).flatMap(envoySockets),
        ...(is.standIns ?? []).map((slot): HotRestartSocket => ({ role: "parent", udp: false, slot, inode: 1 })),
      ]),
    self: () => ({
      instance,
      bootId,
      baseId,
      pod: `pod-${instance}`,
      concurrency: 2,
      drainTimeMs: 1,
      parentShutdownTimeMs: 2,
      gracePeriodMs: 3,
      uid: 0,
      version: "1",
    }),
    wallMs: () => is.nowMs,
  });
  return { state, is };
}

const told = (epoch: number, ready = true, admin = ADMIN) => ({ epoch, ready, admin, envoyVersion: "1.40.0" });

Deno.test("SharedPodState + what one publishes the other one sees, in the format that the Go supervisor shares", async () => {
  await using dir = tempDir();
  const [a, b] = [supervisor(dir, "a"), supervisor(dir, "b", { nowMs: NOW + 700 })];
  assert.equal(await a.state.publish(told(4)), undefined);
  assert.equal(Deno.readTextFileSync(dir.at("epoch")), `4 ${NOW}\n`);
  const seen = await b.state.look({ probeLock: false });
  assert.deepEqual(seen.heartbeat, { kind: "beat", epoch: 4, ageMs: 700 });
  assert.deepEqual([seen.mine, seen.sameBoot, seen.owner?.pod, seen.owner?.ready], [false, true, "pod-a", true]);
  assert.equal((await a.state.look({ probeLock: false })).mine, true);
  assert.deepEqual([...Deno.readDirSync(dir.path)].map(({ name }) => name).sort(), [
    "epoch",
    "epoch.lock",
    "owner.json",
  ]);
});

Deno.test("SharedPodState + an empty, torn or foreign file is none", async () => {
  await using dir = tempDir();
  const { state } = supervisor(dir);
  for (const text of ["", "4", "4 ", "4 17000x\n", "-1 17\n", "4 17\n5 18\n", "\0\0\0"]) {
    dir.write("epoch", text);
    dir.write("owner.json", text);
    assert.deepEqual(await state.look({ probeLock: false }), { heartbeat: { kind: "none" }, mine: false, slots: [] });
  }
  for (const text of ["{}", "[]", "null", '{"epoch": "4"}', '{"epoch": 4, "ready": true, "admin": {"kind": "tcp"}}']) {
    dir.write("owner.json", text);
    assert.equal((await state.look({ probeLock: false })).owner, undefined);
  }
  assert.deepEqual(parseBeat("4 17"), { epoch: 4, unixMs: 17 });
});

Deno.test("SharedPodState + asks the owner's address first, its own bootstrap's next, and takes the answer that has a socket", async () => {
  await using dir = tempDir();
  await supervisor(dir, "a").state.publish(told(4, true, ELSEWHERE));
  const there = supervisor(dir, "b", { slots: { 7: [1] }, answers: new Map([[9902, 4]]) });
  assert.equal((await there.state.look({ admin: ADMIN, probeLock: false })).identity?.epoch, 4);
  assert.deepEqual(there.is.asked, [9902]);
  const moved = supervisor(dir, "b", { slots: { 7: [1] }, answers: new Map([[9902, 3], [9901, 4]]) });
  assert.equal((await moved.state.look({ admin: ADMIN, probeLock: false })).identity?.epoch, 4);
  assert.deepEqual(moved.is.asked, [9902, 9901]);
  const nobody = supervisor(dir, "b", { slots: { 7: [] }, answers: new Map([[9902, 4]]) });
  assert.equal((await nobody.state.look({ admin: ADMIN, probeLock: false })).identity, undefined);
  assert.deepEqual(nobody.is.asked, [], "nobody lives, nobody is asked");
  const unasked = supervisor(dir, "b", { slots: { 7: [1] }, answers: new Map([[9902, 4]]) });
  assert.equal((await unasked.state.look({ probeLock: false })).identity, undefined);
  assert.deepEqual(unasked.is.asked, []);
});

Deno.test("SharedPodState + what stands in for a dead predecessor is no Envoy to join", async () => {
  await using dir = tempDir();
  const { state } = supervisor(dir, "a", { slots: { 7: [2] }, standIns: [1], answers: new Map([[9901, 5]]) });
  const { slots, identity } = await state.look({ admin: ADMIN, probeLock: false });
  assert.deepEqual([slots, identity?.epoch], [[2], 5]);
});

Deno.test("SharedPodState + the address of another boot is not asked", async () => {
  await using dir = tempDir();
  await supervisor(dir, "a", {}, "an older boot").state.publish(told(4, true, ELSEWHERE));
  const b = supervisor(dir, "b", { slots: { 7: [1] }, answers: new Map([[9902, 4], [9901, 1]]) });
  const seen = await b.state.look({ admin: ADMIN, askOwner: true, probeLock: false });
  assert.deepEqual([seen.sameBoot, seen.identity?.epoch], [false, 1]);
  assert.deepEqual(b.is.asked, [9901]);
});

Deno.test("SharedPodState + another base id's files say nothing, but for that its Envoy lives", async () => {
  await using dir = tempDir();
  await supervisor(dir, "a", {}, "boot", 8).state.publish(told(4));
  for (const lives of [true, false]) {
    const b = supervisor(dir, "b", { slots: { 7: [0], 8: lives ? [1] : [] } });
    const seen = await b.state.look({ probeLock: false });
    assert.deepEqual([seen.heartbeat, seen.owner, seen.mine], [{ kind: "none" }, undefined, false]);
    assert.deepEqual(seen.otherBase, lives ? { baseId: 8, pod: "pod-a" } : undefined);
  }
});

Deno.test("SharedPodState + a predecessor that has not seen its successor yet does not overwrite what that one says", async () => {
  await using dir = tempDir();
  const [a, b] = [supervisor(dir, "a"), supervisor(dir, "b")];
  await a.state.publish(told(4));
  b.is.nowMs += 100;
  await b.state.publish(told(5, false));
  a.is.nowMs += 300;
  assert.equal(await a.state.publish(told(4)), undefined);
  assert.equal((await a.state.look({ probeLock: false })).owner?.epoch, 5);
  // The successor has fallen silent, and the old one serves as before.
  a.is.nowMs += 10_000;
  await a.state.publish(told(4));
  assert.equal((await a.state.look({ probeLock: false })).owner?.epoch, 4);
  // A fresh start of one's own is no successor of anybody.
  await a.state.publish(told(0));
  assert.equal((await a.state.look({ probeLock: false })).owner?.epoch, 0);
});

Deno.test("SharedPodState + epoch.lock held by another: the beat is skipped, with the reason, and nothing waits for it", async () => {
  await using dir = tempDir();
  const { state } = supervisor(dir);
  const holder = await holdLock(dir.at("epoch.lock"));
  assert.match((await state.publish(told(4))) ?? "", /epoch\.lock is held by another/);
  await holder[Symbol.asyncDispose]();
  assert.equal(await state.publish(told(4)), undefined);
});

Deno.test("SharedPodState + a directory that can't be written is a problem with its path, not an exception", async () => {
  const state = supervisor({ path: "/proc/self/nowhere" } as TempDir).state;
  assert.match((await state.publish(told(4))) ?? "", /^write heartbeat \/proc\/self\/nowhere\/epoch: /);
  assert.match((await state.takeHandoffLock(0)).problem ?? "", /^take \/proc\/self\/nowhere\/handoff\.lock: /);
  assert.equal((await state.look({ probeLock: true })).handoffUnderWay, false);
});

Deno.test("SharedPodState + handoff.lock: one at a time, seen by the other one, free for it when what was published is there", async () => {
  await using dir = tempDir();
  const [a, b] = [supervisor(dir, "a").state, supervisor(dir, "b").state];
  assert.deepEqual(await a.takeHandoffLock(0), { taken: true });
  assert.deepEqual(await b.takeHandoffLock(30), { taken: false });
  const [first, second] = await Promise.all([b.look({ probeLock: true }), b.look({ probeLock: true })]);
  assert.deepEqual([first.handoffUnderWay, second.handoffUnderWay], [true, true]);
  assert.equal((await a.look({ probeLock: true })).handoffUnderWay, false, "one's own is no news");
  assert.equal((await b.look({ probeLock: false })).handoffUnderWay, undefined);
  const published = a.publish(told(4));
  a.releaseHandoffLock();
  assert.deepEqual(await b.takeHandoffLock(5_000), { taken: true });
  assert.equal((await b.look({ probeLock: false })).owner?.epoch, 4);
  await published;
  b.releaseHandoffLock();
  assert.deepEqual(await a.takeHandoffLock(5_000), { taken: true });
  a.releaseHandoffLock();
  assert.deepEqual(
    await a.takeHandoffLock(5_000),
    { taken: true },
    "a release that is under way is not taken for later",
  );
  a.releaseHandoffLock();
});
