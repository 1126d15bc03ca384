// Owns: an epochd whose stdout or stderr is closed, gone or full: signals, handoffs and the end go on.
// The compiled one: on SIGUSR1 `deno run` (2.9.2 and later) opens its debugger and says so on stderr, synchronously, and so hangs
// where stderr is full.
import assert from "node:assert/strict";
import { compile } from "../../tools/compile.ts";
import { epochdCommand, type Program } from "../support/epochd.ts";
import { fetchOnce } from "../support/http_client.ts";
import { tempDir } from "../support/tempdir.ts";
import { until, within } from "../support/until.ts";
import { type Scene, scene } from "./scene.ts";

await compile();

/** What a shell does to stdout and stderr before it becomes epochd; `$0` is a path of the test's. */
const OUTPUTS = {
  "stdout and stderr closed": '"$@" >&- 2>&-',
  "a full device as stderr": '"$@" 2>/dev/full',
  "a stderr whose reader has gone": '"$@" 2>"$0"',
  "a stderr pipe that is full and never read": '"$@" 2>"$0"',
} as const;

for (const [what, redirection] of Object.entries(OUTPUTS)) {
  Deno.test(`with ${what} epochd starts, hands over, answers, and ends with 0`, async () => {
    await using pipes = tempDir();
    using pipe = await openPipe(pipes.at("stderr"));
    if (what.includes("full and never")) await pipe.fill();
    await using here = scene();
    const epochd = here.start({ program: withOutput(redirection, pipe.path), envoyPath: quiet(here) });
    await here.envoy.untilRecord("live", 0);
    if (what.includes("has gone")) pipe.close();
    // Not by its log: nobody hears it.
    await newestIs(epochd.apiSocket, 0);
    epochd.signal("SIGHUP");
    await here.envoy.untilRecord("live", 1);
    await newestIs(epochd.apiSocket, 1);
    here.edit();
    await here.envoy.untilRecord("live", 2);
    await newestIs(epochd.apiSocket, 2);
    await until("the marker names it", () => /^\d+ 2 \d+\n$/.test(Deno.readTextFileSync(epochd.readyMarker)));
    epochd.signal("SIGUSR1");
    await until(
      "SIGUSR1 is forwarded",
      () => here.envoy.recordsOf("signal", 2).some(({ signal }) => signal === "SIGUSR1"),
    );
    epochd.signal("SIGTERM");
    const { code, signal } = await within("its end", epochd.exit);
    assert.deepEqual({ code, signal }, { code: 0, signal: null });
    assert.equal(here.envoy.recordsOf("end", 2)[0]?.code, 0);
    const signalled = here.envoy.recordsOf("signal").filter(({ epoch }) => epoch < 2);
    assert.deepEqual(signalled, [], "no predecessor was signalled");
  });
}

Deno.test("a blocked stderr holds up the end by a dead Envoy no longer than its bound: exit code 1", async () => {
  await using pipes = tempDir();
  using pipe = await openPipe(pipes.at("stderr"));
  await pipe.fill();
  await using here = scene();
  const epochd = here.start({ program: withOutput('"$@" 2>"$0"', pipe.path), envoyPath: quiet(here) });
  const [{ pid = 0 } = {}] = await here.envoy.untilRecord("live", 0);
  await newestIs(epochd.apiSocket, 0);
  Deno.kill(pid, "SIGKILL");
  assert.equal((await within("its end", epochd.exit)).code, 1);
});

Deno.test("a signal that comes while the last lines wait for a blocked stderr does not change the exit code", async () => {
  await using pipes = tempDir();
  using pipe = await openPipe(pipes.at("stderr"));
  await pipe.fill();
  await using here = scene();
  const epochd = here.start({ program: withOutput('"$@" 2>"$0"', pipe.path), envoyPath: quiet(here) });
  await here.envoy.untilRecord("live", 0);
  await newestIs(epochd.apiSocket, 0);
  epochd.signal("SIGTERM");
  await here.envoy.untilRecord("end", 0);
  await until("Envoy is reaped", () => epochd.envoyPids().length === 0);
  for (const signal of ["SIGTERM", "SIGHUP", "SIGINT", "SIGUSR1"] as const) epochd.signal(signal);
  const { code, signal } = await within("its end", epochd.exit);
  assert.deepEqual({ code, signal }, { code: 0, signal: null });
});

Deno.test("a stderr that is read again gets the lines that waited, in their order", async () => {
  await using pipes = tempDir();
  using pipe = await openPipe(pipes.at("stderr"));
  await pipe.fill();
  await using here = scene();
  const epochd = here.start({ program: withOutput('"$@" 2>"$0"', pipe.path), envoyPath: quiet(here) });
  await newestIs(epochd.apiSocket, 0);
  epochd.signal("SIGHUP");
  await newestIs(epochd.apiSocket, 1);
  const text = pipe.read();
  await here.envoy.untilRecord("end", 0);
  epochd.signal("SIGTERM");
  assert.equal((await within("its end", epochd.exit)).code, 0);
  pipe.close();
  const lines = (await text).replace(/^\0+/, "").trimEnd().split("\n");
  const events = lines.map((line) => JSON.parse(line).event);
  assert.equal(events[0], "supervisor_started");
  assert.equal(events.at(-1), "supervisor_ended");
  for (const event of ["epoch_live", "handoff_live", "handoff_done", "stop_asked"]) {
    assert.ok(events.includes(event), event);
  }
  assert.ok(!events.includes("log_lines_dropped"));
});

function withOutput(redirection: string, path: string): Program {
  return ["sh", "-c", `exec ${redirection}`, path, ...epochdCommand("dist")];
}

/** The fake writes to its stderr and would wait there as well; what is tested is epochd. */
function quiet({ directory, envoy }: Scene): string {
  const path = directory.write("quiet-envoy", `#!/bin/sh\nexec '${envoy.path}' "$@" 2>/dev/null\n`);
  Deno.chmodSync(path, 0o755);
  return path;
}

/** Asked over its socket: a command of epochd would run under the same redirection. */
async function newestIs(socket: string, epoch: number): Promise<void> {
  await until(`epoch ${epoch} is the newest`, async () => {
    const { body } = await fetchOnce({ path: socket }, { path: "/v1/status" });
    // deno-lint-ignore no-explicit-any
    const { phase, epochs } = (JSON.parse(body) as any).services.envoy;
    return phase === "serving" && epochs[0]?.epoch === epoch;
  });
}

/** A pipe with a name, held open for reading by this process. */
async function openPipe(path: string) {
  const { success } = await new Deno.Command("mkfifo", { args: [path] }).output();
  assert.ok(success);
  const file = Deno.openSync(path, { read: true, write: true });
  let open = true;
  const close = () => {
    if (open) file.close();
    open = false;
  };
  return {
    path,
    close,
    [Symbol.dispose]: close,
    async fill() {
      // What fits is written, what does not is given up: timeout ends the write that waits.
      const script = 'timeout -s KILL 1 head -c 1048576 /dev/zero > "$0"';
      await new Deno.Command("sh", { args: ["-c", script, path], stderr: "null" }).output();
    },
    async read(): Promise<string> {
      const reader = Deno.openSync(path, { read: true });
      return await new Response(reader.readable).text();
    },
  };
}
