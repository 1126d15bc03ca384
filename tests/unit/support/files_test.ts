import assert from "node:assert/strict";
import { parse } from "yaml";
import { bootstrap, bootstrapText, writeBootstrap } from "../../support/bootstrap.ts";
import { LogLines } from "../../support/log_lines.ts";
import * as procfs from "../../support/procfs.ts";
import { tempDir } from "../../support/tempdir.ts";
import { until } from "../../support/until.ts";

Deno.test("a scratch directory goes with its test, even when it is gone already", async () => {
  let path = "";
  {
    await using scratch = tempDir();
    path = scratch.path;
    assert.equal(Deno.readTextFileSync(scratch.write("a/b.txt", "text")), "text");
  }
  assert.throws(() => Deno.statSync(path), Deno.errors.NotFound);
  await using gone = tempDir();
  Deno.removeSync(gone.path);
});

Deno.test("a bootstrap is the same object in YAML and JSON", async () => {
  const options = { listenPort: 1, adminPort: 2, upstreamPort: 3, tcpProxyPort: 4, generation: "g1" };
  assert.deepEqual(parse(bootstrapText(options)), bootstrap(options));
  assert.deepEqual(JSON.parse(bootstrapText(options, "envoy.json")), bootstrap(options));
  await using scratch = tempDir();
  writeBootstrap(scratch.at("envoy.yaml"), options);
  assert.deepEqual([...Deno.readDirSync(scratch.path)].map((entry) => entry.name), ["envoy.yaml"]);
});

Deno.test("/proc facts of a child: state, argv, environment, memory, zombie", async () => {
  const child = new Deno.Command("sleep", { args: ["987654"], env: { MARK: "here" } }).spawn();
  await until("sleep runs", () => procfs.processFacts(child.pid)?.name === "sleep");
  assert.ok(procfs.childrenOf(Deno.pid).some((facts) => facts.pid === child.pid && facts.name === "sleep"));
  assert.deepEqual(procfs.processesWithArgument(procfs.argvOf(child.pid)[0] ?? "", "987654"), [child.pid]);
  assert.equal(procfs.environmentOf(child.pid).MARK, "here");
  assert.ok(procfs.rssAnonBytes(child.pid) > 0 && procfs.openFileCount(child.pid) >= 3);
  assert.equal(procfs.threadCount(child.pid), 1);
  child.kill("SIGSTOP");
  await until("it is stopped", () => procfs.processFacts(child.pid)?.state === "T");
  child.kill("SIGKILL");
  await child.status;
  assert.equal(procfs.isAlive(child.pid), false);
  assert.ok(procfs.cpuTimeMs(Deno.pid) > 0);
  assert.equal(procfs.cpuTimeMs(child.pid), 0);
});

Deno.test("a zombie is seen and does not count as alive", async () => {
  // The shell starts a child and becomes a program that never reaps it.
  const parent = new Deno.Command("sh", { args: ["-c", "sh -c 'exit 0' & exec sleep 987653"] }).spawn();
  const zombies = await until("a zombie", () => {
    const found = procfs.zombiesOf(parent.pid);
    return found.length > 0 && found;
  });
  assert.equal(procfs.isAlive(zombies[0]?.pid ?? 0), false);
  parent.kill("SIGKILL");
  await parent.status;
});

Deno.test("log lines: events apart from Envoy's text, in any cut", async () => {
  const text = `{"event":"a","n":1}\n[2026][info] envoy text\n{"not":"ours"}\n{"event":"a","n":2}\nhalf {`;
  const pieces = text.match(/[^]{1,7}/g) ?? [];
  const log = new LogLines();
  await log.collect(ReadableStream.from(pieces.map((piece) => new TextEncoder().encode(piece))));
  assert.deepEqual(log.events.map((event) => event.n), [1, 2]);
  assert.deepEqual(log.envoyLines, ["[2026][info] envoy text", `{"not":"ours"}`, "half {"]);
  assert.equal((await log.waitFor("a", { where: (event) => event.n === 2 })).n, 2);
  await assert.rejects(log.waitFor("a", { since: log.mark(), timeoutMs: 20 }), /until epochd logs a[^]*envoy text/);
  log.end("epochd ended with 1");
  await assert.rejects(log.waitFor("b"), /no b: epochd ended with 1/);
});
