// Owns: processes that epochd-launch makes, watches and names: real ones, no Envoy.

import assert from "node:assert/strict";
import { LaunchedProcess, Launcher } from "../../../lib/adapters/launched_process.ts";
import { isAlive, LaunchRecords, signalProcess } from "../../../lib/adapters/launch_records.ts";
import { EnvoyProcesses } from "../../../lib/adapters/process.ts";
import { servingProblem } from "../../../lib/launch/launcher.ts";
import { cachedLauncher } from "../../../tools/native_launcher.ts";
import { environmentOf, processFacts } from "../../support/procfs.ts";
import { type TempDir, tempDir } from "../../support/tempdir.ts";
import { within } from "../../support/until.ts";

const launcher = await cachedLauncher();

function records(dir: TempDir, more: { place?: string; initializing?: boolean } = {}): LaunchRecords {
  const { place = "boot/1", initializing = false } = more;
  return new LaunchRecords({ stateDir: dir.path, place, initializing: () => Promise.resolve(initializing) });
}

function start(dir: TempDir, ...command: [string, ...string[]]) {
  const [path, ...args] = command;
  return new Launcher(launcher, records(dir)).start(path, args, { WORD: "said" }, 4);
}

Deno.test("launched process + another's child, in a session of its own, with the environment; its record names it", async () => {
  await using dir = tempDir();
  const child = start(dir, "/bin/sleep", "30");
  const facts = processFacts(child.pid);
  assert.equal(facts?.name, "sleep");
  assert.notEqual(facts?.parentPid, Deno.pid);
  assert.equal(environmentOf(child.pid).WORD, "said");
  const record = records(dir).readOne(4)!;
  assert.deepEqual([record.pid, record.epoch, record.place, record.supervisor.pid], [child.pid, 4, "boot/1", Deno.pid]);
  assert.ok(isAlive(record) && isAlive(record.supervisor));
  assert.ok(child.signal("SIGTERM"));
  assert.deepEqual(await within("its end", child.exit), { code: 143, signal: "SIGTERM" });
  assert.equal(child.signal("SIGTERM"), false);
});

for (const code of [0, 7]) {
  Deno.test(`launched process that ends with ${code} + its exit is told as that of a child`, async () => {
    await using dir = tempDir();
    const child = start(dir, "/bin/sh", "-c", `sleep 0.2; exit ${code}`);
    assert.deepEqual(await within("its end", child.exit), { code });
  });
}

Deno.test("launched process that ends at once + told all the same", async () => {
  await using dir = tempDir();
  const { code } = await within("its end", start(dir, "/bin/true").exit);
  assert.ok(code === 0 || code === "unknown", String(code));
});

Deno.test("launched process whose pid is another one's by now + never signalled, and its end is told", async () => {
  await using dir = tempDir();
  const other = start(dir, "/bin/sleep", "30");
  const { startTicks } = records(dir).readOne(4)!;
  const gone = { pid: other.pid, startTicks: startTicks - 1 };
  assert.equal(isAlive(gone), false);
  assert.equal(signalProcess(gone, "SIGKILL"), false);
  assert.deepEqual(await within("its end", new LaunchedProcess(gone, launcher).exit), { code: "unknown" });
  assert.ok(other.signal("SIGKILL"));
  await within("its end", other.exit);
});

Deno.test("launched process without a launcher to watch it + its end is seen, how it ended is not", async () => {
  await using dir = tempDir();
  const child = start(dir, "/bin/sleep", "1");
  const record = records(dir).readOne(4)!;
  assert.deepEqual(await within("its end", new LaunchedProcess(record, dir.at("none")).exit), { code: "unknown" });
  await within("its end", child.exit);
});

Deno.test("launch of what can't be executed + the refusals that a child of one's own has, and no record", async () => {
  await using dir = tempDir();
  const started = (path: string, launch: Launcher | undefined) => {
    const spawned = new EnvoyProcesses({
      flagsOf: () => ({ baseId: 7, concurrency: 1, drainTimeMs: 1000, parentShutdownTimeMs: 2000, userArgs: [] }),
      isStill: () => true,
      ...(launch === undefined ? {} : { starter: launch }),
    }).spawn({
      epoch: 1,
      plan: {
        key: "k",
        bootstrapDigest: "b",
        binaryDigest: "d",
        bootstrapPath: "/state/b.yaml",
        binaryPath: path,
        admin: { kind: "tcp", host: "127.0.0.1", port: 1 },
      },
    });
    return spawned.kind === "failed" ? spawned.refusal : spawned.process;
  };
  const plain = dir.write("plain", "#!/bin/sh\n");
  const interpreter = dir.write("interpreter", "#!/none\n");
  Deno.chmodSync(interpreter, 0o755);
  for (const path of [dir.at("none"), plain, interpreter, dir.path, `${plain}/below`]) {
    assert.deepEqual(started(path, new Launcher(launcher, records(dir))), started(path, undefined), path);
  }
  assert.deepEqual(records(dir).read(), []);
});

Deno.test("launch whose record can't be written + nothing is started, and it is said", async () => {
  await using dir = tempDir();
  const nowhere = new LaunchRecords({
    stateDir: dir.at("none"),
    place: "b/1",
    initializing: () => Promise.resolve(false),
  });
  const touched = dir.at("touched");
  assert.throws(
    () => new Launcher(launcher, nowhere).start("/bin/touch", [touched], {}, 0),
    /launched-0 can't be written, which tells the next supervisor of it/,
  );
  assert.throws(() => Deno.statSync(touched), Deno.errors.NotFound);
});

Deno.test("launch records + the last launch is unfinished until its socket is there and the flag is clear", async () => {
  await using dir = tempDir();
  const launch = new Launcher(launcher, records(dir));
  const old = launch.start("/bin/sleep", ["30"], {}, 0);
  const young = launch.start("/bin/sleep", ["30"], {}, 1);
  const look = async (slots: number[], initializing: boolean) =>
    (await records(dir, { initializing }).look(slots)).unfinished?.epoch;
  assert.equal(await look([0], false), 1);
  assert.equal(await look([0, 1], true), 1);
  assert.equal(await look([0, 1], false), undefined);
  // The older one was LIVE when the younger was launched: what that one has left is a dead one's flag.
  young.signal("SIGKILL");
  await within("its end", young.exit);
  assert.equal(await look([0], true), undefined);
  // This process is their supervisor, and lives.
  assert.deepEqual((await records(dir).look([0])).orphans, []);
  await records(dir).signal(old.pid, "SIGKILL", false, [0]);
  assert.ok(processFacts(old.pid) !== undefined);
  assert.equal((await records(dir, { place: "boot/2" }).look([0])).unfinished, undefined);
  old.signal("SIGKILL");
  await within("its end", old.exit);
});

Deno.test("launch records + garbage in them is nobody's", async () => {
  await using dir = tempDir();
  for (const text of ["", "what\n", "1 2 3\n", `${Deno.pid} 0 1 1 1 0 boot/1`, "-1 5 5 5 5 0 boot/1\n"]) {
    dir.write("launched-0", text);
    assert.deepEqual(records(dir).read(), [], text);
  }
});

Deno.test("a watcher whose supervisor ends + ends as well", async () => {
  await using dir = tempDir();
  const child = start(dir, "/bin/sleep", "30");
  const { startTicks } = records(dir).readOne(4)!;
  const watcher = new Deno.Command(launcher, {
    args: ["watch", String(child.pid), String(startTicks)],
    stdin: "piped",
    stdout: "piped",
  }).spawn();
  await watcher.stdin.close();
  const { code, stdout } = await within("its end", watcher.output());
  assert.deepEqual([code, stdout.length], [0, 0]);
  child.signal("SIGKILL");
  await within("its end", child.exit);
});

Deno.test("epochd-launch + refuses what it does not know, with 200", async () => {
  for (
    const args of [[], ["start"], ["watch", "1"], ["watch", "x", "1"], ["watch", "0", "1"], [
      "start",
      "a",
      "b",
      "c",
      "d",
    ]]
  ) {
    const { code, stderr } = await new Deno.Command(launcher, { args, stdin: "null" }).output();
    assert.equal(code, 200, args.join(" "));
    assert.match(new TextDecoder().decode(stderr), /^epochd-launch: for epochd alone/);
  }
});

Deno.test("serving on after epochd's death + refused where PID 1's end is everyone's, and without a launcher", () => {
  const plain = { pid: 7, parentPid: 1, inPod: false, initName: "systemd", launcher };
  assert.equal(servingProblem(plain), undefined);
  assert.match(servingProblem({ ...plain, pid: 1 })!, /^--on-supervisor-death serve: epochd is PID 1 here/);
  assert.match(servingProblem({ ...plain, inPod: true })!, /Kubernetes pod/);
  assert.match(servingProblem({ ...plain, initName: "tini" })!, /PID 1 is tini/);
  assert.equal(servingProblem({ ...plain, parentPid: 6, initName: "tini" }), undefined);
  assert.match(servingProblem({ ...plain, launcher: "/none" })!, /\/none is no executable file/);
  assert.match(servingProblem({ ...plain, launcher: "/etc/passwd" })!, /no executable file/);
});
