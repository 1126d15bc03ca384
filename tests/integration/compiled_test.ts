// Owns: the key scenarios once more with the compiled program, as people run it.
import assert from "node:assert/strict";
import { compile } from "../../tools/compile.ts";
import { serverInfo } from "../support/admin.ts";
import { freeBaseId } from "../support/base_ids.ts";
import { envoyPath } from "../support/envoys.ts";
import { runEpochd } from "../support/epochd.ts";
import { argvOf, environmentOf } from "../support/procfs.ts";
import { until, within } from "../support/until.ts";
import {
  assertEndedByProtocol,
  assertUnhurt,
  eventsOf,
  handoff,
  installByRename,
  logRequests,
  probe,
  scene,
} from "./scene.ts";

const DIST = { program: "dist", drainTimeMs: 1_000, parentShutdownTimeMs: 2_000 } as const;

Deno.test("compiled: edit, SIGHUP, restart --wait and a new binary under traffic, marker and status, SIGTERM: nothing failed", async () => {
  await compile();
  await using here = scene();
  const envoy = here.directory.at("envoy");
  installByRename(envoyPath("1.39.3"), envoy);
  const epochd = await here.start({ ...DIST, envoyPath: envoy, concurrency: 2, extraArguments: ["--watch-binary"] });
  await until("the probe says ready", async () => (await probe(epochd, [], "dist")).code === 0);
  const traffic = here.traffic();
  const changes: readonly (readonly [source: string, change: () => unknown])[] = [
    ["bootstrap", () => here.edit({ generation: "second" })],
    ["signal", () => epochd.signal("SIGHUP")],
    ["api", () => epochd.command("restart", "--wait")],
    ["binary", () => installByRename(envoyPath("1.40.0"), envoy)],
  ];
  for (const [at, [, change]] of changes.entries()) {
    const held = traffic.hold({ chunks: 25, everyMs: 50 });
    await held.opened;
    const answer = change();
    await handoff(epochd, at + 1, "done");
    assert.equal((await held.outcome).kind, "complete");
    await answer;
  }
  const info = await serverInfo(here.admin);
  assert.deepEqual([info.epoch, info.version, info.concurrency], [4, "1.40.0", 2]);
  const [pid = 0] = epochd.envoyPids();
  assert.equal(environmentOf(pid).RESTART_EPOCH, "4");
  assert.ok(argvOf(pid).includes("--skip-hot-restart-on-no-parent"));
  const status = await epochd.command("status");
  assert.match(status.stdout, /^envoy: serving, ready, 4 handoffs$/m);
  const report = await traffic.stop();
  assertUnhurt(report);
  assert.deepEqual(report.generations, ["first", "second"]);
  epochd.signal("SIGTERM");
  assert.equal((await within("its end", epochd.exit)).code, 0);
  assert.deepEqual(eventsOf(epochd, "handoff_began").map(({ source }) => source), changes.map(([source]) => source));
  assertEndedByProtocol(epochd, [0, 1, 2, 3]);
  const gone = await probe(epochd, [], "dist");
  assert.equal(gone.code, 1);
});

Deno.test("compiled: a refused bootstrap is told and touches nothing, SIGSTOP of epochd holds nobody up, a dead Envoy ends it with 1", async () => {
  await compile();
  await using here = scene({ bootstrap: { change: logRequests("stdout") } });
  const flags = ["--file-flush-interval-msec", "50"].flatMap((item) => ["--envoy-arg", item]);
  const epochd = await here.start({ ...DIST, extraArguments: ["--no-watch-config", ...flags] });
  here.edit({ change: (bootstrap) => bootstrap.no_such_field = 1 });
  const { code, stderr } = await epochd.command("restart", "--wait");
  assert.equal(code, 1);
  assert.match(stderr, /^refused \(bootstrap_invalid\): .*no_such_field/);
  epochd.signal("SIGSTOP");
  try {
    const traffic = here.traffic({ path: "/direct/while-stopped" });
    await until("requests", () => traffic.snapshot().requests > 100);
    await until("access log", () => epochd.stdout().includes("/direct/while-stopped"));
    assertUnhurt(await traffic.stop());
  } finally {
    epochd.signal("SIGCONT");
  }
  const [pid = 0] = epochd.envoyPids();
  Deno.kill(pid, "SIGKILL");
  assert.equal((await within("its end", epochd.exit)).code, 1);
  assert.deepEqual(epochd.envoyPids(), []);
  assert.throws(() => Deno.statSync(epochd.readyMarker), Deno.errors.NotFound);
});

Deno.test("compiled: bad input ends with 2 and names flag, value and expectation", async () => {
  await compile();
  await using here = scene();
  const flags = ["--envoy-path", envoyPath(), "--envoy-config", here.bootstrapPath, "--base-id", String(freeBaseId())];
  const { code, stderr } = await runEpochd(["run", ...flags, "--drain-time", "500ms", "--envoy-arg=--foo=bar"], "dist");
  assert.equal(code, 2);
  assert.match(stderr, /^error: --drain-time 500ms: expected at least 1s/m);
  const unknown = await runEpochd(["run", ...flags, "--drain-tme", "5s"], "dist");
  assert.equal(unknown.code, 2);
  assert.match(unknown.stderr, /Did you mean --drain-time\?/);
});
