// Owns: what the API answers out of what was seen: metrics, and the page that shows it. Must not: load them before they are asked for.

import type { ApiContext, Handle } from "./context.ts";
import { withEtag } from "./parameters.ts";

export function observedHandlers({ observed }: ApiContext): Readonly<Record<string, Handle>> {
  return {
    metrics: async () => {
      const { text, type } = await observed.metrics();
      return new Response(text, { headers: { "content-type": type, "cache-control": "no-store" } });
    },
    page: async ({ request }) => {
      const { statusPage } = await import("./page/page.ts");
      const { html, headers, etag } = await statusPage();
      return withEtag(request, etag, new Response(html, { headers }));
    },
  };
}
