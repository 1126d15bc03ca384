// Owns: what describes the API and the configuration: JSON Schema, OpenAPI, the reference page. Must not: load them before they
// are asked for.

import { digestOf } from "../runtime/config_summary.ts";
import type { Handle } from "./context.ts";
import { withEtag } from "./parameters.ts";

export function documentHandlers(): Readonly<Record<string, Handle>> {
  return {
    schema: once("application/schema+json", async () => {
      const { configJsonSchema } = await import("../config/json_schema.ts");
      return `${JSON.stringify(configJsonSchema(), undefined, 2)}\n`;
    }),
    openapi: once("application/json", async () => {
      const { openApi } = await import("./openapi.ts");
      return `${JSON.stringify(openApi(), undefined, 2)}\n`;
    }),
    reference: once("text/html; charset=utf-8", async () => {
      const { referencePage } = await import("./reference.ts");
      return referencePage();
    }),
  };
}

/** Made at the first question, and kept: it is the same for the life of this program. */
function once(type: string, make: () => Promise<string>): Handle {
  let made: Promise<{ readonly text: string; readonly etag: string }> | undefined;
  return async ({ request }) => {
    made ??= make().then((text) => ({ text, etag: digestOf(text) }));
    const { text, etag } = await made;
    return withEtag(request, etag, new Response(text, { headers: headersOf(type) }));
  };
}

function headersOf(type: string): Record<string, string> {
  if (!type.startsWith("text/html")) return { "content-type": type };
  // No script, nothing from elsewhere: the page is text and its own style.
  return { "content-type": type, "content-security-policy": "default-src 'none'; style-src 'unsafe-inline'" };
}
