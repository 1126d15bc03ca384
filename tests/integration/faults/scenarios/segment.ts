// Owns: line 9 of issue 4: what is found in shared memory at the start. Must not: hold what a running supervisor does to it.

import assert from "node:assert/strict";
import { freeBaseId, segmentFlags, segmentPath } from "../../../support/base_ids.ts";
import { writeBootstrap } from "../../../support/bootstrap.ts";
import { envoyPath, spawnEnvoy } from "../../../support/envoys.ts";
import { epochdCommand } from "../../../support/epochd.ts";
import { freePorts } from "../../../support/ports.ts";
import { tempDir } from "../../../support/tempdir.ts";
import { until, within } from "../../../support/until.ts";
import type { Scenario } from "../scenario.ts";
import type { Stage } from "../stage.ts";

/** As Envoy lays it out: size, layout version, two mutexes, flags. */
function segment(sizeBytes: number, says: { readonly size: number; readonly layout: number; readonly flags: number }) {
  const bytes = new Uint8Array(sizeBytes);
  const view = new DataView(bytes.buffer);
  view.setBigUint64(0, BigInt(says.size), true);
  view.setBigUint64(8, BigInt(says.layout), true);
  if (sizeBytes >= 104) view.setBigUint64(96, BigInt(says.flags), true);
  return bytes;
}

interface Found {
  readonly what: string;
  readonly put: (path: string) => void;
  readonly says: RegExp;
}

const REFUSED: readonly Found[] = [
  {
    what: "of another size",
    put: (path) => Deno.writeFileSync(path, segment(208, { size: 104, layout: 11, flags: 0 }), { mode: 0o600 }),
    says: /not made by an Envoy/,
  },
  {
    what: "of another size, as its Envoy says",
    put: (path) => Deno.writeFileSync(path, segment(208, { size: 208, layout: 11, flags: 0 }), { mode: 0o600 }),
    says: /layout 11\.208, expected 11\.104/,
  },
  {
    what: "of another layout version",
    put: (path) => Deno.writeFileSync(path, segment(104, { size: 104, layout: 12, flags: 0 }), { mode: 0o600 }),
    says: /layout 12\.104, expected 11\.104/,
  },
  {
    what: "that is cut short",
    put: (path) => Deno.writeFileSync(path, segment(16, { size: 104, layout: 11, flags: 0 }), { mode: 0o600 }),
    says: /not made by an Envoy/,
  },
  {
    what: "that is a directory",
    put: (path) => Deno.mkdirSync(path),
    says: /not a regular file/,
  },
  {
    what: "that is a link",
    put: (path) => Deno.symlinkSync("/etc/hostname", path),
    says: /not a regular file/,
  },
];

async function refusedStart(stage: Stage, baseId: number, says: RegExp, name = "segment_foreign"): Promise<void> {
  const scene = stage.prepare({ baseId });
  assert.equal((await within("the end of epochd", scene.epochd.exit)).code, 3);
  const refused = await scene.event("preflight_refused", undefined, 0);
  assert.equal(refused.refusal, name);
  assert.match(String(refused.detail), says);
  assert.match(String(refused.detail), new RegExp(`base id ${baseId}|base-id`));
  assert.equal(scene.hasMarker(), false);
  assert.equal(scene.count("epoch_spawned"), 0);
}

const refusals: readonly Scenario[] = REFUSED.map(({ what, put, says }) => ({
  line: 9,
  name: `segment ${what}, found at the start: named and refused, exit 3, left as it is`,
  async run(stage) {
    const baseId = freeBaseId();
    const path = segmentPath(baseId);
    put(path);
    // A directory is not removed by whoever removes segments.
    stage.use({ [Symbol.dispose]: () => void Deno.remove(path, { recursive: true }).catch(() => {}) });
    const before = Deno.lstatSync(path);
    await refusedStart(stage, baseId, says);
    const after = Deno.lstatSync(path);
    assert.deepEqual([after.ino, after.size, after.mtime], [before.ino, before.size, before.mtime]);
    return "exit 3, nothing started, nothing touched";
  },
}));

export const scenarios: readonly Scenario[] = [
  {
    line: 9,
    name: "poisoned segment (INITIALIZING) found at the start: made anew, handoffs work",
    async run(stage) {
      const baseId = freeBaseId();
      Deno.writeFileSync(segmentPath(baseId), segment(104, { size: 104, layout: 11, flags: 1 }), { mode: 0o600 });
      const scene = await stage.serve({ baseId });
      assert.equal(segmentFlags(baseId) & 1n, 0n);
      assert.equal(await scene.goodChange(), 1);
      await scene.unharmed(1);
      return "made anew, handoffs work";
    },
  },
  {
    line: 9,
    name: "everything killed (-9) in the middle of a handoff, then a new start: the poisoned segment is no obstacle",
    async run(stage) {
      const baseId = freeBaseId();
      const { path } = stage.use(tempDir());
      const [listenPort, adminPort] = freePorts(2) as [number, number];
      const bootstrapPath = writeBootstrap(`${path}/envoy.yaml`, { listenPort, adminPort });
      const common = { baseId, bootstrapPath };
      const parent = stage.use(spawnEnvoy(common));
      await parent.untilLive({ port: adminPort });
      const child = stage.use(spawnEnvoy({ ...common, epoch: 1 }));
      await until("the child has set the flag", () => (segmentFlags(baseId) & 1n) === 1n, { everyMs: 1 });
      for (const envoy of [child, parent]) envoy.kill("SIGKILL");
      await Promise.all([child.exit, parent.exit]);
      const scene = await stage.serve({ baseId });
      assert.equal(await scene.goodChange(), 1);
      await scene.unharmed(1);
      return "made anew, handoffs work";
    },
  },
  ...refusals,
  {
    line: 9,
    name: "segment of another user, found at the start: named with both users and refused, exit 3",
    async run(stage) {
      if (Deno.uid() !== 0) return "skipped: this user can't make one";
      const nobody = 65_534;
      const baseId = freeBaseId();
      Deno.writeFileSync(segmentPath(baseId), segment(104, { size: 104, layout: 11, flags: 0 }), { mode: 0o600 });
      const directory = stage.use(tempDir());
      Deno.mkdirSync(directory.at("run"), { mode: 0o700 });
      for (const path of [directory.path, directory.at("run")]) Deno.chownSync(path, nobody, nobody);
      const asNobody = ["setpriv", "--reuid", `${nobody}`, "--regid", `${nobody}`, "--clear-groups"] as const;
      const program = [...asNobody, ...epochdCommand()] as unknown as readonly [string, ...string[]];
      const scene = stage.prepare({ baseId, directory, program, environment: { HOME: directory.path } });
      assert.equal((await within("the end of epochd", scene.epochd.exit)).code, 3);
      const refused = await scene.event("preflight_refused", undefined, 0);
      assert.equal(refused.refusal, "segment_foreign");
      assert.match(String(refused.detail), /belongs to uid 0, epochd and Envoy run as uid 65534/);
      return "exit 3, nothing started";
    },
  },
  {
    line: 9,
    name: "segment of another user, found by root: replaced, as Envoy itself does",
    async run(stage) {
      if (Deno.uid() !== 0) return "skipped: this user can't make one";
      const baseId = freeBaseId();
      Deno.writeFileSync(segmentPath(baseId), segment(104, { size: 104, layout: 11, flags: 1 }), { mode: 0o600 });
      Deno.chownSync(segmentPath(baseId), 65_534, 65_534);
      const scene = await stage.serve({ baseId });
      assert.equal(await scene.goodChange(), 1);
      assert.equal(Deno.statSync(segmentPath(baseId)).uid, 0);
      return "replaced, handoffs work";
    },
  },
  {
    line: 9,
    name: "base id that a living Envoy uses: named with its process and refused, exit 3, that one unharmed",
    async run(stage) {
      const baseId = freeBaseId();
      const { path } = stage.use(tempDir());
      const [listenPort, adminPort] = freePorts(2) as [number, number];
      const bootstrapPath = writeBootstrap(`${path}/envoy.yaml`, { listenPort, adminPort });
      const other = stage.use(spawnEnvoy({ baseId, bootstrapPath, envoyPath: envoyPath() }));
      await other.untilLive({ port: adminPort });
      const traffic = stage.load(listenPort);
      await refusedStart(stage, baseId, new RegExp(`held by process ${other.pid}`), "base_id_held");
      await until("the other serves on", () => traffic.snapshot().requests > 50);
      await traffic.stop();
      // Before the scene ends: what lives on its base id then would be taken for epochd's.
      await other[Symbol.asyncDispose]();
      return "exit 3, the other serves on";
    },
  },
];
