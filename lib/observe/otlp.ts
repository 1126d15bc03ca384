// Owns: sending traces to a collector: OTLP over HTTP as JSON, bounded in time and in what waits. Must not: hold anything up, or tell the
// same failure twice.

import http from "node:http";
import type { LedgerEntry } from "./ledger.ts";
import type { OtelSettings } from "./otel_settings.ts";
import { attribute, type Span, spansOf } from "./trace.ts";
import { version } from "./version.ts";

export interface OtlpOptions extends OtelSettings {
  readonly problem: (problem: string) => void;
  readonly retryMs?: number;
}

/** Traces that wait while the collector is away; the oldest goes first. */
const mostWaiting = 64;
const defaultRetryMs = 30_000;

export class OtlpExporter {
  #waiting: (readonly Span[])[] = [];
  #sending: Promise<void> | undefined;
  #retry: ReturnType<typeof setTimeout> | undefined;
  #told = false;

  constructor(private readonly options: OtlpOptions) {}

  send(entry: LedgerEntry): void {
    this.#waiting.push(spansOf(entry));
    if (this.#waiting.length > mostWaiting) this.#waiting.shift();
    clearTimeout(this.#retry);
    this.#sending ??= this.#drain();
  }

  /** Resolves when what waits was sent, or could not be. */
  async close(): Promise<void> {
    clearTimeout(this.#retry);
    if (this.#waiting.length > 0) this.#sending ??= this.#drain();
    await this.#sending;
    clearTimeout(this.#retry);
  }

  async #drain(): Promise<void> {
    while (this.#waiting.length > 0) {
      const traces = this.#waiting;
      this.#waiting = [];
      const failed = await this.#post(traces.flat());
      if (failed === undefined) {
        this.#told = false;
        continue;
      }
      if (failed.again) this.#waiting = [...traces, ...this.#waiting].slice(-mostWaiting);
      if (!this.#told) this.options.problem(`send traces to ${this.options.endpoint}: ${failed.why}`);
      this.#told = true;
      if (failed.again) {
        this.#retry = setTimeout(() => this.#sending ??= this.#drain(), this.options.retryMs ?? defaultRetryMs);
      }
      break;
    }
    this.#sending = undefined;
  }

  async #post(spans: readonly Span[]): Promise<{ readonly why: string; readonly again: boolean } | undefined> {
    const { endpoint, headers, timeoutMs, resource } = this.options;
    const body = JSON.stringify({
      resourceSpans: [{
        resource: { attributes: Object.entries(resource).map(([key, value]) => attribute(key, value)) },
        scopeSpans: [{ scope: { name: "epochd", version }, spans }],
      }],
    });
    const all = { ...headers, "content-type": "application/json" };
    try {
      const status = isLoopback(endpoint)
        ? await postDirectly(endpoint, all, body, timeoutMs)
        : await postByFetch(endpoint, all, body, timeoutMs);
      if (status < 300) return undefined;
      // What a collector refuses for good (a wrong key, a wrong path) it refuses again.
      return { why: `status ${status}`, again: status === 429 || status >= 500 };
    } catch (error) {
      const why = error instanceof Error && error.name === "TimeoutError"
        ? `no answer within ${timeoutMs} ms`
        : messageOf(error);
      return { why, again: true };
    }
  }
}

/** A proxy is asked for collectors elsewhere, as HTTP_PROXY and NO_PROXY say. */
async function postByFetch(
  url: string,
  headers: Record<string, string>,
  body: string,
  timeoutMs: number,
): Promise<number> {
  const response = await fetch(url, {
    method: "POST",
    headers,
    body,
    redirect: "error",
    signal: AbortSignal.timeout(timeoutMs),
  });
  await response.body?.cancel();
  return response.status;
}

/** Deno's fetch would ask HTTP_PROXY for 127.0.0.1 as well. */
function postDirectly(url: string, headers: Record<string, string>, body: string, timeoutMs: number): Promise<number> {
  return new Promise((resolve, reject) => {
    const length = String(new TextEncoder().encode(body).length);
    const request = http.request(url, {
      method: "POST",
      agent: false,
      headers: { ...headers, "content-length": length },
    });
    const timer = setTimeout(() => {
      request.destroy();
      reject(Object.assign(new Error("timeout"), { name: "TimeoutError" }));
    }, timeoutMs);
    request.once("error", (error: Error) => {
      clearTimeout(timer);
      reject(error);
    });
    request.once("response", (response) => {
      clearTimeout(timer);
      response.destroy();
      resolve(response.statusCode ?? 0);
    });
    request.end(body);
  });
}

function isLoopback(url: string): boolean {
  const { protocol, hostname } = new URL(url);
  return protocol === "http:" && (hostname === "localhost" || hostname === "[::1]" || hostname.startsWith("127."));
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
