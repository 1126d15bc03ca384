// Owns: the status page as it is sent: one file, its policy, its ETag. Must not: hold data: what it shows it asks for by itself.

import { digestOf } from "../../runtime/config_summary.ts";
import { script } from "./script.ts";
import { style } from "./style.ts";

interface Page {
  readonly html: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly etag: string;
}

const icon =
  "data:image/svg+xml,%3Csvg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 16 16'%3E%3Crect x='1' y='2' width='10' height='5' rx='1' fill='%23e0a11b'/%3E%3Crect x='5' y='9' width='10' height='5' rx='1' fill='%232c9c6a'/%3E%3C/svg%3E";

const html = `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>epochd</title>
<link rel="icon" href="${icon}">
<style>${style}</style>
</head>
<body>
<header>
<h1>epochd</h1>
<span class="soft" id="what"></span>
<span class="badge warn push" id="link" role="status">connecting</span>
<a class="soft" href="reference">API</a>
</header>
<main>
<p class="notice bad" id="problem" role="alert" hidden></p>
<form class="card" id="login" hidden>
<span id="why"></span>
<input id="key" type="password" autocomplete="off" aria-label="API key" placeholder="epochd_...">
<button>Show</button>
</form>
<div id="services"><noscript>This page needs JavaScript; <code>epochd status --watch</code> shows the same.</noscript></div>
<section class="card">
<h2>Last handoffs</h2>
<div class="scroll"><table>
<thead><tr><th>began</th><th>epochs</th><th>outcome</th><th>by</th><th>LIVE after</th><th>drained</th><th>connections</th><th></th></tr></thead>
<tbody id="handoffs"></tbody>
</table></div>
</section>
<section class="card">
<h2>Events</h2>
<div class="log" id="events" tabindex="0"></div>
</section>
</main>
<script>${script}</script>
</body>
</html>
`;

let made: Promise<Page> | undefined;

export function statusPage(): Promise<Page> {
  return made ??= make();
}

async function make(): Promise<Page> {
  const [scriptHash, styleHash] = await Promise.all([sha256Base64(script), sha256Base64(style)]);
  // Nothing but what stands in this file runs, and it asks nobody but this listener.
  const policy = [
    "default-src 'none'",
    `script-src 'sha256-${scriptHash}'`,
    `style-src 'sha256-${styleHash}'`,
    "connect-src 'self'",
    "img-src data:",
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
  ].join("; ");
  return {
    html,
    etag: digestOf(html),
    headers: {
      "content-type": "text/html; charset=utf-8",
      "content-security-policy": policy,
      "x-content-type-options": "nosniff",
      "referrer-policy": "no-referrer",
      "cross-origin-opener-policy": "same-origin",
    },
  };
}

async function sha256Base64(text: string): Promise<string> {
  const digest = await crypto.subtle.digest("SHA-256", new TextEncoder().encode(text));
  return btoa(String.fromCharCode(...new Uint8Array(digest)));
}
