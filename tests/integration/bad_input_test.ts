// Owns: bad input of `epochd run`: one message that names flag or field, value and expectation, the exit code, and nothing started.
// Exit code 2 is for what epochd can see before it asks Envoy; 3 for what only Envoy can tell (preflight of the first start).
import assert from "node:assert/strict";
import { domainSockets, freeBaseId, hasSegment } from "../support/base_ids.ts";
import { writeBootstrap } from "../support/bootstrap.ts";
import { envoyPath } from "../support/envoys.ts";
import { runEpochd } from "../support/epochd.ts";
import { freePorts } from "../support/ports.ts";
import { processesWithArgument } from "../support/procfs.ts";
import { type TempDir, tempDir } from "../support/tempdir.ts";

interface Case {
  readonly input: string;
  /** Changes to flags that would do; undefined leaves the flag out. */
  readonly flags?: Readonly<Record<string, string | undefined>>;
  /** Put behind the flags. */
  readonly more?: readonly string[];
  /** Made before, in the directory of the case. */
  readonly make?: (directory: TempDir) => unknown;
  readonly code: 2 | 3;
  /** Each must stand in stderr. */
  readonly says: readonly RegExp[];
}

/** `DIR` stands for the directory of the case. */
const CASES: readonly Case[] = [
  {
    input: "an unknown flag",
    more: ["--drain-tme", "10s"],
    code: 2,
    says: [/unknown option '--drain-tme'/, /Did you mean --drain-time\?/],
  },
  { input: "an argument that is no flag", more: ["envoy.yaml"], code: 2, says: [/too many arguments/] },
  {
    input: "a flag without its value",
    more: ["--debounce"],
    code: 2,
    says: [/--debounce <DURATION>' argument missing/],
  },
  {
    input: "a flag that stands there twice",
    more: ["--base-id", "5"],
    code: 2,
    says: [/--base-id <NUMBER>' argument '5' is invalid/, /stands there twice/],
  },
  {
    input: "--drain-time below Envoy's second",
    flags: { "--drain-time": "500ms" },
    code: 2,
    says: [/--drain-time 500ms: expected at least 1s \(Envoy counts this in whole seconds\)/],
  },
  {
    input: "--drain-time of one and a half seconds",
    flags: { "--drain-time": "1500ms" },
    code: 2,
    says: [/--drain-time 1500ms: expected whole seconds/],
  },
  {
    input: "--drain-time without a unit",
    flags: { "--drain-time": "10" },
    code: 2,
    says: [/--drain-time 10: expected a duration such as 500ms, 10s or 1m30s/],
  },
  {
    input: "--drain-time below zero",
    more: ["--drain-time=-5s"],
    flags: { "--drain-time": undefined },
    code: 2,
    says: [/--drain-time -5s: expected a duration/],
  },
  {
    input: "a parent shutdown time that is no longer than the drain time",
    flags: { "--drain-time": "10s", "--parent-shutdown-time": "10s" },
    code: 2,
    says: [/--parent-shutdown-time 10s: expected more than --drain-time, which is 10s/],
  },
  {
    input: "a base id that is no number",
    flags: { "--base-id": "one" },
    code: 2,
    says: [/--base-id one: expected a whole number/],
  },
  { input: "a base id below zero", flags: { "--base-id": "-1" }, code: 2, says: [/--base-id -1: expected .*0/] },
  {
    input: "a base id that Envoy's names can't hold",
    flags: { "--base-id": "429496729" },
    code: 2,
    says: [/--base-id 429496729: expected .*429496728/],
  },
  { input: "no worker at all", flags: { "--concurrency": "0" }, code: 2, says: [/--concurrency 0: expected .*1/] },
  {
    input: "no bootstrap",
    flags: { "--envoy-config": undefined },
    code: 2,
    says: [/--envoy-config: missing \(Envoy's bootstrap/],
  },
  {
    input: "a bootstrap that does not exist",
    flags: { "--envoy-config": "DIR/none.yaml" },
    code: 2,
    says: [/--envoy-config DIR\/none\.yaml: does not exist, expected Envoy's bootstrap file/],
  },
  {
    input: "a directory as bootstrap",
    flags: { "--envoy-config": "DIR" },
    code: 2,
    says: [/--envoy-config DIR: is a directory, expected Envoy's bootstrap file/],
  },
  {
    input: "an Envoy that does not exist",
    flags: { "--envoy-path": "DIR/none" },
    code: 2,
    says: [/--envoy-path DIR\/none: does not exist, expected Envoy's executable/],
  },
  {
    input: "an Envoy that PATH does not have",
    flags: { "--envoy-path": "no-such-envoy" },
    code: 2,
    says: [/--envoy-path no-such-envoy: is not in PATH/],
  },
  {
    input: "an Envoy that is not executable",
    flags: { "--envoy-path": "DIR/envoy.txt" },
    make: (directory) => directory.write("envoy.txt", "not a program\n"),
    code: 2,
    says: [/--envoy-path DIR\/envoy\.txt: is not executable/],
  },
  {
    input: "--envoy-arg with a flag that epochd sets",
    more: ["--envoy-arg", "--base-id", "--envoy-arg", "7"],
    code: 2,
    says: [/--envoy-arg "--base-id 7": expected epochd's own --base-id/],
  },
  {
    input: "--envoy-arg with a flag that epochd sets, and no value",
    more: ["--envoy-arg", "--base-id"],
    code: 2,
    says: [/--envoy-arg --base-id: expected epochd's own --base-id/],
  },
  {
    input: "--envoy-arg with flag and value in one",
    more: ["--envoy-arg=--foo=bar"],
    code: 2,
    says: [/--envoy-arg --foo=bar: expected flag and value as two items: --envoy-arg=--foo --envoy-arg=bar/],
  },
  {
    input: "--envoy-arg with a flag that Envoy refuses twice",
    more: ["-l", "info", "--log-level", "debug"].flatMap((item) => ["--envoy-arg", item]),
    code: 2,
    says: [/--envoy-arg "--log-level debug": expected --log-level once: Envoy refuses a repeated flag/],
  },
  {
    input: "--envoy-arg that ends hot restart",
    more: ["--envoy-arg", "--disable-hot-restart"],
    code: 2,
    says: [/--envoy-arg --disable-hot-restart: expected no such flag: without hot restart/],
  },
  {
    input: "an admin address that is none",
    more: ["--admin-address", "localhost"],
    code: 2,
    says: [/--admin-address localhost: expected an address such as 127\.0\.0\.1:9901/],
  },
  {
    input: "a choice that is none",
    more: ["--on-crash", "retry"],
    code: 2,
    says: [/--on-crash retry: expected exit or restart/],
  },
  {
    input: "several mistakes at once, each in a line of its own",
    flags: { "--drain-time": "soon", "--concurrency": "many" },
    code: 2,
    says: [/^error: --drain-time soon: /m, /^error: --concurrency many: /m],
  },
  {
    input: "an epochd.yaml that does not exist",
    more: ["--config", "DIR/none.yaml"],
    code: 2,
    says: [/--config DIR\/none\.yaml: does not exist/],
  },
  {
    input: "an unknown field in epochd.yaml",
    more: ["--config", "DIR/epochd.yaml"],
    make: (directory) => directory.write("epochd.yaml", "services: {envoy: {drain_tme: 10s}}\n"),
    code: 2,
    says: [/DIR\/epochd\.yaml: services\.envoy\.drain_tme: unknown field, did you mean drain_time\?/],
  },
  {
    input: "a bad value in epochd.yaml",
    flags: { "--drain-time": undefined },
    more: ["--config", "DIR/epochd.yaml"],
    make: (directory) => directory.write("epochd.yaml", "services: {envoy: {drain_time: 500ms}}\n"),
    code: 2,
    says: [/DIR\/epochd\.yaml: services\.envoy\.drain_time 500ms: expected at least 1s/],
  },
  {
    input: "an epochd.yaml that is no YAML",
    more: ["--config", "DIR/epochd.yaml"],
    make: (directory) => directory.write("epochd.yaml", "services: {envoy: [\n"),
    code: 2,
    says: [/DIR\/epochd\.yaml: .*line 2/],
  },
  {
    input: "a state directory that is a file",
    flags: { "--state-dir": "DIR/state" },
    make: (directory) => directory.write("state", ""),
    code: 2,
    says: [/use state directory DIR\/state: is not a directory/],
  },
  {
    input: "a ready marker that is a directory",
    more: ["--ready-marker", "DIR/ready"],
    make: (directory) => Deno.mkdirSync(directory.at("ready")),
    code: 2,
    says: [/ready marker DIR\/ready: it is a directory/],
  },
  {
    input: "an executable of another kind",
    flags: { "--envoy-path": "DIR/envoy" },
    make: (directory) => Deno.chmodSync(directory.write("envoy", "no program, no script\n"), 0o755),
    code: 3,
    says: [/binary_wrong_architecture: run DIR\/envoy: /],
  },
  {
    input: "a bootstrap that is no YAML",
    make: (directory) => directory.write("envoy.yaml", "admin: {address: [\n"),
    code: 3,
    says: [/bootstrap_invalid: .*DIR\/envoy\.yaml/],
  },
  {
    input: "an empty bootstrap",
    make: (directory) => directory.write("envoy.yaml", ""),
    code: 3,
    says: [/bootstrap_invalid: .*DIR\/envoy\.yaml/],
  },
  {
    input: "a bootstrap without an admin address",
    make: (directory) => directory.write("envoy.yaml", "static_resources: {}\n"),
    code: 3,
    says: [/admin_address_missing: .*DIR\/envoy\.yaml: .*--admin-address/],
  },
];

for (const { input, flags = {}, more = [], make = () => {}, code, says } of CASES) {
  Deno.test(`bad input: ${input}: exit code ${code} and a message, nothing is started`, async () => {
    await using directory = tempDir();
    const baseId = freeBaseId();
    const [listenPort, adminPort] = freePorts(2) as [number, number];
    writeBootstrap(directory.at("envoy.yaml"), { listenPort, adminPort });
    make(directory);
    const all: Record<string, string | undefined> = {
      "--envoy-path": envoyPath(),
      "--envoy-config": "DIR/envoy.yaml",
      "--base-id": String(baseId),
      "--drain-time": "1s",
      "--parent-shutdown-time": "2s",
      "--state-dir": "DIR/run/state",
      "--api-socket": "DIR/run/api.sock",
      ...flags,
    };
    const given = Object.entries(all).flatMap(([flag, value]) => value === undefined ? [] : [flag, value]);
    const args = [...given, ...more].map((item) => item.replaceAll("DIR", directory.path));
    const ended = await runEpochd(["run", ...args]);
    const stderr = ended.stderr.replaceAll(directory.path, "DIR");
    assert.equal(ended.code, code, stderr);
    assert.equal(ended.stdout, "");
    for (const expected of says) assert.match(stderr, expected);
    assert.doesNotMatch(stderr, /\bat (file|async)\b|undefined|\[object/, "no stack, no leftovers");
    assert.deepEqual(processesWithArgument("--base-id", String(baseId)), []);
    assert.deepEqual([hasSegment(baseId), domainSockets(baseId)], [false, []]);
    if (code === 2) assert.equal(exists(directory.at("run", "state", "bootstrap")), false, "nothing was written");
  });
}

Deno.test("bad input: no command, an unknown one, help: exit code 2 for misuse, 0 for help", async () => {
  const unknown = await runEpochd(["rum"]);
  assert.equal(unknown.code, 2);
  assert.match(unknown.stderr, /unknown command 'rum'[^]*Did you mean run\?/);
  const none = await runEpochd([]);
  assert.equal(none.code, 2);
  assert.match(none.stdout + none.stderr, /Usage: epochd/);
  const help = await runEpochd(["run", "--help"]);
  assert.deepEqual([help.code, help.stderr], [0, ""]);
  assert.match(help.stdout, /--envoy-config <FILE>[^]*required/);
  const version = await runEpochd(["--version"]);
  assert.deepEqual([version.code, version.stderr], [0, ""]);
  assert.match(version.stdout, /^epochd \d+\.\d+\.\d+ \(deno \S+\)\n$/);
});

Deno.test("bad input: a bootstrap that only Envoy finds wrong ends the first start with 3 and Envoy's reason", async () => {
  await using directory = tempDir();
  const baseId = freeBaseId();
  const [listenPort, adminPort] = freePorts(2) as [number, number];
  const path = writeBootstrap(directory.at("envoy.yaml"), {
    listenPort,
    adminPort,
    change: (bootstrap) => bootstrap.no_such_field = 1,
  });
  const flags = ["--envoy-path", envoyPath(), "--envoy-config", path, "--base-id", String(baseId)];
  const places = ["--state-dir", directory.at("state"), "--api-socket", directory.at("api.sock")];
  const { code, stderr } = await runEpochd(["run", ...flags, ...places]);
  assert.equal(code, 3, stderr);
  assert.match(stderr, /"event":"preflight_refused".*"refusal":"bootstrap_invalid".*no_such_field/);
  assert.deepEqual(processesWithArgument("--base-id", String(baseId)), []);
});

function exists(path: string): boolean {
  try {
    Deno.lstatSync(path);
    return true;
  } catch {
    return false;
  }
}
