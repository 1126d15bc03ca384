import assert from "node:assert/strict";
import { configSchema } from "../../../lib/config/schema.ts";
import { writtenConfig } from "../../../lib/config/written.ts";

Deno.test("writtenConfig is what the schema reads back to the same, whatever the kind of value", () => {
  const given = {
    services: {
      edge: {
        envoy_config: "/etc/envoy.yaml",
        admin_address: "[::1]:9901",
        drain_time: "90s",
        parent_shutdown_time: "2m",
        min_gap: "0",
        crash_budget: "3 in 90s",
        rollback: "on-crash-within 30s",
        envoy_args: ["-l", "info"],
        concurrency: 2,
      },
      other: { envoy_config: "/x", admin_address: "unix:/run/admin.sock", base_id: 3, rollback: "off" },
    },
    api: { listen: "127.0.0.1:9002", client_roles: ["admin:CN=a, O=b"], persist: false },
    log: { level: "warn" },
  };
  const fields = configSchema.parse(given);
  const written = writtenConfig(fields);
  assert.equal(written.services.edge?.drain_time, "1m30s");
  assert.equal(written.services.edge?.crash_budget, "3 in 1m30s");
  assert.equal(written.services.edge?.admin_address, "[::1]:9901");
  assert.deepEqual(written.api.client_roles, ["admin:CN=a, O=b"]);
  assert.equal(written.services.other?.state_dir, "/run/epochd/state-other");
  assert.deepEqual(writtenConfig(configSchema.parse(written)), written);
});
