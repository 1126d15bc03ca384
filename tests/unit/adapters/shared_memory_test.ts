import { deepStrictEqual, match, strictEqual } from "node:assert/strict";
import { SharedMemory } from "../../../lib/adapters/shared_memory.ts";
import { type TempDir, tempDir } from "../../support/tempdir.ts";

const BASE_ID = 7;

interface Fake {
  readonly dir: TempDir;
  readonly segment: SharedMemory;
}

/** A segment, and a /proc, of files. */
async function withFake(act: (fake: Fake) => Promise<void>): Promise<void> {
  await using dir = tempDir();
  dir.write("proc/net/unix", "");
  await act({ dir, segment: new SharedMemory(BASE_ID, { shmDir: dir.path, procDir: dir.at("proc"), endingMs: 0 }) });
}

function write(
  fake: Fake,
  options: { size?: number; header?: number; layout?: number; flags?: number } = {},
): Uint8Array {
  const bytes = new Uint8Array(options.size ?? 104).fill(0xee);
  const view = new DataView(bytes.buffer);
  view.setBigUint64(0, BigInt(options.header ?? options.size ?? 104), true);
  view.setBigUint64(8, BigInt(options.layout ?? 11), true);
  if (bytes.length >= 104) view.setBigUint64(96, BigInt(options.flags ?? 0), true);
  Deno.writeFileSync(fake.segment.path, bytes, { mode: 0o600 });
  return bytes;
}

const socketLine = (name: string) => `0: 00000002 00000000 00000000 0002 01 4242 @${name}`.padEnd(140, "@");

Deno.test("SharedMemory: the path that Envoy gives the segment", () => {
  strictEqual(new SharedMemory(12).path, "/dev/shm/envoy_shared_memory_120");
});

Deno.test("repair: clears INITIALIZING and nothing else", () =>
  withFake(async (fake) => {
    const before = write(fake, { flags: 0x0102_0305 });
    deepStrictEqual(await fake.segment.repair(), { kind: "cleared" });
    before[96] = 0x04;
    deepStrictEqual(Deno.readFileSync(fake.segment.path), before);
    deepStrictEqual(await fake.segment.repair(), { kind: "clean" });
  }));

Deno.test("repair: leaves a segment of another size or layout alone and says what it found", () =>
  withFake(async (fake) => {
    const cases = [{ size: 112, flags: 1 }, { header: 112, flags: 1 }, { layout: 12, flags: 1 }, { size: 16 }, {
      size: 0,
    }];
    for (const options of cases) {
      const bytes = options.size === 0 ? new Uint8Array(0) : write(fake, options);
      if (options.size === 0) Deno.writeFileSync(fake.segment.path, bytes);
      const outcome = await fake.segment.repair();
      strictEqual(outcome.kind, "failed", JSON.stringify(options));
      if (outcome.kind === "failed") match(outcome.detail, /expected 104 bytes of layout 11, found/);
      deepStrictEqual(Deno.readFileSync(fake.segment.path), bytes);
    }
  }));

Deno.test("repair: a segment that is gone can't be repaired", () =>
  withFake(async ({ segment }) => {
    deepStrictEqual(await segment.repair(), {
      kind: "failed",
      detail: `clear INITIALIZING in ${segment.path}: no such file or directory`,
    });
  }));

Deno.test("look: absent, clean, initialising, foreign", () =>
  withFake(async (fake) => {
    deepStrictEqual(await fake.segment.look(), { kind: "absent" });
    write(fake, { flags: 1 });
    const uid = Deno.uid() ?? -1;
    const header = { sizeBytes: 104, layout: 11 };
    deepStrictEqual(await fake.segment.look(), {
      kind: "present",
      uid,
      ours: true,
      sizeBytes: 104,
      header,
      initializing: true,
    });
    write(fake, { flags: 2 });
    deepStrictEqual(await fake.segment.look(), {
      kind: "present",
      uid,
      ours: true,
      sizeBytes: 104,
      header,
      initializing: false,
    });
    write(fake, { layout: 10 });
    deepStrictEqual(await fake.segment.look(), {
      kind: "present",
      uid,
      ours: true,
      sizeBytes: 104,
      header: { sizeBytes: 104, layout: 10 },
    });
    Deno.removeSync(fake.segment.path);
    Deno.mkdirSync(fake.segment.path);
    deepStrictEqual(await fake.segment.look(), { kind: "unreadable", why: "not a regular file" });
  }));

Deno.test("vitals: alive needs a running process and its own generation's parent socket", () =>
  withFake(async (fake) => {
    const vitals = async (state: string, sockets: string[]) => {
      fake.dir.write("proc/42/stat", `42 (envoy) ${state} 1 7 7 0 -1 4194560 1 0 0 0 5 6 0 0 20 0 1 0 987654 1 1`);
      fake.dir.write("proc/net/unix", sockets.map(socketLine).join("\n"));
      return await fake.segment.vitals(42, 4);
    };
    const own = ["envoy_domain_socket_parent_71"];
    deepStrictEqual(await vitals("S", own), {
      alive: true,
      detail: "process 42 lives, the parent socket of epoch 4 is there",
    });
    deepStrictEqual(await vitals("D", own), {
      alive: true,
      detail: "process 42 lives, the parent socket of epoch 4 is there",
    });
    deepStrictEqual(await vitals("T", own), { alive: false, detail: "process 42 is stopped" });
    deepStrictEqual(await vitals("Z", own), { alive: false, detail: "process 42 is a zombie" });
    for (
      const other of [
        "envoy_domain_socket_parent_70",
        "envoy_domain_socket_child_71",
        "envoy_domain_socket_udp_parent_71",
      ]
    ) {
      deepStrictEqual(await vitals("S", [other]), {
        alive: false,
        detail: "process 42 lives, the parent socket of epoch 4 is gone",
      });
    }
    deepStrictEqual(await fake.segment.vitals(43, 4), { alive: false, detail: "process 43 is gone" });
  }));

Deno.test("startObstacle: nothing there, a clean segment and a poisoned one are none", () =>
  withFake(async (fake) => {
    strictEqual(await fake.segment.startObstacle(), undefined);
    write(fake);
    strictEqual(await fake.segment.startObstacle(), undefined);
    write(fake, { flags: 1 });
    strictEqual(await fake.segment.startObstacle(), undefined);
  }));

Deno.test("startObstacle: a living generation of this base id holds it, another base id's doesn't", () =>
  withFake(async (fake) => {
    fake.dir.write("proc/net/unix", socketLine("envoy_domain_socket_parent_80"));
    strictEqual(await fake.segment.startObstacle(), undefined);
    fake.dir.write("proc/net/unix", socketLine("envoy_domain_socket_parent_72"));
    const obstacle = await fake.segment.startObstacle();
    strictEqual(obstacle?.name, "base_id_held");
    match(obstacle.detail, /base id 7: .*sockets 72.*a process that can't be seen from here.*another --base-id$/);
    Deno.mkdirSync(fake.dir.at("proc/4711/fd"), { recursive: true });
    Deno.symlinkSync("socket:[4242]", fake.dir.at("proc/4711/fd/9"));
    match((await fake.segment.startObstacle())?.detail ?? "", /held by process 4711;/);
  }));

Deno.test("startObstacle: waits for the end of a generation whose supervisor was killed", () =>
  withFake(async (fake) => {
    fake.dir.write("proc/net/unix", socketLine("envoy_domain_socket_parent_72"));
    const patient = new SharedMemory(BASE_ID, {
      shmDir: fake.dir.path,
      procDir: fake.dir.at("proc"),
      endingMs: 20_000,
    });
    const asked = patient.startObstacle();
    fake.dir.write("proc/net/unix", "");
    strictEqual(await asked, undefined);
  }));

Deno.test("startObstacle: what no Envoy made is named, with what to do", () =>
  withFake(async (fake) => {
    for (const options of [{ header: 4096 }, { size: 200, header: 104 }, { size: 8 + 8, header: 15 }]) {
      write(fake, options);
      const obstacle = await fake.segment.startObstacle();
      strictEqual(obstacle?.name, "segment_foreign", JSON.stringify(options));
      match(obstacle.detail, /was not made by an Envoy .*; remove it if nothing uses it, or use another --base-id$/);
    }
  }));

Deno.test("startObstacle: another layout is foreign unless the binary has it too", () =>
  withFake(async (fake) => {
    write(fake, { size: 120, layout: 12 });
    strictEqual(await fake.segment.startObstacle(() => Promise.resolve("12.120")), undefined);
    const other = await fake.segment.startObstacle(() => Promise.resolve("11.104"));
    strictEqual(other?.name, "segment_foreign");
    match(other.detail, /has layout 12\.120, expected 11\.104/);
    match((await fake.segment.startObstacle(() => Promise.resolve(undefined)))?.detail ?? "", /has layout 12\.120/);
  }));

Deno.test("handoffObstacle: a segment that was removed under a living Envoy, told with its pid, and none that only this process lacks", () =>
  withFake(async (fake) => {
    strictEqual(await fake.segment.handoffObstacle(), undefined, "nobody lives");
    fake.dir.write("proc/net/unix", socketLine("envoy_domain_socket_parent_70"));
    strictEqual(await fake.segment.handoffObstacle(), undefined, "whose it is can't be seen");
    Deno.mkdirSync(fake.dir.at("proc/4711/fd"), { recursive: true });
    Deno.symlinkSync("socket:[4242]", fake.dir.at("proc/4711/fd/3"));
    const refused = await fake.segment.handoffObstacle();
    strictEqual(refused?.name, "segment_missing");
    match(refused.detail, /envoy_shared_memory_70 was removed.*take over from Envoy 4711 without it/);
    fake.dir.write(`proc/4711/root${fake.segment.path}`, "");
    strictEqual(await fake.segment.handoffObstacle(), undefined, "it has another /dev/shm");
    Deno.removeSync(fake.dir.at("proc/4711/root"), { recursive: true });
    write(fake);
    strictEqual(await fake.segment.handoffObstacle(), undefined, "it is there");
  }));
