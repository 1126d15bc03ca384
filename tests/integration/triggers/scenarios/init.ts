// Owns: epochd as the first process of a PID namespace, as in a container. Must not: need a container.

import assert from "node:assert/strict";
import { childrenOf, isAlive, processFacts, zombiesOf } from "../../../support/procfs.ts";
import { until, within } from "../../../support/until.ts";
import { NOBODY_SERVES, type Scenario } from "../../faults/scenario.ts";
import type { Scene } from "../../faults/scene.ts";
import type { Stage } from "../../faults/stage.ts";
import { behind, canRun, isRoot, mustRun } from "../program.ts";

/** `--kill-child`: nothing outlives a test that breaks off. */
const UNSHARE = ["--pid", "--fork", "--mount-proc", "--kill-child"] as const;
const canUnshare = isRoot && await canRun("unshare", ...UNSHARE, "true");

/** epochd as PID 1, and what it is called out here. */
async function serveAsInit(stage: Stage, extraArguments: readonly string[] = []) {
  const program = behind(`exec unshare ${UNSHARE.join(" ")} "$@"`);
  const scene = await stage.serve({ program, extraArguments });
  const [init] = childrenOf(scene.epochd.pid);
  assert.ok(init !== undefined);
  const started = await scene.event("supervisor_started", undefined, 0);
  assert.equal(started.pid, 1);
  return { scene, init: init.pid };
}

async function reapsAll(scene: Scene, init: number): Promise<void> {
  await until("no zombie of epochd's", () => zombiesOf(init).length === 0);
  assert.equal(scene.count("bug"), 0);
}

async function endsBySigterm(scene: Scene, init: number): Promise<void> {
  await scene.traffic.stop();
  Deno.kill(init, "SIGTERM");
  assert.equal((await within("its end", scene.epochd.exit)).code, 0);
}

export const scenarios: readonly Scenario[] = !canUnshare ? [] : [
  {
    line: 16,
    name:
      "as PID 1: handoffs, a refused one, a child that dies; every Envoy and validator is reaped; SIGTERM ends it with 0",
    async run(stage) {
      const { scene, init } = await serveAsInit(stage);
      assert.equal(await scene.goodChange(), 1);
      scene.writeText("nonsense: true\n");
      await scene.event("handoff_failed", undefined, 0);
      assert.equal(await scene.goodChange(), 2);
      Deno.kill(init, "SIGHUP");
      await scene.event("handoff_done", (event) => event.to === 3, 0);
      await reapsAll(scene, init);
      assert.equal(childrenOf(init).length, 1);
      await endsBySigterm(scene, init);
      return "4 epochs, no zombie, exit 0";
    },
  },
  {
    line: 16,
    name: "as PID 1: Envoy dies, on_crash restart: reaped and started afresh",
    mayFail: NOBODY_SERVES,
    async run(stage) {
      const { scene, init } = await serveAsInit(stage, ["--on-crash", "restart"]);
      const since = scene.mark();
      for (const { pid } of childrenOf(init)) Deno.kill(pid, "SIGKILL");
      await scene.event("epoch_live", undefined, since);
      await reapsAll(scene, init);
      await scene.goesOn();
      await endsBySigterm(scene, init);
      return "reaped, served afresh";
    },
  },
  {
    line: 16,
    name: "as PID 1: a stranger's orphan stays a zombie (an init reaps it), and harms nothing",
    async run(stage) {
      const { scene, init } = await serveAsInit(stage);
      // As `kubectl exec` with a background job does: the shell ends, its child goes to PID 1.
      await mustRun("nsenter", "--target", String(init), "--pid", "--mount", "sh", "-c", "sleep 0.1 &");
      await until("the orphan has ended", () => zombiesOf(init).some(({ name }) => name === "sleep"));
      assert.equal(await scene.goodChange(), 1);
      assert.equal(await scene.goodChange(), 2);
      assert.equal(zombiesOf(init).every(({ name }) => name === "sleep"), true, "Envoys are reaped all the same");
      await endsBySigterm(scene, init);
      return "a zombie is left, handoffs go on";
    },
  },
  {
    line: 16,
    name: "below an init that reaps (tini, shareProcessNamespace): orphans go as well",
    async run(stage) {
      // What the init does: pass on nothing, reap everybody, end with its child.
      const init = `exec unshare ${UNSHARE.join(" ")} sh -c '"$@" & wait $!' sh "$@"`;
      const scene = await stage.serve({ program: behind(init) });
      const [shell] = childrenOf(scene.epochd.pid);
      assert.ok(shell !== undefined);
      const epochd = childrenOf(shell.pid).find(({ pid }) => pid !== shell.pid);
      assert.ok(epochd !== undefined);
      await mustRun("nsenter", "--target", String(shell.pid), "--pid", "--mount", "sh", "-c", "sleep 0.1 &");
      assert.equal(await scene.goodChange(), 1);
      await until("no zombie at all", () => zombiesOf(shell.pid).length === 0 && zombiesOf(epochd.pid).length === 0);
      assert.equal(processFacts(epochd.pid)?.parentPid, shell.pid);
      await scene.traffic.stop();
      Deno.kill(epochd.pid, "SIGTERM");
      assert.equal((await within("its end", scene.epochd.exit)).code, 0);
      assert.equal(isAlive(epochd.pid), false);
      return "no zombie";
    },
  },
];
