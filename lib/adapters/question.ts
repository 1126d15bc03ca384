// Owns: one HTTP/1.1 question on a connection of its own, to TCP or a unix socket. Must not: keep connections, use proxies, know Envoy.
// Hand-made because fetch obeys HTTP_PROXY even for 127.0.0.1 and pools; a draining Envoy answers for ever on old connections.

import type { AdminAddress } from "../core/epoch.ts";
import type { SilenceWhy } from "../core/event.ts";
import { reason } from "./content.ts";

export type Reply =
  | { readonly kind: "reply"; readonly status: number; readonly body: string }
  /** As `IdentityAnswer` has it: `refused` nobody listens, `timeout` somebody listens and says nothing, `garbage` not HTTP. */
  | { readonly kind: "none"; readonly why: SilenceWhy; readonly detail: string };

export interface Question {
  readonly method: "GET" | "POST";
  /** Path and query. */
  readonly target: string;
  /** For everything together: connect, send, receive. */
  readonly timeoutMs: number;
  readonly maxBytes: number;
}

export async function ask(address: AdminAddress, question: Question): Promise<Reply> {
  const said = `${question.method} ${question.target} of ${showAddress(address)}`;
  const exchange = new Exchange(address, question);
  let timer: ReturnType<typeof setTimeout> | undefined;
  const late = new Promise<Reply>((resolve) => {
    timer = setTimeout(() => {
      exchange.close();
      resolve({ kind: "none", why: "timeout", detail: `${said}: no answer within ${question.timeoutMs} ms` });
    }, question.timeoutMs);
  });
  try {
    return await Promise.race([exchange.run().catch((error) => failed(said, error, exchange.received)), late]);
  } finally {
    clearTimeout(timer);
    exchange.close();
  }
}

export function showAddress(address: AdminAddress): string {
  if (address.kind === "unix") return `unix:${address.path}`;
  return address.host.includes(":") ? `[${address.host}]:${address.port}` : `${address.host}:${address.port}`;
}

class Exchange {
  /** Bytes that came, for telling a given up listener from one that talks nonsense. */
  received = 0;
  private connection: Deno.Conn | undefined;
  private closed = false;

  constructor(private readonly address: AdminAddress, private readonly question: Question) {}

  async run(): Promise<Reply> {
    const connection = await connect(this.address);
    this.connection = connection;
    // The time was over while connecting: a connect can't be taken back, its connection can.
    if (this.closed) connection.close();
    const { method, target } = this.question;
    const host = this.address.kind === "tcp" ? showAddress(this.address) : "localhost";
    const request = `${method} ${target} HTTP/1.1\r\nhost: ${host}\r\nconnection: close\r\ncontent-length: 0\r\n\r\n`;
    await writeAll(connection, new TextEncoder().encode(request));
    return parseReply(await this.readAll(connection));
  }

  close(): void {
    if (this.closed) return;
    this.closed = true;
    this.connection?.close();
  }

  /** Until the other side closes: `connection: close` was asked for. */
  private async readAll(connection: Deno.Conn): Promise<Uint8Array> {
    let all = new Uint8Array(16_384);
    for (;;) {
      if (this.received === all.length) {
        if (all.length >= this.question.maxBytes) {
          throw new Garbage(`an answer of more than ${this.question.maxBytes} bytes`);
        }
        const more = new Uint8Array(Math.min(all.length * 4, this.question.maxBytes));
        more.set(all);
        all = more;
      }
      const count = await connection.read(all.subarray(this.received));
      if (count === null) return all.subarray(0, this.received);
      this.received += count;
    }
  }
}

class Garbage extends Error {}

function connect(address: AdminAddress): Promise<Deno.Conn> {
  return address.kind === "tcp"
    ? Deno.connect({ hostname: address.host, port: address.port })
    : Deno.connect({ transport: "unix", path: address.path });
}

async function writeAll(connection: Deno.Conn, bytes: Uint8Array): Promise<void> {
  for (let sent = 0; sent < bytes.length;) sent += await connection.write(bytes.subarray(sent));
}

function failed(said: string, error: unknown, received: number): Reply {
  const text = reason(error);
  const none = (why: SilenceWhy): Reply => ({ kind: "none", why, detail: `${said}: ${text}` });
  if (error instanceof Deno.errors.ConnectionRefused || error instanceof Deno.errors.NotFound) return none("refused");
  // A listener that closes resets what waited in its backlog: nobody listens any more.
  const reset = error instanceof Deno.errors.ConnectionReset || error instanceof Deno.errors.BrokenPipe;
  if (reset && received === 0) return none("refused");
  // EAGAIN of a unix connect: the backlog of a stopped process is full.
  if (error instanceof Deno.errors.WouldBlock || error instanceof Deno.errors.TimedOut) return none("timeout");
  return none(OWN_LIMITS.test(String(error)) ? "unasked" : "garbage");
}

/** ENOMEM, ENFILE, EMFILE, EADDRNOTAVAIL: this process could not ask, which says nothing about Envoy. */
const OWN_LIMITS = /\(os error (?:12|23|24|99)\)/;

/** A whole HTTP/1.1 answer, plain, chunked, or ended by the end of the connection. */
export function parseReply(bytes: Uint8Array): Reply {
  const end = findHeaderEnd(bytes);
  const head = new TextDecoder().decode(bytes.subarray(0, end < 0 ? 200 : end));
  const status = /^HTTP\/1\.[01] (\d{3})(?: |\r|$)/.exec(head)?.[1];
  if (status === undefined || end < 0) {
    throw new Garbage(
      bytes.length === 0 ? "closed without an answer" : `no HTTP answer but ${JSON.stringify(head.slice(0, 60))}`,
    );
  }
  const headers = new Map(
    head.split("\r\n").slice(1).map((line) => {
      const colon = line.indexOf(":");
      return [line.slice(0, colon).toLowerCase(), line.slice(colon + 1).trim()] as const;
    }),
  );
  let body = bytes.subarray(end + 4);
  if (headers.get("transfer-encoding")?.toLowerCase() === "chunked") body = unchunk(body);
  else {
    const length = headers.get("content-length");
    if (length !== undefined && body.length < Number(length)) {
      throw new Garbage(`${body.length} of ${length} bytes of an answer`);
    }
  }
  return { kind: "reply", status: Number(status), body: new TextDecoder().decode(body) };
}

function findHeaderEnd(bytes: Uint8Array): number {
  for (let i = bytes.indexOf(13); i >= 0; i = bytes.indexOf(13, i + 1)) {
    if (bytes[i + 1] === 10 && bytes[i + 2] === 13 && bytes[i + 3] === 10) return i;
  }
  return -1;
}

function unchunk(bytes: Uint8Array): Uint8Array<ArrayBuffer> {
  const whole = new Uint8Array(bytes.length);
  let filled = 0;
  for (let at = 0;;) {
    const lineEnd = bytes.indexOf(13, at);
    const size = parseInt(new TextDecoder().decode(bytes.subarray(at, lineEnd)), 16);
    if (lineEnd < 0 || !Number.isInteger(size) || lineEnd + 2 + size > bytes.length) {
      throw new Garbage("an answer cut in a chunk");
    }
    if (size === 0) return whole.subarray(0, filled);
    whole.set(bytes.subarray(lineEnd + 2, lineEnd + 2 + size), filled);
    filled += size;
    at = lineEnd + 2 + size + 2;
  }
}
