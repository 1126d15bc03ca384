// Owns: what can go wrong with a push, on a real Envoy: each time the serving epoch is unharmed and nothing is left behind.
import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { serverInfo } from "../support/admin.ts";
import { envoyPath } from "../support/envoys.ts";
import { type Epochd, epochdCommand, runEpochd } from "../support/epochd.ts";
import { signer } from "../support/minisign.ts";
import { until } from "../support/until.ts";
import { smallFileSystem } from "./faults/small_file_system.ts";
import { linkOf, slotNames, slotsOf, startWithSlots } from "./push_scene.ts";
import { assertUnhurt, eventsOf, handoff, type Scene, scene } from "./scene.ts";

const SHORT = { drainTimeMs: 1_000, parentShutdownTimeMs: 2_000 };

/** A candidate that is Envoy but for one thing; `$real` is Envoy, `$*` its arguments. */
function wrapper(here: Scene, name: string, body: string): string {
  const path = here.directory.write(name, `#!/bin/sh\nreal=${envoyPath("1.40.0")}\n${body}\nexec "$real" "$@"\n`);
  Deno.chmodSync(path, 0o755);
  return path;
}

async function refusedPush(epochd: Epochd, args: readonly string[], why: RegExp): Promise<void> {
  const { code, stdout, stderr } = await epochd.command("push", ...args);
  assert.equal(code, 1, `${stdout}${stderr}`);
  assert.match(stderr, why);
}

/** Through a pipe, as `kubectl exec -i` does. */
async function pushStdin(epochd: Epochd, file: string, bytes: number, ...args: string[]) {
  const [path, ...first] = epochdCommand();
  const line = `head -c ${bytes} '${file}' | "$@"`;
  const { code, stdout, stderr } = await new Deno.Command("sh", {
    args: ["-c", line, "sh", path, ...first, "push", "-", "--api-socket", epochd.apiSocket, ...args],
    stdin: "null",
  }).output();
  const decoder = new TextDecoder();
  return { code, stdout: decoder.decode(stdout), stderr: decoder.decode(stderr) };
}

const sha256 = (path: string) => createHash("sha256").update(Deno.readFileSync(path)).digest("hex");

Deno.test("push: what is wrong with the file is refused by name, the serving epoch unharmed, nothing left behind", async () => {
  await using here = scene();
  const epochd = await startWithSlots(here, { ...SHORT, envoyPath: envoyPath("1.39.3") });
  const traffic = here.traffic({ requestsPerSecond: 200 });
  const real = Deno.readFileSync(envoyPath("1.40.0"));
  const write = (name: string, bytes: Uint8Array) => {
    Deno.writeFileSync(here.directory.at(name), bytes);
    return here.directory.at(name);
  };
  const foreign = real.slice();
  // e_machine 183: aarch64.
  foreign.set([183, 0], 18);
  const other = 'case "$*" in *--hot-restart-version*) echo 99.1; exit 0;; esac';
  const invalid = 'case "$*" in *--mode*validate*) echo "error: no" >&2; exit 1;; esac';
  const hangs = 'case "$*" in *--version*) sleep 60;; esac';
  const cases: readonly (readonly [readonly string[], RegExp])[] = [
    [[envoyPath("1.40.0"), "--sha256", "0".repeat(64)], /digest.differs.*expected 0000/],
    [[write("foreign", foreign)], /binary.wrong.architecture.*aarch64/],
    [[write("short", real.subarray(0, 50_000_000))], /binary.not.executable.*cut short/],
    [[here.directory.write("text", "hello, I am no executable at all")], /binary.wrong.architecture.*not an ELF/],
    [[wrapper(here, "other", other)], /hot.restart.version.differs.*99\.1/],
    [[wrapper(here, "invalid", invalid)], /bootstrap.invalid.*no/],
    [[wrapper(here, "hangs", hangs)], /binary.hangs/],
    [["/bin/true"], /spawn.failed.*named no version/],
  ];
  for (const [args, why] of cases) await refusedPush(epochd, args, why);
  assert.deepEqual(slotNames(here), []);
  assert.deepEqual(eventsOf(epochd, "handoff_began", "binary_switched"), []);
  const { code, stderr } = await epochd.command("push", envoyPath("1.40.0"), "--wait=drained");
  assert.equal(code, 0, stderr);
  assertUnhurt(await traffic.stop());
});

Deno.test("push: bad input is exit 2 with one line, and reaches no supervisor", async () => {
  await using here = scene();
  here.directory.write("empty", "");
  here.directory.write("big.minisig", "x".repeat(5_000));
  const cases: readonly (readonly [readonly string[], RegExp])[] = [
    [["push"], /missing required argument/],
    [["push", here.directory.at("nowhere")], /nowhere.*No such file/i],
    [["push", here.directory.path], /not a regular file/],
    [["push", here.directory.at("empty")], /is empty/],
    [["push", "/bin/true", "--sha256", "abc"], /--sha256 abc: expected 64/],
    [["push", "/bin/true", "--signature", here.directory.at("nowhere")], /read the signature/],
    [["push", here.directory.at("big")], /expected a minisign signature file/],
    [["rollback", "--to", "abcd"], /--to: expected --binary/],
    [["rollback", "--binary", "abcd"], /expected --to abcd/],
    [["rollback", "--binary", "--to", "../etc"], /expected 4 to 64 digits/],
    [["rollback", "--binary", "--list"], /--list/],
  ];
  for (const [args, why] of cases) {
    const { code, stderr } = await runEpochd([...args, "--api-socket", here.directory.at("no.sock")]);
    assert.deepEqual([code, why.test(stderr)], [2, true], `${args.join(" ")}: ${stderr}`);
  }
});

Deno.test("--slots-dir and --binary-public-key: what can't be trusted or read is exit 2, and no Envoy is started", async () => {
  await using here = scene();
  Deno.mkdirSync(here.directory.at("open"));
  Deno.chmodSync(here.directory.at("open"), 0o777);
  Deno.symlinkSync(here.directory.at("open"), here.directory.at("link"));
  here.directory.write("file", "");
  here.directory.write("key", "hello");
  const cases: readonly (readonly [readonly string[], RegExp])[] = [
    [["--slots-dir", here.directory.at("open")], /open has mode 0777, others may write to it/],
    [["--slots-dir", here.directory.at("link")], /open has mode 0777/],
    [["--slots-dir", here.directory.at("file")], /file/],
    [["--slots-dir", ""], /slots-dir.*expected a path/],
    [["--binary-public-key", "RWnonsense"], /binary-public-key.*expected a minisign public key/],
    [["--binary-public-key", here.directory.at("key")], /holds no minisign public key/],
    [["--binary-max-bytes", "0"], /binary-max-bytes.*expected a whole number/],
    [["--binary-trial", "soon"], /binary-trial.*expected a duration/],
  ];
  for (const [args, why] of cases) {
    const { code, stderr } = await runEpochd([
      "run",
      "--envoy-path",
      envoyPath(),
      "--envoy-config",
      here.bootstrapPath,
      "--state-dir",
      here.directory.at("state"),
      "--api-socket",
      here.directory.at("api.sock"),
      ...args,
    ]);
    assert.deepEqual([code, why.test(stderr)], [2, true], `${args.join(" ")}: ${stderr}`);
  }
});

Deno.test("push -: from standard input; a stream that is cut is refused by its digest, and by the ELF's own length without one", async () => {
  await using here = scene();
  const epochd = await startWithSlots(here, { ...SHORT, envoyPath: envoyPath("1.39.3") });
  const file = envoyPath("1.40.0");
  const digest = sha256(file);
  const cut = await pushStdin(epochd, file, 90_000_000, "--sha256", digest);
  assert.deepEqual([cut.code, /digest.differs/.test(cut.stderr)], [1, true], cut.stderr);
  const blind = await pushStdin(epochd, file, 90_000_000);
  assert.deepEqual([blind.code, /cut short/.test(blind.stderr)], [1, true], blind.stderr);
  assert.deepEqual(slotNames(here), []);
  const whole = await pushStdin(epochd, file, 1_000_000_000, "--sha256", digest.toUpperCase(), "--wait=live", "--json");
  assert.equal(whole.code, 0, whole.stderr);
  assert.equal(JSON.parse(whole.stdout).digest, digest);
  assert.equal((await serverInfo(here.admin)).version, "1.40.0");
});

Deno.test("push: a client that goes in the middle leaves nothing, and the next push goes through", async () => {
  await using here = scene();
  const epochd = await startWithSlots(here, { ...SHORT, envoyPath: envoyPath("1.39.3") });
  const bytes = Deno.readFileSync(envoyPath("1.40.0"));
  for (const framing of [`content-length: ${bytes.length}`, "transfer-encoding: chunked"]) {
    const connection = await Deno.connect({ transport: "unix", path: epochd.apiSocket });
    const head = `PUT /v1/services/envoy/binary HTTP/1.1\r\nhost: x\r\n${framing}\r\n\r\n`;
    const size = framing.startsWith("transfer") ? `${bytes.length.toString(16)}\r\n` : "";
    await connection.write(new TextEncoder().encode(head + size));
    for (let sent = 0; sent < 20_000_000;) sent += await connection.write(bytes.subarray(sent, sent + 1_000_000));
    await until("it is being written", () => slotNames(here).some((name) => name.startsWith(".incoming-")));
    connection.close();
    await until("nothing is left", () => slotNames(here).length === 0);
  }
  const { code, stderr } = await epochd.command("push", envoyPath("1.40.0"), "--wait=live");
  assert.equal(code, 0, stderr);
});

Deno.test("push: two at once, one is taken and the other is busy", async () => {
  await using here = scene();
  const epochd = await startWithSlots(here, { ...SHORT, envoyPath: envoyPath("1.38.3") });
  const both = await Promise.all(["1.39.3", "1.40.0"].map((version) => {
    return epochd.command("push", envoyPath(version as "1.40.0"));
  }));
  assert.deepEqual(both.map(({ code }) => code).sort(), [0, 1]);
  assert.match(both.find(({ code }) => code === 1)!.stderr, /push.busy/);
  await handoff(epochd, 1);
  assert.equal(eventsOf(epochd, "binary_switched").length, 1);
});

Deno.test("push: a full disk is refused by name, before it is filled where the size is known, and nothing is left", async () => {
  await using here = scene();
  await using stack = new AsyncDisposableStack();
  const disk = smallFileSystem(stack, "150m");
  if (disk === undefined) return;
  const directory = `${disk.path}/slots`;
  const epochd = await here.start({
    ...SHORT,
    envoyPath: envoyPath("1.38.3"),
    extraArguments: ["--slots-dir", directory],
  });
  const traffic = here.traffic({ requestsPerSecond: 100 });
  const left = () => [...Deno.readDirSync(`${directory}/envoy`)].map(({ name }) => name).filter((n) => n !== ".lock");
  assert.equal((await epochd.command("push", envoyPath("1.39.3"), "--wait=drained")).code, 0);
  await refusedPush(epochd, [envoyPath("1.40.0")], /disk.full.*free/);
  const streamed = await pushStdin(epochd, envoyPath("1.40.0"), 1_000_000_000);
  assert.deepEqual([streamed.code, /disk.full/.test(streamed.stderr)], [1, true], streamed.stderr);
  assert.deepEqual(left().filter((name) => name.startsWith(".")), []);
  assert.equal((await slotsOf(epochd)).length, 1);
  // And where not even a link has room.
  disk.fill();
  const links = await epochd.command("rollback", "--binary", "--to", "installed");
  disk.empty();
  if (links.code !== 0) assert.match(links.stderr, /disk.full|slots.unwritable/);
  assert.ok(["1.38.3", "1.39.3"].includes((await serverInfo(here.admin)).version));
  assertUnhurt(await traffic.stop());
  await epochd[Symbol.asyncDispose]();
});

Deno.test("push: one that is refused after all checks of its own takes no room, so the next one goes through", async () => {
  await using here = scene();
  await using stack = new AsyncDisposableStack();
  const disk = smallFileSystem(stack, "150m");
  if (disk === undefined) return;
  const epochd = await here.start({
    ...SHORT,
    envoyPath: envoyPath("1.38.3"),
    extraArguments: ["--slots-dir", `${disk.path}/slots`],
  });
  const good = Deno.readTextFileSync(here.bootstrapPath);
  Deno.writeTextFileSync(here.bootstrapPath, "admin: 5\n");
  for (const _ of [1, 2]) await refusedPush(epochd, [envoyPath("1.40.0")], /admin.address.missing/);
  Deno.writeTextFileSync(here.bootstrapPath, good);
  const { code, stderr } = await epochd.command("push", envoyPath("1.40.0"), "--wait=live");
  assert.equal(code, 0, stderr);
  await epochd[Symbol.asyncDispose]();
});

Deno.test("--binary-public-key: only what it signed is pushed, rolled back to, or run at a start", async () => {
  await using here = scene();
  const [mine, other] = [signer(), signer()];
  const copy = here.directory.at("envoy-1.40.0");
  Deno.copyFileSync(envoyPath("1.40.0"), copy);
  const bytes = Deno.readFileSync(copy);
  const key = ["--binary-public-key", mine.publicKey];
  const unsigned = await startWithSlots(here, { ...SHORT, envoyPath: envoyPath("1.38.3") });
  assert.equal((await unsigned.command("push", envoyPath("1.39.3"), "--wait=drained")).code, 0);
  unsigned.signal("SIGTERM");
  await unsigned.exit;
  // What was current is not signed: the installed one runs, and it says why.
  const options = { ...SHORT, envoyPath: envoyPath("1.38.3"), baseId: unsigned.baseId, extraArguments: key };
  const epochd = await startWithSlots(here, options);
  assert.equal((await serverInfo(here.admin)).version, "1.38.3");
  assert.match(String(eventsOf(epochd, "slots_mended")[0]?.what), /has no signature/);
  const digest = (await slotsOf(epochd))[0]!.digest;
  const back = await epochd.command("rollback", "--binary", "--to", digest.slice(0, 8));
  assert.deepEqual([back.code, /signature.missing/.test(back.stderr)], [1, true], back.stderr);
  await refusedPush(epochd, [copy], /signature.missing/);
  Deno.writeTextFileSync(`${copy}.minisig`, other.sign(bytes));
  await refusedPush(epochd, [copy], /signature.invalid.*is by key/);
  Deno.writeTextFileSync(`${copy}.minisig`, mine.sign(bytes.subarray(1)));
  await refusedPush(epochd, [copy], /signature.invalid.*does not belong/);
  Deno.writeTextFileSync(here.directory.at("legacy.minisig"), mine.sign(bytes, { legacy: true }));
  const good = await epochd.command("push", copy, "--signature", here.directory.at("legacy.minisig"), "--wait=live");
  assert.equal(good.code, 0, good.stderr);
  assert.equal((await serverInfo(here.admin)).version, "1.40.0");
  assert.deepEqual((await slotsOf(epochd)).find(({ running }) => running)?.signed, true);
});

Deno.test("push: a candidate that dies before LIVE goes back at once, told to whoever waits, and is not tried again", async () => {
  await using here = scene();
  const epochd = await startWithSlots(here, { ...SHORT, envoyPath: envoyPath("1.39.3") });
  const traffic = here.traffic({ requestsPerSecond: 200 });
  const dies = wrapper(here, "dies", 'case "$*" in *--restart-epoch*) exit 3;; esac');
  await refusedPush(epochd, [dies, "--wait"], /refused.*child_died.*exit code 3/s);
  const undone = await epochd.waitForEvent("binary_undone");
  assert.match(String(undone.why), /exit code 3/);
  assert.deepEqual([linkOf(here, "current"), linkOf(here, "previous")], [undefined, undefined]);
  assert.deepEqual(eventsOf(epochd, "retry_planned"), []);
  const { code, stderr } = await epochd.command("push", envoyPath("1.40.0"), "--wait=live");
  assert.equal(code, 0, stderr);
  assertUnhurt(await traffic.stop());
});

Deno.test("push: a candidate that crashes on trial is rolled back with its links, while its predecessor drains and after", async () => {
  await using here = scene();
  const crash = here.directory.at("crash");
  const body = `case "$*" in *--restart-epoch*) pid=$$; ` +
    `(while ! [ -e ${crash} ]; do kill -0 $pid || exit; sleep 0.05; done; kill -SEGV $pid) >/dev/null 2>&1 & ;; esac`;
  const epochd = await startWithSlots(here, { ...SHORT, parentShutdownTimeMs: 5_000, envoyPath: envoyPath("1.38.3") });
  assert.equal((await epochd.command("push", envoyPath("1.39.3"), "--wait=drained")).code, 0);
  const before = [linkOf(here, "current"), linkOf(here, "previous")];
  for (const moment of ["live", "drained"] as const) {
    const crashes = wrapper(here, `crashes-${moment}`, `# ${moment}\n${body}`);
    const { code, stderr } = await epochd.command("push", crashes, `--wait=${moment}`);
    assert.equal(code, 0, stderr);
    assert.equal((await serverInfo(here.admin)).version, "1.40.0");
    assert.notEqual(linkOf(here, "current"), before[0]);
    const undone = eventsOf(epochd, "binary_undone").length;
    const lives = eventsOf(epochd, "epoch_live").length;
    Deno.writeTextFileSync(crash, "");
    await until("undone", () => eventsOf(epochd, "binary_undone").length > undone);
    await until("another is LIVE", () => eventsOf(epochd, "epoch_live").length > lives);
    assert.deepEqual([linkOf(here, "current"), linkOf(here, "previous")], before, moment);
    assert.equal((await serverInfo(here.admin)).version, "1.39.3", moment);
    Deno.removeSync(crash);
    await until("it stands alone", () => epochd.envoyPids().length === 1);
  }
  assert.deepEqual(eventsOf(epochd, "newest_died").map(({ answer }) => answer), ["rollback", "rollback"]);
});

Deno.test("push --drained: an Envoy that can't take over, counted first; one that dies on trial goes back the same way", async () => {
  await using here = scene();
  const crash = here.directory.at("crash");
  const incompatible = wrapper(
    here,
    "incompatible",
    `case "$*" in *--hot-restart-version*) echo 99.104; exit 0;; *--restart-epoch*) pid=$$; ` +
      `(while ! [ -e ${crash} ]; do kill -0 $pid || exit; sleep 0.05; done; kill -SEGV $pid) >/dev/null 2>&1 & ;; esac`,
  );
  const epochd = await startWithSlots(here, { ...SHORT, envoyPath: envoyPath("1.39.3") });
  await refusedPush(epochd, [incompatible], /hot.restart.version.differs/);
  const { code, stdout, stderr } = await epochd.command("push", incompatible, "--drained", "--wait");
  assert.equal(code, 0, stderr);
  assert.match(stdout, /^a drained restart of envoy ends \d+ connections?/);
  const info = await serverInfo(here.admin);
  assert.deepEqual([info.epoch, info.version], [0, "1.40.0"]);
  assert.notEqual(linkOf(here, "current"), undefined);
  Deno.writeTextFileSync(crash, "");
  await epochd.waitForEvent("binary_undone");
  await until("the one before serves", async () => (await serverInfo(here.admin)).version === "1.39.3");
  assert.equal(linkOf(here, "current"), undefined);
  const alone = await epochd.command("rollback", "--drained");
  assert.deepEqual([alone.code, /--drained: expected --binary/.test(alone.stderr)], [2, true], alone.stderr);
});
