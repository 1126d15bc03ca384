/** The compiled `epochd install` where only the real one will do: while it runs, on a full disk, as nobody. */
import assert from "node:assert/strict";
import { join } from "node:path";
import { compile, distDir } from "../../tools/compile.ts";
import { manifestName, programFiles } from "../../lib/install/manifest.ts";
import { writeBootstrap } from "../support/bootstrap.ts";
import { envoyPath } from "../support/envoys.ts";
import { startEpochd } from "../support/epochd.ts";
import { freePorts } from "../support/ports.ts";
import { tempDir } from "../support/tempdir.ts";

const needsRoot = Deno.uid() !== 0;
const suffix = needsRoot ? " (needs root)" : "";
const epochd = join(distDir, "epochd");
const names = [...programFiles, manifestName].sort();

async function run(command: string, ...args: string[]) {
  const { code, stdout, stderr } = await new Deno.Command(command, { args, stdin: "null" }).output();
  const decoder = new TextDecoder();
  return { code, stdout: decoder.decode(stdout), stderr: decoder.decode(stderr) };
}

const listed = (path: string) => Array.from(Deno.readDirSync(path), ({ name }) => name).sort();

Deno.test("what is installed runs, checks by sha256sum, and is a source itself", async () => {
  await compile();
  await using directory = tempDir();
  const [first, second] = [directory.at("first"), directory.at("second")];
  assert.equal((await run(epochd, "install", "--to", first)).code, 0);
  assert.deepEqual(listed(first), names);
  assert.equal((await run("sh", "-c", `cd ${first} && sha256sum --check --quiet ${manifestName}`)).code, 0);
  const { code, stdout } = await run(`${first}/epochd`, "install", "--to", second, "--json");
  assert.equal(code, 0);
  const { to, files } = JSON.parse(stdout);
  assert.deepEqual([to, files.length], [second, names.length]);
  assert.match((await run(`${second}/epochd`, "--version")).stdout, /^epochd \d/);
  assert.match((await run(`${second}/epochd-probe`, "--version")).stdout, /^epochd-probe \d/);
});

Deno.test("a version that runs is replaced, and runs on", async () => {
  await compile();
  await using directory = tempDir();
  const target = directory.at("to");
  await run(epochd, "install", "--to", target);
  // Another version: the same program, but for a byte of its ELF header that nobody reads.
  const file = await Deno.open(`${target}/epochd`, { write: true });
  await file.seek(15, Deno.SeekMode.Start);
  await file.write(new Uint8Array([1]));
  file.close();
  const [adminPort, listenPort] = freePorts(2) as [number, number];
  await using running = startEpochd({
    program: [`${target}/epochd`],
    envoyPath: envoyPath(),
    bootstrapPath: writeBootstrap(directory.at("envoy.yaml"), { adminPort, listenPort }),
    directory,
  });
  await running.waitForEvent("epoch_live");
  const { code, stdout, stderr } = await run(epochd, "install", "--to", target);
  assert.equal(code, 0, stderr);
  assert.match(stdout, /1 file written, checksums verified/);
  assert.equal((await running.command("status")).code, 0);
  // The process of before still hot restarts.
  running.signal("SIGHUP");
  await running.waitForEvent("handoff_live");
});

Deno.test("from source there is nothing to install", async () => {
  const main = join(distDir, "../main.ts");
  const { code, stderr } = await run(Deno.execPath(), "run", "-A", "--quiet", main, "install", "--to", "/nonexistent");
  assert.equal(code, 1);
  assert.equal(
    stderr,
    "error: install: this epochd runs from source, expected the executable that `make compile` builds\n",
  );
});

Deno.test({
  name: `a full disk changes nothing and is named${suffix}`,
  ignore: needsRoot,
  async fn() {
    await compile();
    await using directory = tempDir();
    Deno.mkdirSync(directory.at("small"));
    // The mount goes with its namespace.
    const script = [
      'mount -t tmpfs -o size=8m small "$1"',
      'echo old >"$1/epochd"',
      '"$2" install --to "$1" --json',
      'echo "code $?"',
      'cat "$1/epochd"',
      'ls -A "$1"',
    ].join("\n");
    const { stdout, stderr } = await run("unshare", "--mount", "sh", "-c", script, "sh", directory.at("small"), epochd);
    const [report, ...rest] = stdout.trim().split("\n");
    const problem = /^write \S+\/small\/epochd\.epochd-install\.tmp \(\d+ bytes\): no space left on device$/;
    assert.match(JSON.parse(report!).detail, problem);
    assert.match(stderr, /^error: write .*: no space left on device\n$/);
    assert.deepEqual(rest, ["code 1", "old", "epochd"]);
  },
});

Deno.test({
  name: `a directory of someone else is refused, with its path${suffix}`,
  ignore: needsRoot,
  async fn() {
    await compile();
    await using directory = tempDir();
    Deno.chmodSync(directory.path, 0o755);
    Deno.mkdirSync(directory.at("to"));
    const setpriv = ["setpriv", "--reuid", "65532", "--regid", "65532", "--clear-groups"];
    const as = async (...args: string[]) => await run(setpriv[0]!, ...setpriv.slice(1), epochd, "install", ...args);
    const reachable = await as("--help");
    // The work tree may lie where nobody may go.
    if (reachable.code !== 0) return;
    const { code, stderr } = await as("--to", directory.at("to"));
    assert.equal(code, 1);
    assert.match(stderr, /^error: write \S+\/to\/libgcc_s\.so\.1\S* \(\d+ bytes\): permission denied\n$/);
    const handed = await as("--host-dir", directory.at("host"), "--owner", "65532:65532");
    assert.deepEqual([handed.code, handed.stderr], [1, `error: prepare ${directory.at("host")}: permission denied\n`]);
    assert.deepEqual(listed(directory.at("to")), []);
  },
});
