// Owns: the shapes of what the API takes and gives, for OpenAPI. Must not: check answers (the types do), or be loaded for anything
// else.

import * as z from "zod";
import { configSchema } from "../config/schema.ts";
import { serviceSchema } from "../config/service_schema.ts";
import type { SchemaName } from "./operation.ts";

const count = z.int().nonnegative();
const ms = z.number();
const refusal = z.looseObject({ name: z.string(), detail: z.string() });

const epoch = z.looseObject({
  epoch: count,
  attempt: count,
  role: z.string(),
  pid: count.optional(),
  version: z.string().optional().describe("Envoy's, absent until LIVE"),
  bootstrapDigest: z.string(),
  binaryDigest: z.string(),
  admin: z.string(),
  ageMs: ms,
  liveForMs: ms.optional(),
  endsInMs: ms.optional().describe("of a predecessor: when its successor ends it"),
});

const service = z.looseObject({
  phase: z.string(),
  step: z.string().optional(),
  ready: z.boolean(),
  note: z.string().optional().describe("why it is not ready, or what is odd although it is"),
  epochs: z.array(epoch),
  outlivesSupervisor: z.boolean().optional().describe("its Envoys outlive this supervisor"),
  standIn: z.looseObject({ epoch: count, pid: count, forMs: ms }).optional()
    .describe("answers the newest epoch in place of its predecessor, which died while it drained"),
  handoffs: count,
  waiting: z.looseObject({ sources: z.array(z.string()), forMs: ms }).optional(),
  refused: z.array(z.looseObject({
    refusal,
    bootstrapDigest: z.string().optional(),
    binaryDigest: z.string().optional(),
    agoMs: ms,
  })),
  watch: z.array(z.looseObject({ subject: z.string(), mode: z.string(), content: z.string() })),
  exitCode: z.int().optional(),
});

const value = z.union([z.string(), z.number(), z.boolean(), z.array(z.string())]);

const config = z.looseObject({
  digest: z.string(),
  path: z.string().optional(),
  differences: z.array(z.looseObject({ field: z.string(), running: value.optional(), file: value.optional() }))
    .optional().describe("where running and file differ"),
  refused: z.looseObject({ name: z.string(), detail: z.string(), wallMs: ms }).optional()
    .describe("a file that was not taken"),
});

const change = z.looseObject({
  dryRun: z.boolean(),
  verdict: z.enum(["unchanged", "dynamic", "hot_restart"]),
  changes: z.array(z.looseObject({
    field: z.string(),
    service: z.string().optional(),
    lifecycle: z.enum(["dynamic", "hot-restart", "static"]),
    running: value.optional(),
    asked: value.optional(),
  })),
  services: z.record(
    z.string(),
    z.looseObject({
      action: z.enum(["none", "dynamic", "hot_restart", "add", "remove"]),
      request: z.string().optional(),
      connections: count.optional().describe("open now, of the epoch that would be replaced or end (dry_run)"),
      outcome: z.enum(["live", "drained"]).optional(),
    }),
  ),
  digest: z.string().describe("of the configuration that runs then, its ETag"),
  persisted: z.boolean().describe("whether epochd.yaml says the same"),
});

/** Answers are read by `output`, questions by `input`. */
export const schemas: Readonly<Record<SchemaName, z.ZodType>> = {
  Change: change,
  Config: configSchema,
  Epochs: z.looseObject({ service: z.string(), epochs: z.array(epoch) }),
  Event: z.looseObject({
    seq: count,
    service: z.string(),
    wallMs: ms,
    fact: z.looseObject({ kind: z.string() }),
    level: z.string(),
    message: z.string(),
  }),
  History: z.looseObject({
    handoffs: z.array(z.looseObject({
      kind: z.literal("handoff"),
      service: z.string(),
      handoff: count.optional().describe("absent where another supervisor's epoch was joined"),
      from: z.int(),
      to: count,
      source: z.string(),
      who: z.string().optional(),
      beganAt: z.iso.datetime(),
      outcome: z.enum(["under_way", "done", "failed", "cut_short"]),
      refusal: refusal.optional(),
      bootstrapDigest: z.string().optional(),
      binaryDigest: z.string().optional(),
      fromVersion: z.string().optional(),
      envoyVersion: z.string().optional(),
      preflightMs: ms.optional(),
      startMs: ms.optional(),
      liveMs: ms.optional(),
      drainMs: ms.optional(),
      connectionsAtDrain: count.optional().describe("the predecessor's, when its drain began"),
      connectionsAtEnd: count.optional().describe("the predecessor's, as Envoy told it last before its end"),
    })),
    configurations: z.array(z.looseObject({
      kind: z.literal("configuration"),
      id: count,
      digest: z.string(),
      at: z.iso.datetime(),
      who: z.string(),
      source: z.string(),
      why: z.string(),
      running: z.boolean(),
    })),
  }),
  MergePatch: z.record(z.string(), z.unknown()).describe("JSON merge patch (RFC 7396)"),
  Problem: z.looseObject({
    type: z.string().describe("urn:epochd:problem:NAME"),
    title: z.string(),
    status: z.int(),
    detail: z.string(),
    refusal: z.string().optional(),
    service: z.string().optional(),
    request: z.string().optional(),
    problems: z.array(z.looseObject({ where: z.string(), value: z.string().optional(), expected: z.string() }))
      .optional(),
    fields: z.array(z.looseObject({
      field: z.string(),
      running: value.optional(),
      asked: value.optional(),
      why: z.string(),
      remedy: z.string(),
    })).optional(),
  }).describe("application/problem+json (RFC 9457)"),
  Restarted: z.looseObject({
    service: z.string(),
    request: z.string().optional().describe("absent where nothing was asked for (dry_run)"),
    outcome: z.enum(["planned", "accepted", "live", "drained"]),
    connections: count.optional().describe("open now; absent where Envoy did not say"),
    drainTimeMs: ms.optional(),
    from: count.optional(),
    to: count.optional(),
    tookMs: ms.optional(),
    drainedMs: ms.optional(),
  }),
  Switched: z.looseObject({
    service: z.string(),
    outcome: z.enum(["unchanged", "accepted", "live", "drained"]),
    digest: z.string().optional().describe("absent: the installed one"),
    version: z.string().optional(),
    request: z.string().optional(),
    from: count.optional(),
    to: count.optional(),
    tookMs: ms.optional(),
    drainedMs: ms.optional(),
  }),
  Binaries: z.looseObject({
    service: z.string(),
    directory: z.string(),
    installed: z.string().describe("envoy_path: what runs where there is no current"),
    trial: z.looseObject({ to: z.string().optional(), live: z.boolean() }).optional(),
    slots: z.array(z.looseObject({
      digest: z.string(),
      version: z.string().optional(),
      sizeBytes: count,
      atMs: ms,
      current: z.boolean(),
      previous: z.boolean(),
      running: z.boolean(),
      signed: z.boolean(),
    })),
  }),
  Rollback: z.strictObject({ to: z.union([z.string(), z.int()]).optional() }),
  Service: serviceSchema,
  Services: z.record(z.string(), serviceSchema),
  Status: z.looseObject({
    version: z.string(),
    pid: count,
    startedAtMs: ms,
    stopping: z.boolean(),
    services: z.record(z.string(), service),
    config,
    connections: z.record(z.string(), z.looseObject({ active: count, draining: count.optional() })).optional()
      .describe("with connections=true: of every epoch, and of these the predecessor's"),
    executable: z.string().optional().describe("the file that the supervisor runs"),
    upgrade: z.looseObject({
      phase: z.enum(["starting", "taken_over", "failed"]),
      executable: z.string(),
      version: z.string(),
      pid: count,
      services: z.record(z.string(), z.string()).optional().describe("what the new supervisor says of them"),
      detail: z.string().optional().describe("why it failed"),
    }).optional().describe("the last upgrade of epochd that was begun here"),
  }),
  Upgrade: z.strictObject({
    // deno-lint-ignore no-control-regex
    executable: z.string().regex(/^\/[^\u0000]*$/)
      .describe("absolute path of another epochd, as the supervisor sees it"),
  }),
  Upgraded: z.looseObject({
    executable: z.string(),
    version: z.string(),
    pid: count.optional().describe("of the new supervisor"),
  }),
};
