// Owns: the API as OpenAPI 3.1, made of its operations and schemas. Must not: describe an operation itself.

import * as z from "zod";
import { describe } from "../config/json_schema.ts";
import { version } from "../observe/version.ts";
import { type Answer, type Operation, operations, problemType, type SchemaName } from "./operation.ts";
import { schemas } from "./schemas.ts";

type Json = Record<string, unknown>;

export function openApi(): Json {
  const paths: Record<string, Json> = {};
  for (const operation of operations) {
    paths[operation.path] ??= {};
    paths[operation.path]![operation.method.toLowerCase()] = describeOperation(operation);
  }
  return {
    openapi: "3.1.0",
    info: {
      title: "epochd",
      version,
      description:
        "Configuration and hot restarts of the Envoys of one supervisor. Over the unix socket nobody logs in; over TCP a key or a client certificate says who asks.",
      license: { name: "Apache-2.0", identifier: "Apache-2.0" },
    },
    servers: [{ url: "/" }],
    security: [{ key: [] }, { certificate: [] }, {}],
    paths,
    components: {
      schemas: Object.fromEntries(Object.entries(schemas).map(([name, schema]) => [name, jsonSchema(schema)])),
      securitySchemes: {
        key: { type: "http", scheme: "bearer", description: "an API key, made by `epochd key create`" },
        certificate: { type: "mutualTLS" },
      },
    },
  };
}

function jsonSchema(schema: z.ZodType): Json {
  const { $schema: _, ...json } = z.toJSONSchema(schema, {
    io: "input",
    unrepresentable: "any",
    override: ({ zodSchema, jsonSchema }) => describe(jsonSchema, z.globalRegistry.get(zodSchema)),
  });
  return json;
}

function describeOperation(
  { id, summary, role, query = {}, headers = [], path, body, stream, answers }: Operation,
): Json {
  const parameters = [
    ...[...path.matchAll(/\{(\w+)\}/g)].map(([, name]) => ({
      name,
      in: "path",
      required: true,
      schema: { type: "string", minLength: 1 },
    })),
    ...Object.entries(query).map(([name, parameter]) => ({
      name,
      in: "query",
      description: parameter.description,
      schema: "choices" in parameter
        ? { type: "string", enum: parameter.choices, default: parameter.default }
        : { type: "string", pattern: parameter.pattern },
    })),
    ...headers.map((name) => ({ name, in: "header", ...headerOf[name] })),
  ];
  const responses = Object.entries({ ...answers, ...always }).map((
    [status, answer],
  ) => [status, describeAnswer(answer)]);
  return {
    operationId: id,
    summary,
    "x-role": role,
    ...(parameters.length === 0 ? {} : { parameters }),
    ...(body === undefined ? {} : {
      requestBody: {
        required: body.required,
        content: Object.fromEntries(body.types.map((type) => [type, { schema: reference(body.schema) }])),
      },
    }),
    ...(stream === undefined ? {} : { requestBody: { required: true, content: { [stream.type]: {} } } }),
    responses: Object.fromEntries(responses),
  };
}

/** What any request may get: from the listener, or from whoever lets in. */
const always: Readonly<Record<number, Answer>> = {
  ...Object.fromEntries(
    ([
      [400, "no HTTP, or a wrong parameter"],
      [401, "nobody is known by this key or certificate"],
      [403, "the role is not enough"],
      [
        413,
        "the body is too large",
      ],
      [431, "the head is too large"],
      [503, "the API closes, or has too much to do"],
    ] as const)
      .map(([status, description]) => [status, { description, schema: "Problem", type: problemType }] as const),
  ),
};

const headerOf: Readonly<Record<NonNullable<Operation["headers"]>[number], Json>> = {
  "epochd-signature": {
    description: "the minisign signature file, in base64; needed where binary_public_keys has a key",
    schema: { type: "string", maxLength: 8192 },
  },
  "if-match": {
    description: "ETags; the request counts only where one of them is what runs",
    schema: { type: "string" },
  },
  "if-none-match": { description: "ETags; 304 where one of them is what there is", schema: { type: "string" } },
  "idempotency-key": {
    description: "the same key asks for nothing new, and gets the outcome of what it asked for first",
    schema: { type: "string", minLength: 1, maxLength: 255 },
  },
  "last-event-id": { description: "goes on after this event", schema: { type: "string" } },
};

function describeAnswer({ description, schema, type }: Answer): Json {
  if (type === undefined) return { description };
  const shape = schema === undefined
    ? (type.includes("json") ? { type: "object" } : { type: "string" })
    : reference(schema);
  return { description, content: { [type]: { schema: shape } } };
}

function reference(name: SchemaName): Json {
  return { $ref: `#/components/schemas/${name}` };
}
