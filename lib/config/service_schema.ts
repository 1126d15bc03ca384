// Owns: every setting of one service, once: type, default, unit, lifecycle and description. Flags, help, the file's
// checks and generated documents come from here. Must not: read anything, or hold rules over several fields.

import * as z from "zod";
import { describeFields, field } from "./field.ts";
import { adminAddress, crashBudget, duration, flagSwitch, integer, oneOf, path, rollback } from "./scalars.ts";

/** The one service that flags describe where no file names it. */
export const onlyService = "envoy";
export const defaultStateDir = "/run/epochd/state";

/** Shared memory and socket names count `base id * 10 + epoch % 3` in 32 bits. */
const largestBaseId = 429_496_728;
const belowEnvoysSecond = "Envoy counts this in whole seconds";

export const serviceFields = {
  envoy_path: field(path().prefault("envoy"), {
    description: "Envoy's executable; a name without a slash is looked up in PATH",
    lifecycle: "hot-restart",
    placeholder: "FILE",
  }),
  envoy_config: field(path(), {
    description: "Envoy's bootstrap, YAML or JSON",
    lifecycle: "hot-restart",
    placeholder: "FILE",
  }),
  envoy_args: field(z.array(z.string({ error: "expected a text" }), { error: "expected a list" }).prefault([]), {
    description: "One more argument for Envoy; a flag and its value are two",
    lifecycle: "hot-restart",
    placeholder: "ARG",
    flag: "envoy-arg",
  }),
  base_id: field(integer(0, largestBaseId).prefault(0), {
    description:
      "Envoy's base id, which keeps several Envoys of one machine apart; on the command line `auto` takes one that is free",
    lifecycle: "static",
    staticWhy: "shared memory and sockets of the serving epoch carry it, and its successor finds it by them",
    placeholder: "NUMBER",
  }),
  concurrency: field(integer(1, 4096).optional(), {
    description: "Envoy's worker threads, the same in every epoch",
    lifecycle: "static",
    staticWhy: "a successor must have as many workers as the epoch it takes the sockets from",
    placeholder: "NUMBER",
    defaultText: "the CPUs this process may use",
  }),
  drain_time: field(
    duration({ minMs: 1000, minWhy: belowEnvoysSecond, wholeSeconds: true }).prefault("30s"),
    {
      description: "How long a predecessor asks its clients to leave",
      lifecycle: "hot-restart",
      placeholder: "DURATION",
      unit: "ms",
    },
  ),
  parent_shutdown_time: field(
    duration({ minMs: 1000, minWhy: belowEnvoysSecond, wholeSeconds: true }).prefault("45s"),
    {
      description: "When a predecessor ends, whatever it still holds",
      lifecycle: "hot-restart",
      placeholder: "DURATION",
      unit: "ms",
    },
  ),
  admin_address: field(adminAddress().optional(), {
    description: "Where Envoy's admin is reached",
    lifecycle: "hot-restart",
    placeholder: "ADDRESS",
    defaultText: "as the bootstrap says",
  }),
  watch_config: field(flagSwitch().prefault(true), {
    description: "Hot restart when the content of the bootstrap changes",
    lifecycle: "dynamic",
  }),
  watch_binary: field(flagSwitch().prefault(false), {
    description: "Hot restart when the content of Envoy's executable changes",
    lifecycle: "dynamic",
  }),
  slots_dir: field(path().optional(), {
    description:
      "Directory of executables by sha256, for `epochd push`: DIR/envoy/current/envoy runs where it is there, else --envoy-path",
    lifecycle: "static",
    staticWhy: "what runs and what may be started again lies there",
    placeholder: "DIR",
    defaultText: "none",
  }),
  binary_public_keys: field(
    z.array(path(), { error: "expected a list of keys" }).prefault([]),
    {
      description:
        "Minisign public key, base64 or a file: with one, nothing from --slots-dir runs that is not signed by it",
      lifecycle: "dynamic",
      placeholder: "KEY",
      flag: "binary-public-key",
      defaultText: "none",
    },
  ),
  binary_max_bytes: field(integer(1, 1_099_511_627_776).prefault(1_073_741_824), {
    description: "Largest executable that a push may bring, in bytes",
    lifecycle: "dynamic",
    placeholder: "NUMBER",
  }),
  binary_trial: field(duration().prefault("5m"), {
    description:
      "How long after LIVE another executable from --slots-dir is on trial: one that dies so soon goes back to what ran before",
    lifecycle: "dynamic",
    placeholder: "DURATION",
    unit: "ms",
  }),
  debounce: field(
    duration({ maxMs: 5000, maxWhy: "a change never waits longer than that" }).prefault("500ms"),
    {
      description: "How long a changed file must rest before it is taken",
      lifecycle: "dynamic",
      placeholder: "DURATION",
      unit: "ms",
    },
  ),
  poll: field(duration({ minMs: 100 }).prefault("10s"), {
    description: "How often a file is looked at where its watch is lost",
    lifecycle: "dynamic",
    placeholder: "DURATION",
    unit: "ms",
  }),
  cross_pod: field(flagSwitch().prefault(false), {
    description:
      "Share base id, state directory, /dev/shm and network with another pod's supervisor and hand over to it",
    lifecycle: "static",
    staticWhy: "whether another pod's epoch is joined was decided at the start",
  }),
  grace_period: field(duration().prefault("0s"), {
    description: "How long the pod lives after SIGTERM (terminationGracePeriodSeconds); 0s where nothing bounds it",
    lifecycle: "static",
    staticWhy: "it is fixed in the pod that runs",
    placeholder: "DURATION",
    unit: "ms",
  }),
  when_superseded: field(oneOf("wait", "exit").optional(), {
    description: "When another supervisor's epoch has taken over: wait for SIGTERM without an Envoy, or exit with 0",
    lifecycle: "dynamic",
    placeholder: "ANSWER",
    defaultText: "wait in a Kubernetes pod, where leaving would restart the container; exit elsewhere",
  }),
  on_supervisor_death: field(oneOf("end", "serve").prefault("end"), {
    description:
      "When epochd itself dies: Envoy ends with it, or serves on until the next epochd takes over from it (plain nodes)",
    lifecycle: "static",
    staticWhy: "the serving epoch was started so that it ends with its supervisor, or so that it does not",
    placeholder: "ANSWER",
  }),
  jitter: field(duration().prefault("0s"), {
    description: "Longest random wait before a hot restart that a changed file asks for",
    lifecycle: "dynamic",
    placeholder: "DURATION",
    unit: "ms",
  }),
  ready_marker: field(path().optional(), {
    description: "File that is kept fresh while the service is ready, for epochd-probe",
    lifecycle: "static",
    staticWhy: "the probe looks where it was told when the pod started",
    placeholder: "FILE",
    defaultText: "none",
  }),
  state_dir: field(path().optional(), {
    description: "Directory for snapshots of what runs",
    lifecycle: "static",
    staticWhy: "what may be started again lies there",
    placeholder: "DIR",
    defaultText: `${defaultStateDir}, with -NAME for a service of another name than ${onlyService}`,
  }),
  live_timeout: field(duration({ minMs: 1000 }).prefault("60s"), {
    description: "How long a new epoch may take to become LIVE",
    lifecycle: "dynamic",
    placeholder: "DURATION",
    unit: "ms",
  }),
  watchdog: field(duration({ minMs: 100 }).prefault("3s"), {
    description: "Silence of the serving epoch's admin after which it counts as hung",
    lifecycle: "dynamic",
    placeholder: "DURATION",
    unit: "ms",
  }),
  min_gap: field(
    z.union([z.literal("parent_shutdown_time"), duration()], {
      error: "expected `parent_shutdown_time` or a duration such as 10s",
    }).prefault("parent_shutdown_time"),
    {
      description:
        "Least time between two hot restarts; 0 lets the third epoch end the first, and cuts its connections",
      lifecycle: "dynamic",
      placeholder: "DURATION",
      unit: "ms",
    },
  ),
  control_plane_wait: field(duration().prefault("30s"), {
    description: "How long a hot restart waits for a control plane that is away",
    lifecycle: "dynamic",
    placeholder: "DURATION",
    unit: "ms",
  }),
  pre_drain_delay: field(duration().prefault("0s"), {
    description: "How long to serve on, not ready, between SIGTERM and the drain",
    lifecycle: "dynamic",
    placeholder: "DURATION",
    unit: "ms",
  }),
  on_crash: field(oneOf("exit", "restart").prefault("exit"), {
    description: "When the newest epoch dies: exit with 1, or start afresh in place",
    lifecycle: "dynamic",
    placeholder: "ANSWER",
  }),
  crash_budget: field(crashBudget().prefault("5 in 10m"), {
    description: "Restarts in place (--on-crash restart) before giving up",
    lifecycle: "dynamic",
    placeholder: "BUDGET",
  }),
  on_lost_admin: field(oneOf("handoff", "keep").prefault("handoff"), {
    description: "When a failed successor took the admin away: hand over at once, or serve on without",
    lifecycle: "dynamic",
    placeholder: "ANSWER",
  }),
  on_hang: field(oneOf("report", "kill").prefault("report"), {
    description: "When the serving epoch hangs: report it and become not ready, or kill it too",
    lifecycle: "dynamic",
    placeholder: "ANSWER",
  }),
  rollback: field(rollback().prefault("off"), {
    description: "Go back to the last good bootstrap and executable when a new one crashes soon",
    lifecycle: "dynamic",
    placeholder: "RULE",
  }),
  retry_limit: field(integer(0, 100).prefault(3), {
    description: "More tries for a hot restart that passed its checks and failed to run",
    lifecycle: "dynamic",
    placeholder: "NUMBER",
  }),
} as const;

export const serviceSchema = z.strictObject(serviceFields);
export type ServiceFields = z.output<typeof serviceSchema>;
export const serviceFieldDescriptions = describeFields(serviceFields);
