// Owns: the whole of epochd.yaml: services, API and log. Must not: read it, or hold rules over several fields.

import { z } from "zod";
import { describeFields, field } from "./field.ts";
import { oneOf, path } from "./scalars.ts";
import { serviceSchema } from "./service_schema.ts";

export const defaultApiSocket = "/run/epochd/api.sock";

export const apiFields = {
  socket: field(path().prefault(defaultApiSocket), {
    description: "Unix socket of the API; EPOCHD_API_SOCKET sets it too",
    lifecycle: "static",
    placeholder: "FILE",
    flag: "api-socket",
  }),
} as const;

export const logFields = {
  format: field(oneOf("auto", "text", "json").prefault("auto"), {
    description: "Form of epochd's own log: auto is text on a terminal, else json",
    lifecycle: "static",
    placeholder: "FORMAT",
    flag: "log-format",
  }),
  level: field(oneOf("debug", "info", "warn", "error").prefault("info"), {
    description: "Least level of epochd's own log",
    lifecycle: "dynamic",
    placeholder: "LEVEL",
    flag: "log-level",
  }),
} as const;

export const apiFieldDescriptions = describeFields(apiFields);
export const logFieldDescriptions = describeFields(logFields);

const noSection = { error: "expected fields with values" };

export const configSchema = z.strictObject({
  services: z.record(z.string(), serviceSchema, { error: "expected services, each a name with its fields" }),
  api: z.strictObject(apiFields, noSection).prefault({}),
  log: z.strictObject(logFields, noSection).prefault({}),
});
export type ConfigFields = z.output<typeof configSchema>;
