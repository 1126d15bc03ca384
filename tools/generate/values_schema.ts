/** charts/epochd/values.schema.json. Owns the chart's own values; `settings` comes from the schema of `epochd run`. */
import * as z from "zod";
import { runFlags } from "../../lib/config/flags.ts";
import { apiFields, logFields } from "../../lib/config/schema.ts";
import { serviceFields } from "../../lib/config/service_schema.ts";

type Schema = Readonly<Record<string, unknown>>;

/** What the chart decides itself, by flag. */
export const chartFlags: readonly string[] = [
  "envoy-path",
  "envoy-config",
  "envoy-arg",
  "cross-pod",
  "grace-period",
  "when-superseded",
  "on-supervisor-death",
  "state-dir",
  "ready-marker",
  "api-socket",
];

const text: Schema = { type: "string" };
const filled: Schema = { type: "string", minLength: 1 };
const flag: Schema = { type: "boolean" };
const anything: Schema = {};
const list = (items: Schema): Schema => ({ type: "array", items });
const map: Schema = { type: "object" };
const texts: Schema = { type: "object", additionalProperties: { type: "string" } };
const atLeast = (minimum: number): Schema => ({ type: "integer", minimum });
const share: Schema = {
  anyOf: [{ type: "integer", minimum: 1 }, { type: "string", pattern: "^[1-9][0-9]?%$|^100%$" }],
};

function closed(properties: Record<string, Schema>, required = Object.keys(properties)): Schema {
  return { type: "object", additionalProperties: false, required, properties };
}

const image = closed({
  repository: filled,
  tag: text,
  digest: { type: "string", pattern: "^(sha256:[0-9a-f]{64})?$" },
  pullPolicy: { enum: ["Always", "IfNotPresent", "Never"] },
});
const hostPath: Schema = { type: "string", pattern: "^(/.+)?$" };

export function valuesSchema(): string {
  const values = closed({
    nameOverride: text,
    fullnameOverride: text,
    hotRestart: closed({
      enabled: flag,
      crossPod: flag,
      surge: flag,
      stateHostPath: hostPath,
      shmHostPath: hostPath,
    }),
    settings: settings(),
    terminationGracePeriodSeconds: atLeast(1),
    envoy: closed({
      image,
      path: filled,
      args: list({ type: ["string", "number"] }),
      existingConfigMap: text,
      configMapKey: filled,
      bootstrap: text,
    }),
    epochd: closed({ image, initResources: map }),
    imagePullSecrets: list(map),
    hostNetwork: flag,
    ports: list(map),
    readinessProbe: closed({
      periodSeconds: atLeast(1),
      timeoutSeconds: atLeast(1),
      failureThreshold: atLeast(1),
      maxAge: inputOf(serviceFields.poll),
    }),
    plainReadinessProbe: map,
    shareProcessNamespace: flag,
    podSecurityContext: {
      type: "object",
      required: ["runAsUser", "runAsGroup"],
      properties: { runAsUser: atLeast(1), runAsGroup: atLeast(0) },
    },
    resources: map,
    rollout: closed({ maxUnavailable: share, maxSurge: share, minReadySeconds: atLeast(0) }),
    serviceAccount: closed({ create: flag, name: text, annotations: texts }),
    podDisruptionBudget: closed({ enabled: flag, minAvailable: atLeast(1) }),
    networkPolicy: closed({ enabled: flag, ingress: list(map), egress: list(map) }),
    metrics: metrics(),
    podAnnotations: texts,
    podLabels: texts,
    nodeSelector: texts,
    tolerations: list(map),
    affinity: map,
    priorityClassName: text,
    extraEnv: list(map),
    extraVolumes: list(map),
    extraVolumeMounts: list(map),
    sidecars: list(map),
    // A parent chart hands its own down.
    global: anything,
  }, []);
  const comment = "Made by tools/generate.ts from lib/config; edit that.";
  return JSON.stringify({ $schema: "http://json-schema.org/draft-07/schema#", $comment: comment, ...values });
}

function metrics(): Schema {
  const spoken: Schema = { type: "string", pattern: "^([0-9]+(ms|[smhdwy]))+$" };
  const named = closed({ name: filled, key: filled });
  const kept: Schema = {
    anyOf: [closed({ secret: named }), closed({ configMap: named })],
  };
  return closed({
    enabled: flag,
    address: filled,
    port: { type: "integer", minimum: 1, maximum: 65535 },
    tls: closed({ secretName: text, certKey: filled, keyKey: filled }),
    keys: closed({ secretName: text, key: filled }),
    podMonitor: closed({
      enabled: flag,
      labels: texts,
      interval: spoken,
      authorization: closed({ secretName: text, key: filled }),
      // SafeTLSConfig of Prometheus' operator: that of a PodMonitor names no files.
      tlsConfig: closed({ ca: kept, cert: kept, keySecret: named, serverName: filled, insecureSkipVerify: flag }, []),
    }),
    prometheusRule: closed({
      enabled: flag,
      labels: texts,
      selector: text,
      notReadyFor: spoken,
      runbookUrl: filled,
    }),
    dashboard: closed({ enabled: flag, labels: texts, annotations: texts }),
  });
}

/** Named as the flags are, with _ for -. */
function settings(): Schema {
  const sections = { service: serviceFields, api: apiFields, log: logFields };
  const properties: Record<string, Schema> = {};
  for (const { section, field } of runFlags) {
    if (chartFlags.includes(field.flag)) continue;
    const schema = (sections[section] as Readonly<Record<string, z.ZodType>>)[field.key]!;
    properties[field.flag.replaceAll("-", "_")] = { description: field.description, ...inputOf(schema) };
  }
  return closed(properties, ["base_id", "drain_time", "parent_shutdown_time"]);
}

/** What one writes, as JSON Schema, without what is for code and documents only. */
function inputOf(schema: z.ZodType): Schema {
  const { anyOf, type, pattern, enum: choices, minimum, maximum, minLength, items } = z.toJSONSchema(schema, {
    io: "input",
    target: "draft-7",
    unrepresentable: "any",
  });
  const kept = { anyOf, type, pattern, enum: choices, minimum, maximum, minLength, items };
  return Object.fromEntries(Object.entries(kept).filter(([, value]) => value !== undefined));
}
