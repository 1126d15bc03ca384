// Owns: who writes where: Envoy on the inherited stdout and stderr, epochd beside it and never in between.
import assert from "node:assert/strict";
import { epochdCommand } from "../support/epochd.ts";
import { fetchOnce } from "../support/http_client.ts";
import { processFacts } from "../support/procfs.ts";
import { until } from "../support/until.ts";
import { assertUnhurt, envoyLinesOf, handoff, logRequests, scene } from "./scene.ts";

Deno.test("a stopped epochd (SIGSTOP) holds up neither requests nor Envoy's access log and log; it goes on after SIGCONT", async () => {
  await using here = scene({ bootstrap: { change: logRequests("stdout") } });
  const flags = ["--file-flush-interval-msec", "50"].flatMap((item) => ["--envoy-arg", item]);
  const epochd = await here.start({ extraArguments: flags, drainTimeMs: 1_000, parentShutdownTimeMs: 2_000 });
  const [envoy] = epochd.envoyPids();
  assert.ok(envoy !== undefined);
  epochd.signal("SIGSTOP");
  try {
    await until("epochd is stopped", () => processFacts(epochd.pid)?.state === "T");
    const traffic = here.traffic({ requestsPerSecond: 1_000, path: `/direct/${"x".repeat(100)}` });
    // More than a pipe holds (64 kB), so that a reader in between would be seen.
    await until("traffic", () => traffic.snapshot().requests >= 1_000, { timeoutMs: 60_000 });
    await fetchOnce(here.listener, { path: `/direct/${"x".repeat(4_000)}/last` });
    assertUnhurt(await traffic.stop());
    await until("its access log", () => epochd.stdout().includes("/last"));
    Deno.kill(envoy, "SIGUSR1");
    await until("its log", () => envoyLinesOf(epochd, 0).some((line) => line.includes("SIGUSR1")));
    assert.equal(processFacts(epochd.pid)?.state, "T");
  } finally {
    epochd.signal("SIGCONT");
  }
  assert.ok(epochd.stdout().length > 70_000, `${epochd.stdout().length} bytes of access log`);
  epochd.signal("SIGHUP");
  await handoff(epochd, 1, "done");
});

Deno.test("each line of Envoy's log names its epoch; the user's --log-format wins", async () => {
  await using here = scene();
  const epochd = await here.start();
  epochd.signal("SIGHUP");
  await handoff(epochd, 1);
  for (const epoch of [0, 1]) {
    await until(
      "its log",
      () => envoyLinesOf(epochd, epoch).some((line) => line.includes("starting main dispatch loop")),
    );
  }
  assert.deepEqual(epochd.log.envoyLines.filter((line) => /^\[\d{4}-/.test(line) && !/\[epoch [01]\]/.test(line)), []);

  await using other = scene();
  const format = ["--log-format", "mine %l %v"].flatMap((item) => ["--envoy-arg", item]);
  const second = await other.start({ extraArguments: format });
  await until("its log", () => second.log.envoyLines.some((line) => /^mine info .*main dispatch loop/.test(line)));
  assert.deepEqual(second.log.envoyLines.filter((line) => line.includes("[epoch")), []);
});

Deno.test("epochd's log is one line an event, with time, level, event, service and message", async () => {
  await using here = scene();
  const epochd = await here.start();
  epochd.signal("SIGHUP");
  await handoff(epochd, 1);
  assert.ok(epochd.log.events.length > 8);
  for (const { time, level, msg, event, service } of epochd.log.events) {
    assert.match(String(time), /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/);
    assert.match(String(level), /^(debug|info|warn|error)$/);
    assert.match(String(event), /^[a-z_]+$/);
    assert.ok(typeof msg === "string" && msg !== "" && !msg.includes("\n"), String(msg));
    assert.ok(service === undefined || service === "envoy");
  }
});

Deno.test("on a stderr that is no terminal --log-format text gives readable lines, and auto gives JSON", async () => {
  for (const format of ["text", "auto"]) {
    await using here = scene();
    // waitForEvent reads JSON only, so the text is waited for as it stands.
    const starting = here.start({ extraArguments: ["--log-format", format] }).catch((error) => error);
    if (format === "auto") {
      const epochd = await starting;
      assert.ok(!(epochd instanceof Error), String(epochd));
      continue;
    }
    await until("ready", async () => (await fetchOnce(here.listener, { path: "/direct" })).status === 200);
    const [epochd] = here.started;
    assert.ok(epochd !== undefined);
    await until(
      "its log",
      () => epochd.log.lines.some((line) => /^\d\d:\d\d:\d\d\.\d{3} INFO +envoy: epoch 0 is LIVE/.test(line)),
    );
    epochd.signal("SIGTERM");
    assert.equal((await epochd.exit).code, 0);
    await starting;
  }
});

Deno.test("a command whose output nobody can take says so in one line and exits 1", async () => {
  for (const command of [["--help"], ["config", "schema"], ["completions", "bash"]]) {
    const line = [...epochdCommand(), ...command].map((word) => `'${word}'`).join(" ");
    const { code, stderr } = await new Deno.Command("sh", { args: ["-c", `${line} > /dev/full`] }).output();
    assert.equal(code, 1, command.join(" "));
    assert.match(new TextDecoder().decode(stderr), /^error: write the output: No space left on device[^\n]*\n$/);
  }
});
