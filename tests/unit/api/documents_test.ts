import assert from "node:assert/strict";
import { binaryHandlers } from "../../../lib/api/binary_routes.ts";
import { configHandlers } from "../../../lib/api/config_routes.ts";
import type { ApiContext } from "../../../lib/api/context.ts";
import { documentHandlers } from "../../../lib/api/document_routes.ts";
import { observedHandlers } from "../../../lib/api/observed_routes.ts";
import { openApi } from "../../../lib/api/openapi.ts";
import { operations } from "../../../lib/api/operation.ts";
import { serviceHandlers } from "../../../lib/api/service_routes.ts";
import { upgradeHandlers } from "../../../lib/api/upgrade_routes.ts";
import { configJsonSchema } from "../../../lib/config/json_schema.ts";
import { configFieldRows } from "../../../lib/config/field_rows.ts";
import { request, serve } from "./serving.ts";

type Json = Record<string, Record<string, unknown>>;

Deno.test("every operation has a handler, an id of its own and answers, and no handler is without an operation", () => {
  const context = {} as ApiContext;
  const handlers = {
    ...serviceHandlers(context),
    ...configHandlers(context),
    ...binaryHandlers(context),
    ...documentHandlers(),
    ...observedHandlers(context),
    ...upgradeHandlers(context),
  };
  assert.deepEqual(operations.map(({ id }) => id).sort(), Object.keys(handlers).sort());
});

Deno.test("openapi.json is OpenAPI 3.1 whose references lead somewhere, and has every operation", () => {
  const document = openApi() as unknown as Json & { openapi: string };
  assert.equal(document.openapi, "3.1.0");
  const schemas = Object.keys((document.components as unknown as Json).schemas!);
  for (const [, name] of JSON.stringify(document).matchAll(/"#\/components\/schemas\/(\w+)"/g)) {
    assert.ok(schemas.includes(name!), name);
  }
  for (const { method, path, id } of operations) {
    const operation = document.paths?.[path] as Json | undefined;
    assert.equal(operation?.[method.toLowerCase()]?.operationId, id);
  }
});

Deno.test("the schema of epochd.yaml says of every field how a change takes effect, and what its flag is", () => {
  const schema = configJsonSchema() as unknown as { properties: Json };
  const service = (schema.properties.services?.additionalProperties as { properties: Json }).properties;
  for (const { field, flag, lifecycle, description } of configFieldRows()) {
    const [section, key] = [field.split(".")[0]!, field.split(".").at(-1)!];
    const described = section === "services" ? service[key] : (schema.properties[section]?.properties as Json)[key];
    assert.deepEqual([described?.["x-lifecycle"], described?.description, described?.["x-flag"]], [
      lifecycle,
      description,
      flag,
    ]);
  }
  assert.equal(service.drain_time?.["x-unit"], "ms");
  assert.equal(service.drain_time?.default, "30s");
  assert.ok(!JSON.stringify(schema).includes("placeholder"));
});

Deno.test("GET openapi.json, the schema and the reference page, which needs nothing from elsewhere", async () => {
  await using api = await serve();
  const openapi = await request(api.path, "GET", "/openapi.json");
  assert.deepEqual(JSON.parse(openapi.body), openApi());
  const schema = await request(api.path, "GET", "/v1/config/schema");
  assert.equal(schema.headers.get("content-type"), "application/schema+json");
  assert.deepEqual(JSON.parse(schema.body), configJsonSchema());
  const page = await request(api.path, "GET", "/reference");
  assert.match(page.headers.get("content-type") ?? "", /^text\/html/);
  for (const { path } of operations) assert.ok(page.body.includes(`<code>${path}</code>`), path);
  assert.doesNotMatch(page.body, /<script|src=|url\(|@import|https?:\/\//);
});
