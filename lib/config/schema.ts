// Owns: the whole of epochd.yaml: services, API and log. Must not: read it, or hold rules over several fields.

import * as z from "zod";
import { defaultApiSocket } from "./api_socket.ts";
import { describeFields, field } from "./field.ts";
import { clientRole, flagSwitch, listenAddress, oneOf, path } from "./scalars.ts";
import { serviceSchema } from "./service_schema.ts";

/** Of the listeners: they are made once. */
const staticWhy = "the listeners of the API are made when epochd starts";

export const apiFields = {
  socket: field(path().prefault(defaultApiSocket), {
    description: "Unix socket of the API; EPOCHD_API_SOCKET sets it too",
    lifecycle: "static",
    staticWhy,
    placeholder: "FILE",
    flag: "api-socket",
  }),
  listen: field(listenAddress().optional(), {
    description:
      "Address where the API listens over TCP as well: loopback or with TLS, and with client certificates or keys",
    lifecycle: "static",
    staticWhy,
    placeholder: "ADDRESS",
    flag: "api-listen",
    defaultText: "none",
  }),
  tls_cert: field(path().optional(), {
    description: "Certificate chain (PEM) of the API over TCP; read again when it changes",
    lifecycle: "static",
    staticWhy,
    placeholder: "FILE",
    flag: "api-tls-cert",
    defaultText: "none",
  }),
  tls_key: field(path().optional(), {
    description: "Private key (PEM) of --api-tls-cert; read again when it changes",
    lifecycle: "static",
    staticWhy,
    placeholder: "FILE",
    flag: "api-tls-key",
    defaultText: "none",
  }),
  client_ca: field(path().optional(), {
    description:
      "Authority (PEM) that client certificates are verified by, which are then required; read again when it changes",
    lifecycle: "static",
    staticWhy,
    placeholder: "FILE",
    flag: "api-client-ca",
    defaultText: "none",
  }),
  client_roles: field(z.array(clientRole(), { error: "expected a list" }).prefault([]), {
    description:
      "A role (read, operate or admin) and the subject or alternative name of the client certificates that have it",
    lifecycle: "dynamic",
    placeholder: "ROLE:NAME",
    flag: "api-client-role",
  }),
  keys_file: field(path().optional(), {
    description: "File with the hashes of API keys, as `epochd key create` writes it; read again when it changes",
    lifecycle: "static",
    staticWhy,
    placeholder: "FILE",
    flag: "api-keys-file",
    defaultText: "none",
  }),
  persist: field(flagSwitch().prefault(true), {
    description: "Write changes that come by the API back into epochd.yaml",
    lifecycle: "dynamic",
    flag: "api-persist",
  }),
} as const;

export const logFields = {
  format: field(oneOf("auto", "text", "json").prefault("auto"), {
    description: "Form of epochd's own log: auto is text on a terminal, else json",
    lifecycle: "dynamic",
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
