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

Deno.test("compiled: SIGUSR1 opens Envoy's logs anew and no debugger of the runtime", async () => {
  await compile();
  await using here = scene();
  const epochd = await here.start(DIST);
  await epochd.waitForEvent("api_listening");
  const before = listeners(epochd.pid);
  // `deno run` listens to it half a second after its start and later (2.9.2): by then the second one has come.
  for (let times = 1; times <= 2; times++) {
    epochd.signal("SIGUSR1");
    await until("it is forwarded", () => eventsOf(epochd, "logs_reopened").length === times);
    await until("a second has passed since LIVE", () => Date.now() - epochd.log.events[0]!.receivedAtMs > 1_000);
  }
  assert.equal((await epochd.command("status")).code, 0);
  assert.deepEqual(listeners(epochd.pid), before);
  assert.deepEqual(before, []);
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

/** Inodes of the TCP sockets that this process listens on. */
function listeners(pid: number): string[] {
  const tables = ["tcp", "tcp6"].map((name) => Deno.readTextFileSync(`/proc/net/${name}`)).join("");
  // Fields 4 and 10 of a row: the state, 0A for LISTEN, and the inode.
  const rows = tables.split("\n").map((row) => row.trim().split(/\s+/)).filter((fields) => fields[3] === "0A");
  const listening = new Set(rows.map((fields) => `socket:[${fields[9]}]`));
  const open = [...Deno.readDirSync(`/proc/${pid}/fd`)].map(({ name }) => readLink(`/proc/${pid}/fd/${name}`));
  return open.filter((target) => target !== undefined && listening.has(target)) as string[];
}

function readLink(path: string): string | undefined {
  try {
    return Deno.readLinkSync(path);
  } catch {
    return undefined;
  }
}
