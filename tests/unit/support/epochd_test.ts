import assert from "node:assert/strict";
import { bootstrapText } from "../../support/bootstrap.ts";
import { type EpochdOptions, runEpochd, startEpochd } from "../../support/epochd.ts";
import { fakeEnvoy } from "../../support/fake_envoy.ts";
import { freePort } from "../../support/ports.ts";
import { type TempDir, tempDir } from "../../support/tempdir.ts";
import { isAlive } from "../../support/procfs.ts";

// A stand-in with as much of epochd as the harness sees: flags, events on stderr, one Envoy, exit codes.
const STAND_IN = `
const [command, ...flags] = Deno.args;
const flag = (name) => flags[flags.indexOf(name) + 1];
const say = (event, fields) => Deno.stderr.writeSync(new TextEncoder().encode(JSON.stringify({ event, ...fields }) + "\\n"));
if (command === "status") {
  Deno.stdout.writeSync(new TextEncoder().encode(JSON.stringify({ socket: flag("--api-socket") })));
  Deno.exit(0);
}
if (command !== "run") {
  Deno.stderr.writeSync(new TextEncoder().encode("unknown command\\n"));
  Deno.exit(2);
}
const args = ["-c", flag("--envoy-config"), "--base-id", flag("--base-id"), "--restart-epoch", "0"];
const leave = flags.includes("--leave");
// setsid -f gives the Envoy another parent: it neither gets the death signal nor is it ended below.
const start = leave ? ["setsid", "-f", flag("--envoy-path")] : [flag("--envoy-path")];
const envoy = new Deno.Command(start[0], { args: [...start.slice(1), ...args], stdin: "null" }).spawn();
say("started", { args: Deno.args, mark: Deno.env.get("MARK") });
Deno.addSignalListener("SIGTERM", async () => {
  if (!leave) {
    envoy.kill("SIGTERM");
    await envoy.status;
  }
  say("stopped", {});
  Deno.exit(0);
});
setInterval(() => {}, 1000000);
`;

function options(scratch: TempDir, extraArguments: readonly string[] = []): EpochdOptions {
  const program = [Deno.execPath(), "run", "-A", "--no-config", scratch.write("stand_in.js", STAND_IN)] as const;
  const bootstrapPath = scratch.write("envoy.yaml", bootstrapText({ listenPort: 1, adminPort: freePort() }));
  return {
    envoyPath: fakeEnvoy(scratch.path).path,
    bootstrapPath,
    program,
    extraArguments,
    environment: { MARK: "m" },
  };
}

Deno.test("epochd harness: flags, events, status, exit", async () => {
  await using scratch = tempDir();
  const epochd = startEpochd(options(scratch, ["--drain-time", "7s"]));
  const started = await epochd.waitForEvent("started", (event) => event.mark === "m");
  const args = started.args as string[];
  assert.deepEqual(args.filter((argument) => argument === "--drain-time").length, 1);
  assert.equal(args[args.indexOf("--drain-time") + 1], "7s");
  assert.equal(args[args.indexOf("--parent-shutdown-time") + 1], "4s");
  assert.deepEqual(await epochd.status(), { socket: epochd.apiSocket });
  assert.deepEqual(await epochd.command("nonsense"), { code: 2, stdout: "", stderr: "unknown command\n" });
  epochd.signal("SIGTERM");
  await epochd.waitForEvent("stopped");
  assert.equal((await epochd.exit).code, 0);
  await assert.rejects(epochd.waitForEvent("never"), /no never: epochd ended with/);
  await epochd[Symbol.asyncDispose]();
});

Deno.test("epochd harness: an Envoy left behind is an error, and is ended", async () => {
  await using scratch = tempDir();
  const fake = fakeEnvoy(scratch.path);
  const epochd = startEpochd({ ...options(scratch, ["--leave"]), envoyPath: fake.path });
  await fake.untilRecord("live");
  const pids = epochd.envoyPids();
  await assert.rejects(async () => await epochd[Symbol.asyncDispose](), /left Envoys behind/);
  assert.deepEqual(pids.filter(isAlive), []);
});

Deno.test("epochd harness: a command runs to its end", async () => {
  await using scratch = tempDir();
  const { program } = options(scratch);
  assert.equal((await runEpochd(["bogus"], program)).code, 2);
});
