// Owns: what a change on disk does on a real Envoy: edits, ConfigMap swaps, and what looks like a change and is none.
import assert from "node:assert/strict";
import type { Epochd } from "../support/epochd.ts";
import { fetchOnce } from "../support/http_client.ts";
import { until } from "../support/until.ts";
import { assertEndedByProtocol, assertUnhurt, eventsOf, handoff, scene } from "./scene.ts";

const SHORT = { drainTimeMs: 1_000, parentShutdownTimeMs: 2_000 };

Deno.test("an edit of the bootstrap is handed over to under traffic: the new answers come, nothing failed", async () => {
  await using here = scene();
  const epochd = await here.start(SHORT);
  const traffic = here.traffic();
  await until("traffic flows", () => traffic.snapshot().requests > 50);
  here.edit({ generation: "second" });
  await handoff(epochd, 1, "done");
  await until("new answers", () => traffic.snapshot().generations.includes("second"));
  // In place, as an editor writes that keeps the inode.
  Deno.writeTextFileSync(
    here.bootstrapPath,
    Deno.readTextFileSync(here.edit({ generation: "third" }, here.directory.at("third.yaml"))),
  );
  await handoff(epochd, 2, "done");
  await until("new answers", () => traffic.snapshot().generations.includes("third"));
  const report = await traffic.stop();
  assertUnhurt(report);
  assert.deepEqual(report.generations, ["first", "second", "third"]);
  assert.deepEqual(eventsOf(epochd, "handoff_began").map(({ source }) => source), ["bootstrap", "bootstrap"]);
  assertEndedByProtocol(epochd, [0, 1]);
});

Deno.test("edits that follow each other closely are one handoff, to the last of them", async () => {
  await using here = scene();
  const epochd = await here.start({ ...SHORT, extraArguments: ["--debounce", "1s"] });
  await watched(epochd);
  for (let edit = 1; edit <= 5; edit++) {
    here.edit({ generation: `edit-${edit}` });
    await until(`edit ${edit} is seen`, () => eventsOf(epochd, "content_changed").length === edit);
  }
  await handoff(epochd, 1, "done");
  const { headers } = await fetchOnce(here.listener, { path: "/direct" });
  assert.equal(headers.get("x-generation"), "edit-5");
  assert.equal(eventsOf(epochd, "handoff_began").length, 1);
});

Deno.test("a touch, a file beside it, a rewrite with the same content and an edit that is put back cause nothing", async () => {
  await using here = scene();
  const epochd = await here.start({ ...SHORT, extraArguments: ["--debounce", "1s"] });
  await watched(epochd);
  const text = Deno.readTextFileSync(here.bootstrapPath);
  Deno.utimeSync(here.bootstrapPath, new Date(), new Date());
  here.directory.write("beside.yaml", "nothing to see\n");
  Deno.writeTextFileSync(here.bootstrapPath, text);
  Deno.chmodSync(here.bootstrapPath, 0o600);
  here.edit({});
  here.edit({ generation: "second" });
  await epochd.waitForEvent("content_changed");
  here.edit({});
  // It was looked at afresh when the debounce was over: whatever came before has had its turn.
  const dropped = await epochd.waitForEvent("trigger_dropped");
  assert.deepEqual([dropped.refusal, dropped.source], ["unchanged", "bootstrap"]);
  assert.deepEqual(eventsOf(epochd, "handoff_began", "trigger_accepted"), []);
  // And the watch still lives.
  here.edit({ generation: "third" });
  await handoff(epochd, 1);
  assert.equal(eventsOf(epochd, "handoff_began").length, 1);
});

Deno.test("ConfigMap: kubelet's swap of ..data is seen, also twice and with the old one removed; a swap to the same is not", async () => {
  await using here = scene();
  const volume = here.directory.at("config");
  const map = configMap(volume);
  const content = (generation: string) =>
    Deno.readTextFileSync(here.edit({ generation }, here.directory.at(`${generation}.yaml`)));
  map.publish({ "envoy.yaml": content("first"), "other.conf": "1" });
  const epochd = await here.start({ ...SHORT, bootstrapPath: `${volume}/envoy.yaml` });
  await watched(epochd);
  const traffic = here.traffic();
  for (const [number, generation] of [[1, "second"], [2, "third"]] as const) {
    map.publish({ "envoy.yaml": content(generation), "other.conf": "1" });
    await handoff(epochd, number);
    await until("the new answers", () => traffic.snapshot().generations.includes(generation));
    await handoff(epochd, number, "done");
  }
  // Another key of the same ConfigMap changes: kubelet swaps the whole directory.
  map.publish({ "envoy.yaml": content("third"), "other.conf": "2" });
  map.publish({ "envoy.yaml": content("fourth"), "other.conf": "2" });
  await epochd.waitForEvent("content_changed", undefined, { since: epochd.log.mark() });
  map.publish({ "envoy.yaml": content("third"), "other.conf": "3" });
  await epochd.waitForEvent("trigger_dropped", ({ refusal }) => refusal === "unchanged");
  assertUnhurt(await traffic.stop());
  assert.equal(eventsOf(epochd, "handoff_began").length, 2);
  assertEndedByProtocol(epochd, [0, 1]);
});

Deno.test("a bootstrap that vanishes is told and changes nothing; its return with new content is taken", async () => {
  await using here = scene();
  const epochd = await here.start(SHORT);
  await watched(epochd);
  Deno.removeSync(here.bootstrapPath);
  await epochd.waitForEvent("content_unusable");
  assert.equal((await fetchOnce(here.listener, { path: "/direct" })).status, 200);
  assert.deepEqual(eventsOf(epochd, "handoff_began"), []);
  here.edit({ generation: "second" });
  await handoff(epochd, 1);
  const { headers } = await fetchOnce(here.listener, { path: "/direct" });
  assert.equal(headers.get("x-generation"), "second");
});

Deno.test("--no-watch-config: an edit waits for SIGHUP, which takes it", async () => {
  await using here = scene();
  const epochd = await here.start({ ...SHORT, extraArguments: ["--no-watch-config"] });
  here.edit({ generation: "second" });
  epochd.signal("SIGHUP");
  const { source } = await epochd.waitForEvent("handoff_began");
  assert.equal(source, "signal");
  await handoff(epochd, 1);
  const { headers } = await fetchOnce(here.listener, { path: "/direct" });
  assert.equal(headers.get("x-generation"), "second");
  assert.deepEqual(eventsOf(epochd, "watch_changed", "content_changed"), []);
});

function watched(epochd: Epochd): Promise<unknown> {
  return epochd.waitForEvent("watch_changed", ({ mode }) => mode === "events");
}

/** A volume as kubelet's atomic writer keeps it (pkg/volume/util/atomic_writer.go), step by step. */
function configMap(volume: string) {
  let serial = 0;
  Deno.mkdirSync(volume);
  return {
    publish(files: Readonly<Record<string, string>>): void {
      const directory = `..2026_01_02_03_04_${String(++serial).padStart(2, "0")}.${1_000_000_000 + serial}`;
      Deno.mkdirSync(`${volume}/${directory}`, { mode: 0o755 });
      for (const [name, text] of Object.entries(files)) Deno.writeTextFileSync(`${volume}/${directory}/${name}`, text);
      const old = readLink(`${volume}/..data`);
      Deno.symlinkSync(directory, `${volume}/..data_tmp`);
      Deno.renameSync(`${volume}/..data_tmp`, `${volume}/..data`);
      for (const name of Object.keys(files)) {
        if (readLink(`${volume}/${name}`) === undefined) Deno.symlinkSync(`..data/${name}`, `${volume}/${name}`);
      }
      if (old !== undefined) Deno.removeSync(`${volume}/${old}`, { recursive: true });
    },
  };
}

function readLink(path: string): string | undefined {
  try {
    return Deno.readLinkSync(path);
  } catch {
    return undefined;
  }
}
