// Owns: epochd-stand-in alone: whom it answers, what it answers, how it ends. Must not: start an Envoy.

import assert from "node:assert/strict";
import fc from "fast-check";
import { compileStandIn, provideStandIn } from "../../../tools/native_stand_in.ts";
import { zig } from "../../../tools/native_probe.ts";
import { exitCodes } from "../../../lib/stand_in/exit_codes.ts";
import { domainSockets, freeBaseId, freeLargeBaseId, socketNumber } from "../../support/base_ids.ts";
import { bytesOf, DatagramSocket } from "../../support/datagrams.ts";
import { isAlive } from "../../support/procfs.ts";
import { tempDir } from "../../support/tempdir.ts";
import { until, within } from "../../support/until.ts";

const program = await provideStandIn();

const STATS = "0a021a00";
const TERMINATE = "0a022a00";
const ANSWER = "000000000000000412021a00";

/** A whole message: its length, then the protobuf. */
function message(hex: string): Uint8Array<ArrayBuffer> {
  return bytesOf((hex.length / 2).toString(16).padStart(16, "0") + hex);
}

interface Standing extends AsyncDisposable {
  readonly pid: number;
  readonly baseId: number;
  readonly exit: Promise<Deno.CommandStatus>;
  readonly said: () => string;
}

/** Stands in for epoch 4 of a free base id: its slot is 1, its successor's 2. */
async function stand(
  { boundMs = 60_000, path = program, baseId = freeBaseId(), more = [] as readonly string[] } = {},
): Promise<Standing> {
  const child = new Deno.Command(path, {
    args: [`${baseId}`, "4", `${boundMs}`, ...more],
    stdin: "null",
    stdout: "null",
    stderr: "piped",
  }).spawn();
  let said = "";
  const read = (async () => {
    for await (const text of child.stderr.pipeThrough(new TextDecoderStream())) said += text;
  })();
  const exit = child.status.then(async (status) => {
    await read;
    return status;
  });
  let isOver = false;
  exit.then(() => isOver = true);
  await until(
    "it stands",
    () => isOver || domainSockets(baseId).includes(`envoy_domain_socket_parent_${socketNumber(baseId, 1)}`),
  );
  return {
    pid: child.pid,
    baseId,
    exit,
    said: () => said,
    async [Symbol.asyncDispose]() {
      if (!isOver) child.kill("SIGKILL");
      await within("its end", exit);
    },
  };
}

function successor(baseId: number, { slot = 2, padded = true } = {}): Promise<DatagramSocket> {
  const name = `envoy_domain_socket_child_${socketNumber(baseId, slot)}`;
  return new DatagramSocket(name, `envoy_domain_socket_parent_${socketNumber(baseId, 1)}`, padded).bound();
}

function count(socket: DatagramSocket, hex: string): number {
  return socket.received.filter((one) => one.hex === hex).length;
}

async function run(
  ...args: string[]
): Promise<{ readonly code: number; readonly stdout: string; readonly stderr: string }> {
  const { code, stdout, stderr } = await new Deno.Command(program, { args, stdin: "null" }).output();
  const decoder = new TextDecoder();
  return { code, stdout: decoder.decode(stdout), stderr: decoder.decode(stderr) };
}

Deno.test("stand-in: answers every question of Envoy with statistics of nobody, and ends at Terminate", async () => {
  const baseId = freeBaseId();
  await using child = await successor(baseId);
  await using standing = await stand({ baseId });
  await until("what the dead one may owe", () => count(child, ANSWER) === 1);
  // Statistics, a listen socket.
  const questions = [STATS, "0a170a157463703a2f2f3132372e302e302e313a3537373833"];
  for (const [at, question] of questions.entries()) {
    await child.send(message(question));
    await until("an answer", () => count(child, ANSWER) === at + 2);
  }
  // Drain and a forwarded packet expect none, as the count after the next question shows.
  for (const question of ["0a022200", "0a023200"]) await child.send(message(question));
  await child.send(message(STATS));
  await until("an answer", () => count(child, ANSWER) === questions.length + 2);
  await child.send(message(TERMINATE));
  assert.equal((await within("its end", standing.exit)).code, exitCodes.terminated);
  assert.equal(child.received.length, questions.length + 2);
  assert.equal(standing.said(), "");
});

Deno.test("stand-in: ends the admin that nobody has as a parent does", async () => {
  const baseId = freeBaseId();
  await using child = await successor(baseId);
  await using _standing = await stand({ baseId });
  await child.send(message("0a021200"));
  await until("its word", () => count(child, "0000000000000006120412021001") === 1);
});

Deno.test("stand-in: says to a question of a later Envoy that it does not know it", async () => {
  const baseId = freeBaseId();
  await using child = await successor(baseId);
  await using _standing = await stand({ baseId });
  await child.send(message("0a023a00"));
  await until("its word", () => count(child, "00000000000000021801") === 1);
});

Deno.test("stand-in: garbage is neither answered nor obeyed, whatever it is", async () => {
  const baseId = freeBaseId();
  await using child = await successor(baseId);
  await using standing = await stand({ baseId });
  const garbage = [
    "",
    "00",
    "0a022a00",
    // A length that is wrong, by one or by much.
    "00000000000000030a022a00",
    "00000000000000050a022a00",
    "ffffffffffffffff0a022a00",
    // A reply, a request that holds two, none or something that is no message; more after it; a length that lies or never ends.
    "000000000000000412022a00",
    "00000000000000060a042a002a00",
    "00000000000000020a00",
    "00000000000000040a022800",
    "00000000000000050a022a0000",
    "00000000000000040a032a00",
    "00000000000000060affffffff7f",
    "0000000000000004" + "8a02" + "2a00",
    "0000000000000000",
  ];
  for (const hex of garbage) await child.send(bytesOf(hex));
  await child.send(new Uint8Array(60_000).fill(0x2a));
  await child.send(message(STATS));
  await until("the answer to the one question", () => count(child, ANSWER) === 2);
  assert.equal(child.received.length, 2);
  assert.equal(isAlive(standing.pid), true);
});

Deno.test("stand-in: nobody but the successor is answered or obeyed", async () => {
  const baseId = freeBaseId();
  await using child = await successor(baseId);
  await using other = await successor(baseId, { slot: 0 });
  await using standing = await stand({ baseId });
  for (const question of [STATS, TERMINATE]) await other.send(message(question));
  await child.send(message(STATS));
  await until("the successor's answer", () => count(child, ANSWER) === 2);
  assert.deepEqual(other.received, []);
  assert.equal(isAlive(standing.pid), true);
});

Deno.test("stand-in: a name that only begins alike is not the successor's", async () => {
  const baseId = freeBaseId();
  await using shorter = await successor(baseId, { padded: false });
  await using standing = await stand({ baseId });
  await shorter.send(message(TERMINATE));
  await shorter.send(message(STATS));
  await using child = await successor(baseId);
  await child.send(message(STATS));
  await until("the successor's answer", () => count(child, ANSWER) === 1);
  assert.deepEqual(shorter.received, []);
  assert.equal(isAlive(standing.pid), true);
});

Deno.test("stand-in: has and asks the names that Envoy has where its numbers are from 2^31 on", async () => {
  const baseId = freeLargeBaseId();
  await using child = await successor(baseId);
  await using standing = await stand({ baseId });
  await until("what the dead one may owe", () => count(child, ANSWER) === 1);
  await child.send(message(TERMINATE));
  assert.equal((await within("its end", standing.exit)).code, exitCodes.terminated);
});

Deno.test("stand-in: two hundred questions in a row hold nobody up", async () => {
  const baseId = freeBaseId();
  await using child = await successor(baseId);
  await using standing = await stand({ baseId });
  for (let at = 0; at < 200; at++) await child.send(message(STATS));
  await child.send(message(TERMINATE));
  assert.equal((await within("its end", standing.exit)).code, exitCodes.terminated);
});

Deno.test("stand-in: ends when its time is over", async () => {
  await using standing = await stand({ boundMs: 300 });
  assert.equal((await within("its end", standing.exit)).code, exitCodes.boundOver);
});

Deno.test("stand-in: never takes a name that somebody has", async () => {
  await using first = await stand();
  const second = await run(`${first.baseId}`, "1", "1000");
  assert.equal(second.code, exitCodes.nameTaken);
  assert.equal(second.stderr, `error: somebody has the name envoy_domain_socket_parent_${first.baseId * 10 + 1}\n`);
  assert.equal(isAlive(first.pid), true);
});

for (
  const [args, line] of [
    [[], "expected BASE_ID EPOCH BOUND_MS [outlive]"],
    [["1", "2"], "expected BASE_ID EPOCH BOUND_MS [outlive]"],
    [["1", "2", "3", "4"], "expected BASE_ID EPOCH BOUND_MS [outlive]"],
    [["429496730", "2", "3"], "BASE_ID: expected 0 to 429496729"],
    [["-1", "2", "3"], "BASE_ID: expected 0 to 429496729"],
    [["", "2", "3"], "BASE_ID: expected 0 to 429496729"],
    [["1", "4294967296", "3"], "EPOCH: expected 0 to 4294967295"],
    [["1", "2x", "3"], "EPOCH: expected 0 to 4294967295"],
    [["1", "2", "0"], "BOUND_MS: expected 1 to 86400000"],
    [["1", "2", "99999999999999999999999"], "BOUND_MS: expected 1 to 86400000"],
  ] as const
) {
  Deno.test(`stand-in: ${JSON.stringify(args)} is misuse`, async () => {
    const { code, stdout, stderr } = await run(...args);
    assert.deepEqual([code, stdout, stderr], [exitCodes.misuse, "", `error: ${line}\n`]);
  });
}

Deno.test("stand-in: --help says what it is", async () => {
  const { code, stdout } = await run("--help");
  assert.equal(code, 0);
  assert.match(stdout, /^Usage: epochd-stand-in BASE_ID EPOCH BOUND_MS/);
});

for (const outlives of [false, true]) {
  Deno.test(`stand-in: ${outlives ? "lives on, where it is told to," : "ends"} when its supervisor dies`, async () => {
    const baseId = freeBaseId();
    const child = await successor(baseId);
    // A supervisor in between, with a shell's patience.
    const script = `${program} ${baseId} 4 60000 ${outlives ? "outlive" : ""} & echo $!; wait`;
    const shell = new Deno.Command("sh", { args: ["-c", script], stdin: "null", stdout: "piped" }).spawn();
    const reader = shell.stdout.pipeThrough(new TextDecoderStream()).getReader();
    let text = "";
    while (!text.includes("up\n") || !/\d+\n/.test(text)) text += (await reader.read()).value ?? "";
    const pid = Number(text.match(/\d+/)?.[0]);
    shell.kill("SIGKILL");
    await shell.status;
    await reader.cancel();
    if (outlives) {
      await child.send(message(STATS));
      await until("an answer", () => count(child, ANSWER) === 2);
      assert.equal(isAlive(pid), true);
      // Nobody else would end it, and the name is the next Envoy's.
      await child[Symbol.asyncDispose]();
    }
    await until("it has ended", () => !isAlive(pid));
    if (!outlives) await child[Symbol.asyncDispose]();
  });
}

const runs = Number(Deno.env.get("EPOCHD_FUZZ_RUNS") ?? 300);
const undefinedFlags = ["-fsanitize=undefined", "-fsanitize-trap=undefined", "-fno-sanitize-recover=undefined"];
for (
  const [name, compiler, flags] of [
    ["undefined behaviour", zig, ["cc", "-O1", ...undefinedFlags]],
    ["addresses", "gcc", ["-O1", "-g", "-fsanitize=address,undefined"]],
  ] as const
) {
  Deno.test(`stand-in: random datagrams leave it standing (${name})`, async () => {
    await using dir = tempDir();
    const path = dir.at("stand-in");
    await compileStandIn(compiler, flags, path);
    const baseId = freeBaseId();
    await using child = await successor(baseId);
    await using standing = await stand({ baseId, path });
    const byte = fc.oneof(fc.nat(255), fc.constantFrom(0x0a, 0x12, 0x1a, 0x22, 0x80, 0xff, 0, 1, 2));
    const body = fc.array(byte, { maxLength: 24 });
    const datagram = fc.oneof(
      body.map((bytes) => Uint8Array.from(bytes)),
      // With a length that is right, so that the protobuf is looked at.
      body.map((bytes) => Uint8Array.from([0, 0, 0, 0, 0, 0, 0, bytes.length, ...bytes])),
    );
    // The one that it obeys.
    const harmless = datagram.filter((bytes) => bytes[8] !== 0x0a || !bytes.includes(0x2a));
    await fc.assert(fc.asyncProperty(harmless, (bytes) => child.send(bytes)), { numRuns: runs });
    const before = count(child, ANSWER);
    await child.send(message(STATS));
    await until("an answer", () => count(child, ANSWER) > before);
    await child.send(message(TERMINATE));
    assert.equal((await within("its end", standing.exit)).code, exitCodes.terminated);
    assert.equal(standing.said(), "");
  });
}
