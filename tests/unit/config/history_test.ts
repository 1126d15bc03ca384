import assert from "node:assert/strict";
import { ConfigHistory, type HistoryEntry, keptEntries } from "../../../lib/config/history.ts";
import { tempDir } from "../../support/tempdir.ts";

function entry(digest: string, more: Partial<Omit<HistoryEntry, "id">> = {}): Omit<HistoryEntry, "id"> {
  return { digest, wallMs: 1, who: "unix socket", source: "patch", why: "log.level", document: { log: {} }, ...more };
}

Deno.test("history keeps the last 20, newest first, over supervisors", async () => {
  await using dir = tempDir();
  const first = new ConfigHistory(dir.path);
  for (let i = 1; i <= 23; i++) assert.equal(await first.add(entry(`d${i}`)), undefined);
  const second = new ConfigHistory(dir.path);
  assert.equal(await second.add(entry("d24")), undefined);
  const entries = await new ConfigHistory(dir.path).entries();
  assert.equal(entries.length, keptEntries);
  assert.deepEqual(entries.slice(0, 2).map(({ id, digest }) => [id, digest]), [[24, "d24"], [23, "d23"]]);
  assert.deepEqual(entries[0], { id: 24, ...entry("d24") });
  assert.equal(Deno.statSync(dir.at("config-history.json")).mode! & 0o777, 0o600);
  assert.deepEqual([...Deno.readDirSync(dir.path)].map(({ name }) => name), ["config-history.json"]);
});

Deno.test("history has no second entry for a supervisor that starts with what ran last", async () => {
  await using dir = tempDir();
  const history = new ConfigHistory(dir.path);
  await history.add(entry("a", { source: "start" }));
  await history.add(entry("a", { source: "start" }));
  await history.add(entry("b", { source: "start" }));
  assert.deepEqual((await history.entries()).map(({ digest }) => digest), ["b", "a"]);
});

Deno.test("history begins anew where its file is broken, and says where it can't write", async () => {
  await using dir = tempDir();
  dir.write("config-history.json", '[{"id": 1, "dig');
  const history = new ConfigHistory(dir.path);
  assert.deepEqual(await history.entries(), []);
  assert.equal(await history.add(entry("a")), undefined);
  const nowhere = new ConfigHistory(dir.at("none"));
  assert.match(await nowhere.add(entry("a")) ?? "", /^write .*config-history\.json: no such file/);
  assert.equal((await nowhere.entries()).length, 1);
});
