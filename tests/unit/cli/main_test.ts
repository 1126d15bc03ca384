import assert from "node:assert/strict";
import { main } from "../../../lib/cli/main.ts";
import { runFlags } from "../../../lib/config/flags.ts";
import { version } from "../../../lib/observe/version.ts";
import { tempDir } from "../../support/tempdir.ts";
import { FakeTerminal } from "./fake_terminal.ts";

async function epochd(...args: readonly string[]) {
  const terminal = new FakeTerminal();
  const code = await main(args, terminal);
  return { code, stdout: terminal.stdout, stderr: terminal.stderr };
}

Deno.test("epochd --version names itself and what it runs on", async () => {
  const { code, stdout, stderr } = await epochd("--version");
  assert.deepEqual([code, stderr], [0, ""]);
  assert.equal(stdout, `epochd ${version} (deno ${Deno.version.deno})\n`);
});

Deno.test("epochd --help and the help of every command show examples and exit 0", async () => {
  for (const args of [["--help"], ["run", "--help"], ["status", "--help"], ["restart", "-h"], ["help", "run"]]) {
    const { code, stdout, stderr } = await epochd(...args);
    assert.deepEqual([code, stderr], [0, ""], args.join(" "));
    assert.match(stdout, /^Usage: epochd/);
    assert.match(stdout, /\nExamples:\n {2}epochd /);
  }
});

Deno.test("epochd run --help shows every flag of the schema with its default", async () => {
  const { stdout } = await epochd("run", "--help");
  const text = stdout.replaceAll(/\s+/g, " ");
  for (const { field } of runFlags) {
    assert.ok(text.includes(`--${field.flag} `), field.flag);
    if (field.default !== undefined) assert.ok(text.includes(`default ${field.default}`), field.flag);
  }
});

Deno.test("epochd misused exits 2 with a hint, and prints nothing for programs", async () => {
  const cases: readonly (readonly [readonly string[], RegExp])[] = [
    [[], /^Usage: epochd/],
    [["rnu"], /unknown command 'rnu'[^]*Did you mean run\?/],
    [["run", "--drain-tim", "5s"], /unknown option '--drain-tim'[^]*Did you mean --drain-time\?/],
    [["run", "--drain-time"], /option '--drain-time <DURATION>' argument missing/],
    [["run", "--drain-time", "5s", "--drain-time", "6s"], /stands there twice, before with 5s/],
    [["run", "extra"], /too many arguments/],
    [["status", "--jsn"], /Did you mean --json\?/],
    [["restart", "--wait=soon"], /Expected live or drained/],
  ];
  for (const [args, hint] of cases) {
    const { code, stdout, stderr } = await epochd(...args);
    assert.equal(code, 2, args.join(" "));
    assert.equal(stdout, "");
    assert.match(stderr, hint);
  }
});

Deno.test("epochd run names flag, value and remedy, one line a problem, and exits 2", async () => {
  await using dir = tempDir();
  const bootstrap = dir.write("envoy.yaml", "{}");
  const { code, stdout, stderr } = await epochd(
    ...["run", "--envoy-config", bootstrap, "--envoy-path", dir.path, "--drain-time", "500ms", "--base-id=x"],
  );
  assert.deepEqual([code, stdout], [2, ""]);
  assert.deepEqual(stderr.trimEnd().split("\n"), [
    "error: --base-id x: expected a whole number from 0 to 429496728",
    "error: --drain-time 500ms: expected at least 1s (Envoy counts this in whole seconds)",
  ]);
});

Deno.test("epochd run takes values that begin with dashes, and refuses what is epochd's own", async () => {
  await using dir = tempDir();
  const bootstrap = dir.write("envoy.yaml", "{}");
  const given = ["run", "--envoy-config", bootstrap, "--envoy-path", bootstrap];
  const own = await epochd(...given, "--envoy-arg", "--base-id", "--envoy-arg", "3");
  assert.equal(own.code, 2);
  assert.match(own.stderr, /error: --envoy-arg "--base-id 3": expected .*--base-id/);
  const joined = await epochd(...given, "--envoy-arg=--foo=bar");
  assert.match(joined.stderr, /error: --envoy-arg --foo=bar: expected /);
  const fine = await epochd(...given, "--envoy-arg", "--log-level", "--envoy-arg", "debug");
  assert.doesNotMatch(fine.stderr, /--envoy-arg/);
  assert.match(fine.stderr, /is not executable/);
});

Deno.test("epochd run reads switches in both directions", async () => {
  const given = ["run", "--envoy-config", "/none", "--no-watch-config", "--watch-binary"];
  const { code, stderr } = await epochd(...given);
  assert.equal(code, 2);
  assert.doesNotMatch(stderr, /watch/);
});

Deno.test("epochd asks the socket of the flag, then of EPOCHD_API_SOCKET", async () => {
  await using dir = tempDir();
  Deno.env.set("EPOCHD_API_SOCKET", dir.at("environment.sock"));
  try {
    const { code, stderr } = await epochd("status");
    assert.equal(code, 1);
    assert.match(stderr, /environment\.sock does not exist; is `epochd run` at work/);
    assert.match((await epochd("restart", "--api-socket", dir.at("flag.sock"))).stderr, /flag\.sock does not exist/);
  } finally {
    Deno.env.delete("EPOCHD_API_SOCKET");
  }
});
