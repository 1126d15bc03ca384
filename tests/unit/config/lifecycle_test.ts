import assert from "node:assert/strict";
import { actionOf, diffConfigs, isUnchanged, staticChanges, verdictOf } from "../../../lib/config/lifecycle.ts";
import { configFieldRows } from "../../../lib/config/field_rows.ts";
import type { WrittenConfig, WrittenFields } from "../../../lib/config/written.ts";

function config(services: Record<string, WrittenFields>, log: WrittenFields = { level: "info" }): WrittenConfig {
  return { services, api: { socket: "/run/a.sock", client_roles: [] }, log };
}

const edge: WrittenFields = { base_id: 1, drain_time: "30s", watchdog: "3s", envoy_args: ["-l", "info"] };

Deno.test("diffConfigs finds nothing between equal configurations, lists among them", () => {
  const diff = diffConfigs(config({ edge }), config({ edge: { ...edge, envoy_args: ["-l", "info"] } }));
  assert.deepEqual(diff, { changes: [], added: [], removed: [] });
  assert.ok(isUnchanged(diff));
  assert.equal(verdictOf(diff), "unchanged");
});

Deno.test("diffConfigs names each field with both values and its lifecycle", () => {
  const { drain_time: _, ...shorter } = edge;
  const asked = config({ edge: { ...shorter, watchdog: "5s", ready_marker: "/m" } }, { level: "debug" });
  assert.deepEqual(diffConfigs(config({ edge }), asked).changes, [
    { field: "services.edge.drain_time", service: "edge", lifecycle: "hot-restart", running: "30s" },
    { field: "services.edge.ready_marker", service: "edge", lifecycle: "static", asked: "/m" },
    { field: "services.edge.watchdog", service: "edge", lifecycle: "dynamic", running: "3s", asked: "5s" },
    { field: "log.level", lifecycle: "dynamic", running: "info", asked: "debug" },
  ]);
});

Deno.test("verdictOf is the heaviest of its parts, actionOf each service's own", () => {
  const [core, other] = [{ ...edge, base_id: 2 }, { ...edge, base_id: 3 }];
  const running = config({ edge, core, other });
  const asked = config({ edge: { ...edge, drain_time: "20s" }, core: { ...core, watchdog: "9s" }, new: edge });
  const diff = diffConfigs(running, asked);
  assert.equal(verdictOf(diff), "hot_restart");
  assert.deepEqual(
    ["edge", "core", "other", "new", "nobody"].map((name) => actionOf(diff, name)),
    ["hot_restart", "dynamic", "remove", "add", "none"],
  );
  const bad = diffConfigs(running, config({ edge: { ...edge, base_id: 9 }, core, other }));
  assert.equal(verdictOf(bad), "refused");
  assert.deepEqual(staticChanges(bad).map(({ field }) => field), ["services.edge.base_id"]);
  assert.equal(verdictOf(diffConfigs(config({ edge }), config({ edge, core }))), "dynamic");
});

Deno.test("diffConfigs takes a service for what it is, even one that is named as a member of every object", () => {
  const diff = diffConfigs(config({ edge }), config({ edge, constructor: edge } as Record<string, WrittenFields>));
  assert.deepEqual(diff.added, ["constructor"]);
});

Deno.test("fields have a lifecycle each, and the design's are what it says", () => {
  const of = new Map(configFieldRows().map(({ field, lifecycle }) => [field, lifecycle]));
  const expected = {
    "services.NAME.base_id": "static",
    "services.NAME.concurrency": "static",
    "services.NAME.envoy_config": "hot-restart",
    "services.NAME.drain_time": "hot-restart",
    "services.NAME.watchdog": "dynamic",
    "services.NAME.jitter": "dynamic",
    "api.socket": "static",
    "api.listen": "static",
    "api.persist": "dynamic",
    "log.level": "dynamic",
    "log.format": "dynamic",
  };
  for (const [field, lifecycle] of Object.entries(expected)) assert.equal(of.get(field), lifecycle, field);
});
