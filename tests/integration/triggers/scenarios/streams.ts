// Owns: stdout and stderr that are closed, broken or blocked. Must not: read epochd's log, which is what is missing.

import assert from "node:assert/strict";
import { fetchOnce } from "../../../support/http_client.ts";
import { isAlive } from "../../../support/procfs.ts";
import { type TempDir, tempDir } from "../../../support/tempdir.ts";
import { until, within } from "../../../support/until.ts";
import type { Scenario } from "../../faults/scenario.ts";
import type { Scene } from "../../faults/scene.ts";
import type { SceneOptions, Stage } from "../../faults/stage.ts";
import { behind, mustRun } from "../program.ts";

/** As `stage.serve`, without a log to wait for. */
async function serveUnheard(stage: Stage, options: SceneOptions): Promise<Scene> {
  const scene = stage.prepare(options);
  await until("the API says Ready", async () => (await scene.shown()).ready);
  await until("it serves", async () => {
    return (await fetchOnce({ port: scene.listenPort }, { path: "/direct" })).status === 200;
  });
  scene.traffic = stage.load(scene.listenPort);
  return scene;
}

async function handsOver(scene: Scene, epoch: number): Promise<void> {
  const { code, stdout, stderr } = await scene.epochd.command("restart", "--wait=drained", "--json");
  assert.equal(code, 0, stderr);
  assert.equal(JSON.parse(stdout).to, epoch);
  await scene.unharmed(epoch);
}

/** Signals are obeyed: SIGHUP hands over, SIGTERM ends it with 0 and leaves nothing. */
async function obeysSignals(scene: Scene, epoch: number): Promise<void> {
  scene.epochd.signal("SIGHUP");
  await until(`epoch ${epoch} serves`, async () => (await scene.shown()).epochs[0]?.epoch === epoch);
  await scene.unharmed(epoch);
  await endsWith0(scene);
}

async function endsWith0(scene: Scene): Promise<void> {
  await scene.traffic.stop();
  scene.epochd.signal("SIGTERM");
  assert.equal((await within("its end", scene.epochd.exit, 20_000)).code, 0);
  assert.deepEqual(scene.epochd.envoyPids(), []);
  assert.equal(scene.hasMarker(), false);
}

/** A pipe for epochd's stderr, and a reader that can be stopped. */
async function pipe(stage: Stage, directory: TempDir) {
  const path = directory.at("stderr");
  await mustRun("mkfifo", path);
  const reader = new Deno.Command("sh", { args: ["-c", `exec cat '${path}'`], stdin: "null", stdout: "null" }).spawn();
  const end = async () => {
    if (isAlive(reader.pid)) reader.kill("SIGKILL");
    await reader.status;
  };
  stage.use({ [Symbol.asyncDispose]: end });
  return {
    path,
    end,
    async block() {
      reader.kill("SIGSTOP");
      // What fits into it; the rest would block.
      await new Deno.Command("dd", {
        args: ["if=/dev/zero", `of=${path}`, "bs=4096", "count=1000", "oflag=nonblock"],
        stdout: "null",
        stderr: "null",
      }).output();
    },
    unblock: () => reader.kill("SIGCONT"),
  };
}

export const scenarios: readonly Scenario[] = [
  {
    line: 16,
    name: "stdout and stderr closed from the start: handoffs by API and signal, exit 0",
    async run(stage) {
      const scene = await serveUnheard(stage, { program: behind('exec "$@" >&- 2>&-') });
      await handsOver(scene, 1);
      await obeysSignals(scene, 2);
      return "all as ever";
    },
  },
  {
    line: 16,
    name: "the reader of stderr goes away: handoffs by API and signal, exit 0",
    async run(stage) {
      const directory = stage.use(tempDir());
      const stderr = await pipe(stage, directory);
      const scene = await serveUnheard(stage, { directory, program: behind(`exec "$@" 2>'${stderr.path}'`) });
      await stderr.end();
      await handsOver(scene, 1);
      await obeysSignals(scene, 2);
      return "all as ever";
    },
  },
  {
    line: 16,
    name: "stderr is blocked, Envoy logs to a file: handoffs by API and signal, exit 0",
    async run(stage) {
      const directory = stage.use(tempDir());
      const stderr = await pipe(stage, directory);
      const extraArguments = ["--log-path", directory.at("envoy.log")].flatMap((item) => ["--envoy-arg", item]);
      const program = behind(`exec "$@" 2>'${stderr.path}'`);
      const scene = await serveUnheard(stage, { directory, program, extraArguments });
      await stderr.block();
      await handsOver(scene, 1);
      await obeysSignals(scene, 2);
      return "all as ever";
    },
  },
  {
    line: 16,
    name:
      "stderr is blocked and Envoy shares it: requests go on, a handoff is given up in time, all is well when it is read",
    async run(stage) {
      const directory = stage.use(tempDir());
      const stderr = await pipe(stage, directory);
      const extraArguments = ["--live-timeout", "2s", "--retry-limit", "0"];
      const program = behind(`exec "$@" 2>'${stderr.path}'`);
      const scene = await serveUnheard(stage, { directory, program, extraArguments });
      await stderr.block();
      // A new Envoy writes before it serves, and an old one when its successor comes: both wait for a reader.
      const { code, stdout } = await scene.epochd.command("restart", "--wait=live", "--json");
      assert.deepEqual([code, JSON.parse(stdout).refusal], [1, "live_timeout"]);
      await scene.goesOn();
      stderr.unblock();
      await until("one epoch serves alone and is Ready", async () => {
        const { phase, ready, epochs } = await scene.shown();
        return phase === "serving" && ready && epochs.length === 1;
      });
      const { epochs } = await scene.shown();
      await handsOver(scene, epochs[0]!.epoch + 1);
      await endsWith0(scene);
      return "given up (live_timeout), handed over when it was read again";
    },
  },
  {
    line: 16,
    name: "stderr is blocked and Envoy shares it: SIGTERM ends it within its bound, exit 0",
    async run(stage) {
      const directory = stage.use(tempDir());
      const stderr = await pipe(stage, directory);
      const scene = await serveUnheard(stage, { directory, program: behind(`exec "$@" 2>'${stderr.path}'`) });
      await stderr.block();
      await endsWith0(scene);
      return "exit 0";
    },
  },
  {
    line: 16,
    name: "stdout is blocked: nobody writes to it, all as ever",
    async run(stage) {
      const directory = stage.use(tempDir());
      const stdout = await pipe(stage, directory);
      const scene = await stage.serve({ directory, program: behind(`exec "$@" >'${stdout.path}'`) });
      await stdout.block();
      await handsOver(scene, 1);
      await obeysSignals(scene, 2);
      return "all as ever";
    },
  },
];
