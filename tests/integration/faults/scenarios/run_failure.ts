// Owns: line 2 of issue 4: bootstraps that pass preflight and can't run. Must not: hold slow starts or kills.

import assert from "node:assert/strict";
import type { BootstrapOptions } from "../../../support/bootstrap.ts";
import { freePort } from "../../../support/ports.ts";
import { until } from "../../../support/until.ts";
import type { Scene } from "../scene.ts";
import type { Scenario } from "../scenario.ts";
import type { Stage } from "../stage.ts";

const NO_RETRY = ["--retry-limit", "0"];

/** A port that somebody listens on without SO_REUSEPORT. */
function heldPort(stage: Stage): number {
  const port = freePort();
  stage.use(Deno.listen({ hostname: "127.0.0.1", port }));
  return port;
}

interface CannotRun {
  readonly what: string;
  readonly change: (stage: Stage, scene: Scene) => Partial<BootstrapOptions>;
  /** The child dies after it had the parent's admin closed. */
  readonly takesAdmin: boolean;
}

const CANNOT_RUN: readonly CannotRun[] = [
  {
    what: "a listener's port that another process holds",
    change: (stage) => ({ extraListenPorts: [heldPort(stage)] }),
    takesAdmin: true,
  },
  {
    what: "a listener's address that this machine does not have",
    change: () => ({
      extraListenPorts: [freePort()],
      change: (it) => it.static_resources.listeners[1].address.socket_address.address = "192.0.2.1",
    }),
    takesAdmin: true,
  },
  {
    what: "an admin port that another process holds",
    change: (stage) => ({ adminPort: heldPort(stage) }),
    takesAdmin: true,
  },
  {
    what: "an admin socket in a directory that is not there",
    change: (_stage, scene) => ({ adminPath: scene.directory.at("nowhere", "admin.sock") }),
    takesAdmin: true,
  },
  {
    what: "an admin socket where a directory is",
    change: (_stage, scene) => {
      Deno.mkdirSync(scene.directory.at("taken"), { recursive: true });
      return { adminPath: scene.directory.at("taken") };
    },
    takesAdmin: true,
  },
];

/** Acts, and waits until the failed handoff and what it entails are over; resolves to the epoch that serves then. */
async function fails(scene: Scene, act: () => void): Promise<number> {
  const since = scene.mark();
  const from = (await scene.shown()).epochs[0]?.epoch;
  act();
  const failed = await scene.event("handoff_failed", undefined, since);
  assert.deepEqual([failed.refusal, failed.from, failed.to], ["child_died", from, Number(from) + 1]);
  const recovered = await until("the handoff's consequences are over", async () => {
    const { phase, epochs, note } = await scene.shown();
    const lost = scene.epochd.log.events.slice(since).some(({ event }) => event === "admin_lost");
    return phase === "serving" && epochs.length === 1 && note === undefined && { lost, epoch: epochs[0]?.epoch };
  });
  assert.equal(recovered.epoch, Number(from) + (recovered.lost ? 1 : 0));
  return Number(recovered.epoch);
}

const cannotRun: readonly Scenario[] = CANNOT_RUN.map(({ what, change, takesAdmin }) => ({
  line: 2,
  name: `bootstrap with ${what}: the child dies, the serving epoch is replaced by its own plan or untouched`,
  async run(stage) {
    const scene = await stage.serve({ extraArguments: NO_RETRY });
    const epoch = await fails(scene, () => scene.write(change(stage, scene)));
    assert.equal(scene.count("admin_lost"), takesAdmin ? 1 : 0);
    const { refused } = await scene.unharmed(epoch);
    assert.equal(refused[0]?.refusal.name, "child_died");
    assert.equal(await scene.goodChange(), epoch + 1);
    assert.deepEqual(scene.traffic.snapshot().generations.slice(0, 1), ["first"]);
    return takesAdmin ? "admin lost, a new epoch of the last good bootstrap took over" : "epoch 0 untouched";
  },
}));

export const scenarios: readonly Scenario[] = [...cannotRun, {
  line: 2,
  name: "port held, retries: the same content is tried as often as it may be, and no oftener",
  async run(stage) {
    const scene = await stage.serve({ extraArguments: ["--retry-limit", "2"] });
    const extraListenPorts = [heldPort(stage)];
    const since = scene.mark();
    scene.write({ extraListenPorts });
    await until("three failures", () => scene.count("handoff_failed", since) === 3, { timeoutMs: 40_000 });
    const { epoch } = await until("it has settled", async () => {
      const { phase, epochs } = await scene.shown();
      return phase === "serving" && epochs.length === 1 && epochs[0]!;
    });
    await scene.unharmed(epoch);
    // The same content by another write: known, refused without a fork.
    const again = scene.mark();
    scene.write();
    await scene.event("content_changed", undefined, again);
    scene.write({ extraListenPorts });
    const refused = await scene.event("handoff_failed", undefined, again);
    assert.equal(refused.refusal, "refused_before");
    assert.equal(scene.count("epoch_spawned", again), 0);
    assert.equal(await scene.goodChange(), epoch + 1);
    return `3 tries, then refused_before; epoch ${epoch} serves`;
  },
}, {
  line: 2,
  name: "port held, released later: a retry takes the wished bootstrap",
  async run(stage) {
    const scene = await stage.serve({ extraArguments: ["--retry-limit", "5"] });
    const port = freePort();
    const holder = Deno.listen({ hostname: "127.0.0.1", port });
    const since = scene.mark();
    try {
      scene.write({ extraListenPorts: [port], generation: "wished" });
      await scene.event("handoff_failed", undefined, since);
    } finally {
      holder.close();
    }
    await until("the wished bootstrap serves", () => scene.traffic.snapshot().generations.includes("wished"), {
      timeoutMs: 40_000,
    });
    const { epoch } = await scene.event("epoch_live", undefined, 0);
    assert.equal(epoch, 0);
    return "the wished bootstrap serves after a retry";
  },
}, {
  line: 2,
  name: "ten bootstraps in a row that can't run, on_lost_admin handoff: no request fails, the eleventh goes through",
  async run(stage) {
    const scene = await stage.serve({ extraArguments: NO_RETRY });
    const port = heldPort(stage);
    let epoch = 0;
    for (let round = 1; round <= 10; round++) {
      epoch = await fails(scene, () => scene.write({ extraListenPorts: [port], generation: `bad-${round}` }));
    }
    await scene.unharmed(epoch);
    assert.equal(await scene.goodChange(), epoch + 1);
    assert.ok(scene.traffic.snapshot().generations.every((generation) => !generation.startsWith("bad-")));
    return `ten refused, epoch ${epoch} of the first bootstrap serves`;
  },
}, {
  line: 2,
  name:
    "ten bootstraps in a row that can't run, on_lost_admin keep: epoch 0 serves without its admin, the eleventh goes through",
  async run(stage) {
    const scene = await stage.serve({ extraArguments: [...NO_RETRY, "--on-lost-admin", "keep"] });
    const port = heldPort(stage);
    for (let round = 1; round <= 10; round++) {
      const since = scene.mark();
      scene.write({ extraListenPorts: [port], generation: `bad-${round}` });
      const failed = await scene.event("handoff_failed", undefined, since);
      assert.deepEqual([failed.refusal, failed.to], ["child_died", 1]);
    }
    const { note } = await scene.unharmed(0);
    assert.match(note ?? "", /took the admin/);
    assert.equal(scene.count("epoch_hung"), 0);
    assert.equal(await scene.goodChange(), 1);
    const { note: after } = await scene.unharmed(1);
    assert.equal(after, undefined);
    return "epoch 0 served Ready without its admin, epoch 1 has one again";
  },
}, {
  line: 2,
  name:
    "admin lost and its port then taken by another process: serves on, a bootstrap with another admin port goes through",
  async run(stage) {
    const scene = await stage.serve({ extraArguments: [...NO_RETRY, "--on-lost-admin", "keep"] });
    const port = heldPort(stage);
    let since = scene.mark();
    scene.write({ extraListenPorts: [port] });
    await scene.event("handoff_failed", undefined, since);
    stage.use(Deno.listen({ hostname: "127.0.0.1", port: scene.adminPort }));
    since = scene.mark();
    scene.write({ generation: "same-admin" });
    const failed = await scene.event("handoff_failed", undefined, since);
    assert.equal(failed.refusal, "child_died");
    await scene.unharmed(0);
    assert.equal(await scene.goodChange({ adminPort: freePort() }), 1);
    await scene.unharmed(1);
    return "epoch 0 served on, epoch 1 has its admin elsewhere";
  },
}, {
  line: 2,
  name: "admin lost with its port taken, on_lost_admin handoff: a bounded number of tries, then serves on without",
  async run(stage) {
    const scene = await stage.serve({ extraArguments: NO_RETRY });
    const since = scene.mark();
    const holder = heldPort(stage);
    let squatter: Deno.Listener | undefined;
    // Taken the moment that the failed child lets go of it.
    const squat = until("the admin port is free for a moment", () => {
      try {
        squatter = stage.use(Deno.listen({ hostname: "127.0.0.1", port: scene.adminPort }));
        return true;
      } catch {
        return false;
      }
    }, { everyMs: 1 });
    scene.write({ extraListenPorts: [holder] });
    await squat;
    await scene.event("admin_lost", ({ policy }) => policy === "keep", since, 60_000);
    assert.ok(squatter !== undefined);
    const { note } = await scene.unharmed(0);
    assert.match(note ?? "", /took the admin/);
    assert.equal(await scene.goodChange({ adminPort: freePort() }), 1);
    return `${scene.count("handoff_failed", since)} failed handoffs, epoch 0 served on, then epoch 1`;
  },
}, {
  line: 2,
  name: "admin on a unix socket: handoffs, a failed one and the next good one, all on one path",
  async run(stage) {
    const adminPath = `${Deno.makeTempDirSync({ prefix: "epd-" })}/a`;
    stage.use({ [Symbol.dispose]: () => Deno.removeSync(adminPath.slice(0, -2), { recursive: true }) });
    const scene = await stage.serve({
      extraArguments: NO_RETRY,
      bootstrap: { adminPath },
      traffic: { admin: { path: adminPath } },
    });
    assert.equal(await scene.goodChange(), 1);
    const epoch = await fails(scene, () => scene.write({ extraListenPorts: [heldPort(stage)] }));
    await scene.unharmed(epoch);
    assert.equal(await scene.goodChange(), epoch + 1);
    await scene.unharmed(epoch + 1);
    return "as with a port";
  },
}];
