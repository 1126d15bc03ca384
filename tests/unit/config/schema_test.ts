import assert from "node:assert/strict";
import * as z from "zod";
import { formatDuration } from "../../../lib/config/duration.ts";
import { runFlags } from "../../../lib/config/flags.ts";
import { configSchema } from "../../../lib/config/schema.ts";
import { onlyService, serviceFieldDescriptions, serviceSchema } from "../../../lib/config/service_schema.ts";
import { toServiceConfig, toSettings } from "../../../lib/config/service_config.ts";

const least = { envoy_config: "/etc/envoy/envoy.yaml" };

Deno.test("schema has the defaults of the design", () => {
  const settings = toSettings(toServiceConfig(onlyService, serviceSchema.parse(least)), false);
  assert.deepEqual(settings, {
    debounceMs: 500,
    debounceMaxMs: 5_000,
    drainTimeMs: 30_000,
    parentShutdownTimeMs: 45_000,
    liveTimeoutMs: 60_000,
    watchdogMs: 3_000,
    markerRefreshMs: 2_000,
    minGapMs: "parent_shutdown_time",
    onCrash: "exit",
    crashBudget: 5,
    crashWindowMs: 600_000,
    onLostAdmin: "handoff",
    onHang: "report",
    preDrainDelayMs: 0,
    controlPlaneWaitMs: 30_000,
    rollbackWithinMs: 0,
    binaryTrialMs: 0,
    retryLimit: 3,
    retryBackoffMs: 1_000,
    jitterMs: 0,
    crossPod: false,
    whenSuperseded: "exit",
    gracePeriodMs: 0,
    onSupervisorDeath: "end",
  });
  const config = toServiceConfig(onlyService, serviceSchema.parse(least));
  assert.equal(config.pollMs, 10_000);
  assert.equal(config.baseId, 0);
  assert.equal(config.watchConfig, true);
  assert.equal(config.watchBinary, false);
  assert.equal(config.stateDir, "/run/epochd/state");
  assert.deepEqual(config.envoyArgs, []);
  assert.equal("concurrency" in config, false);
  const { api, log } = configSchema.parse({ services: { envoy: least } });
  assert.deepEqual(api, { socket: "/run/epochd/api.sock", client_roles: [], persist: true });
  assert.deepEqual(log, { format: "auto", level: "info" });
});

Deno.test("on_supervisor_death serve implies all that cross_pod does", () => {
  const config = toServiceConfig(onlyService, serviceSchema.parse({ ...least, on_supervisor_death: "serve" }));
  assert.deepEqual([config.crossPod, toSettings(config, false).crossPod], [true, true]);
});

Deno.test("schema carries every value into what code reads, none under a name of its own", () => {
  const given = {
    ...least,
    envoy_path: "/opt/envoy",
    envoy_args: ["--log-level", "debug"],
    base_id: 7,
    concurrency: 3,
    drain_time: "2s",
    parent_shutdown_time: "4s",
    admin_address: "unix:/run/admin.sock",
    watch_config: false,
    watch_binary: true,
    slots_dir: "/var/lib/epochd",
    binary_public_keys: ["RWkey"],
    binary_max_bytes: 1_000,
    binary_trial: "90s",
    debounce: "20ms",
    poll: "1s",
    cross_pod: true,
    grace_period: "60s",
    when_superseded: "wait",
    on_supervisor_death: "serve",
    jitter: "9s",
    ready_marker: "/run/ready",
    state_dir: "/run/state",
    live_timeout: "5s",
    watchdog: "700ms",
    min_gap: 0,
    control_plane_wait: "8s",
    pre_drain_delay: "6s",
    on_crash: "restart",
    crash_budget: "2 in 1m",
    on_lost_admin: "keep",
    on_hang: "kill",
    rollback: "on-crash-within 30s",
    retry_limit: 9,
  };
  assert.deepEqual(Object.keys(given).sort(), serviceFieldDescriptions.map(({ key }) => key).sort());
  assert.deepEqual(toServiceConfig("edge", serviceSchema.parse(given)), {
    envoyConfig: "/etc/envoy/envoy.yaml",
    envoyPath: "/opt/envoy",
    envoyArgs: ["--log-level", "debug"],
    baseId: 7,
    concurrency: 3,
    drainTimeMs: 2_000,
    parentShutdownTimeMs: 4_000,
    adminAddress: { kind: "unix", path: "/run/admin.sock" },
    watchConfig: false,
    watchBinary: true,
    slotsDir: "/var/lib/epochd",
    binaryPublicKeys: ["RWkey"],
    binaryMaxBytes: 1_000,
    binaryTrialMs: 90_000,
    debounceMs: 20,
    pollMs: 1_000,
    crossPod: true,
    gracePeriodMs: 60_000,
    whenSuperseded: "wait",
    onSupervisorDeath: "serve",
    jitterMs: 9_000,
    readyMarker: "/run/ready",
    stateDir: "/run/state",
    liveTimeoutMs: 5_000,
    watchdogMs: 700,
    minGapMs: 0,
    controlPlaneWaitMs: 8_000,
    preDrainDelayMs: 6_000,
    onCrash: "restart",
    crashBudget: { restarts: 2, windowMs: 60_000 },
    onLostAdmin: "keep",
    onHang: "kill",
    rollback: { kind: "on_crash", withinMs: 30_000 },
    retryLimit: 9,
  });
  const settings = toSettings(toServiceConfig("edge", serviceSchema.parse(given)));
  assert.equal(settings.minGapMs, 0);
  assert.equal(settings.rollbackWithinMs, 30_000);
  assert.equal(settings.crashBudget, 2);
  assert.equal(settings.crashWindowMs, 60_000);
});

Deno.test("schema names a state directory of its own for a service of another name", () => {
  assert.equal(toServiceConfig("edge", serviceSchema.parse(least)).stateDir, "/run/epochd/state-edge");
});

Deno.test("schema describes every field: text, lifecycle, what stands for a value, and unique flags", () => {
  const flags = runFlags.map(({ field }) => field.flag);
  assert.equal(new Set(flags).size, flags.length);
  for (const { field } of runFlags) {
    assert.match(field.description, /^[A-Z].*[^.]$/, field.key);
    assert.ok(["dynamic", "hot-restart", "static"].includes(field.lifecycle), field.key);
    assert.equal(field.placeholder === undefined, field.form === "switch", field.key);
    assert.match(field.flag, /^[a-z]+(-[a-z]+)*$/);
    if (!field.required && field.form !== "list") {
      assert.ok(field.default !== undefined || field.defaultText !== undefined, `${field.key} has no default to show`);
    }
  }
});

Deno.test("schema has the flags of the design", () => {
  const designed = [
    ...["envoy-path", "envoy-config", "envoy-arg", "base-id", "concurrency", "drain-time", "parent-shutdown-time"],
    ...["admin-address", "watch-config", "watch-binary", "debounce", "ready-marker", "state-dir", "min-gap"],
    ...["live-timeout", "on-crash", "on-lost-admin", "pre-drain-delay", "api-socket", "log-format", "log-level"],
  ];
  const flags = new Set(runFlags.map(({ field }) => field.flag));
  for (const flag of designed) assert.ok(flags.has(flag), flag);
});

Deno.test("schema shows default durations as they would be typed", () => {
  for (const { field } of runFlags) {
    if (field.unit !== "ms" || field.default === "parent_shutdown_time") continue;
    const key = `${field.key} ${field.default}`;
    const parsed = serviceSchema.shape[field.key as keyof typeof serviceSchema.shape].parse(field.default);
    assert.equal(typeof parsed, "number", key);
    assert.match(formatDuration(parsed as number), /^\d/, key);
  }
});

Deno.test("schema can be told as JSON Schema with the lifecycle of every field", () => {
  const json = z.toJSONSchema(configSchema, { io: "input" });
  const services = json.properties?.services as { additionalProperties: { properties: Record<string, unknown> } };
  const drain = services.additionalProperties.properties.drain_time as Record<string, unknown>;
  assert.equal(drain.lifecycle, "hot-restart");
  assert.equal(drain.default, "30s");
  assert.equal(typeof drain.description, "string");
});
