// Owns: one HTTP/1.1 connection that carries one request, within bounds of size and time.
// Must not: know routes, or what listens. (node:http listens on TCP instead of a unix socket on Deno 2.6.10.)

import { problemResponse } from "./problem_json.ts";
import { readBodyPieces } from "./request_body.ts";
import { type BadRequest, headEnd, type IsStreamed, parseHead, type RequestHead } from "./request_head.ts";

export interface ConnectionLimits {
  readonly headBytes: number;
  readonly bodyBytes: number;
  /** From the connection to the last byte of the request. */
  readonly requestMs: number;
  /** For a client to take one piece of the answer. */
  readonly writeMs: number;
  /** Silence in the middle of a streamed body. */
  readonly stallMs: number;
  /** Whose body goes to the handler as it comes; absent: nobody's. */
  readonly isStreamed?: IsStreamed;
}

/** What is needed of a connection; Deno's own have it. */
export interface Connection {
  read(buffer: Uint8Array): Promise<number | null>;
  write(bytes: Uint8Array): Promise<number>;
  close(): void;
}

/** `gone`: the client has left or the server closes; what waits or streams ends then. */
export type Handler = (request: Request, gone: AbortSignal) => Response | Promise<Response>;

interface Received {
  readonly head: RequestHead;
  /** Of a streamed one: what came along with the head. */
  readonly body: Uint8Array;
  readonly isStreamed: boolean;
}

/** Larger than for heads: a body of 100 MB comes in some thousand pieces. */
const streamBufferBytes = 65_536;
/** What a client goes on sending after an answer that came early is not looked at; closing at once could take the answer along. */
const lingerMs = 2_000;

const encoder = new TextEncoder();

/** Never rejects; the connection is closed afterwards. `closing` ends streams and waits. */
export async function serveConnection(
  connection: Connection,
  handler: Handler,
  limits: ConnectionLimits,
  closing: AbortSignal,
): Promise<void> {
  const gone = new AbortController();
  let receiving = true;
  let unread = false;
  const onClosing = () => {
    gone.abort();
    if (receiving) close(connection);
  };
  closing.addEventListener("abort", onClosing);
  try {
    const received = await within(limits.requestMs, connection, () => receive(connection, limits));
    receiving = false;
    if (received === undefined) return;
    if ("head" in received && received.isStreamed) {
      receiving = unread = true;
      const body = streamOf(connection, received, limits, () => {
        receiving = unread = false;
        void noticeEnd(connection, gone, limits.bodyBytes);
      });
      await send(connection, await answerStreamed(received, body, handler, gone), limits.writeMs);
      if (unread) await within(lingerMs, connection, () => readToTheEnd(connection));
      return;
    }
    await send(connection, await answer(received, connection, handler, limits, gone), limits.writeMs);
  } catch {
    // The client has gone or is too slow: nobody is left to answer.
  } finally {
    closing.removeEventListener("abort", onClosing);
    gone.abort();
    close(connection);
  }
}

async function answer(
  received: Received | BadRequest,
  connection: Connection,
  handler: Handler,
  limits: ConnectionLimits,
  gone: AbortController,
): Promise<Response> {
  if ("status" in received) return problemResponse({ ...received, name: "bad_request" });
  void noticeEnd(connection, gone, limits.bodyBytes);
  const request = toRequest(received);
  if (request !== undefined) return await handler(request, gone.signal);
  return problemResponse({ status: 400, name: "bad_request", detail: `${received.head.method} is not served` });
}

/** Undefined where the client says nothing. */
async function receive(connection: Connection, limits: ConnectionLimits): Promise<Received | BadRequest | undefined> {
  let bytes = new Uint8Array(0);
  let end = -1;
  while (end < 0) {
    const more = await readSome(connection);
    if (more === undefined) return undefined;
    bytes = joined(bytes, more);
    end = headEnd(bytes);
    if ((end < 0 ? bytes.length : end) > limits.headBytes) {
      return { status: 431, detail: `expected a head of at most ${limits.headBytes} bytes` };
    }
  }
  const head = parseHead(bytes.subarray(0, end), limits.bodyBytes, limits.isStreamed);
  if ("status" in head) return head;
  if (limits.isStreamed?.(head.method, head.target) === true) {
    return { head, body: bytes.slice(end), isStreamed: true };
  }
  if (head.expectsContinue) await writeAll(connection, encoder.encode("HTTP/1.1 100 Continue\r\n\r\n"));
  let body = bytes.subarray(end);
  while (body.length < head.bodyBytes) {
    const more = await readSome(connection);
    if (more === undefined) return undefined;
    body = joined(body, more);
  }
  return { head, body: body.slice(0, head.bodyBytes), isStreamed: false };
}

/** Methods that fetch forbids (TRACE, TRACK, CONNECT) go by a name that no route has, and are answered as any other. */
const forbidden = new Set(["CONNECT", "TRACE", "TRACK"]);
/** What stands behind the head of these says nothing. */
const bodiless = new Set(["GET", "HEAD"]);

function toRequest({ head, body }: Received, stream?: ReadableStream<Uint8Array>): Request | undefined {
  try {
    return new Request(`http://epochd${head.target}`, {
      method: forbidden.has(head.method) ? `x-${head.method}` : head.method,
      headers: head.headers,
      ...(stream !== undefined
        ? { body: stream }
        : body.length === 0 || bodiless.has(head.method)
        ? {}
        : { body: new Uint8Array(body) }),
    });
  } catch {
    return undefined;
  }
}

async function answerStreamed(
  received: Received,
  body: ReadableStream<Uint8Array>,
  handler: Handler,
  gone: AbortController,
): Promise<Response> {
  const request = toRequest(received, body);
  if (request !== undefined) return await handler(request, gone.signal);
  return problemResponse({ status: 400, name: "bad_request", detail: `${received.head.method} is not served` });
}

/** Nothing is read before it is asked for: who is not let in sends no hundred megabytes. */
function streamOf(
  connection: Connection,
  { head, body }: Received,
  { stallMs }: ConnectionLimits,
  ended: () => void,
): ReadableStream<Uint8Array> {
  const read = () => within(stallMs, connection, () => readSome(connection, streamBufferBytes));
  let pieces: AsyncGenerator<Uint8Array, void, void> | undefined;
  return new ReadableStream<Uint8Array>({
    async pull(controller) {
      if (pieces === undefined) {
        if (head.expectsContinue) await writeAll(connection, encoder.encode("HTTP/1.1 100 Continue\r\n\r\n"));
        pieces = readBodyPieces(head, body, read);
      }
      const next = await pieces.next();
      if (!next.done) return controller.enqueue(next.value);
      ended();
      controller.close();
    },
  }, { highWaterMark: 0 });
}

async function readToTheEnd(connection: Connection): Promise<void> {
  while (await readSome(connection, streamBufferBytes) !== undefined);
}

/** Reads on, so that a client that leaves ends what waits for it. One request a connection: the rest is not looked at. */
async function noticeEnd(connection: Connection, gone: AbortController, mostBytes: number): Promise<void> {
  try {
    for (let bytes = 0; bytes <= mostBytes;) {
      const more = await readSome(connection);
      if (more === undefined) return;
      bytes += more.length;
    }
    close(connection);
  } catch {
    /* Closed on this side. */
  } finally {
    gone.abort();
  }
}

async function send(connection: Connection, response: Response, writeMs: number): Promise<void> {
  const stream = response.headers.get("content-type")?.startsWith("text/event-stream") ?? false;
  const whole = stream ? undefined : new Uint8Array(await response.arrayBuffer());
  response.headers.set("connection", "close");
  const notModified = 304;
  if (whole !== undefined && response.status !== notModified) {
    response.headers.set("content-length", String(whole.length));
  }
  let head = `HTTP/1.1 ${response.status} ${response.statusText || reasonOf(response.status)}\r\n`;
  for (const [name, value] of response.headers) head += `${name}: ${value}\r\n`;
  const first = encoder.encode(`${head}\r\n`);
  await within(writeMs, connection, () => writeAll(connection, whole === undefined ? first : joined(first, whole)));
  if (whole !== undefined || response.body === null) return;
  const reader = response.body.getReader();
  try {
    for (let piece = await reader.read(); !piece.done; piece = await reader.read()) {
      const bytes = piece.value;
      await within(writeMs, connection, () => writeAll(connection, bytes));
    }
  } finally {
    await reader.cancel().catch(() => {});
  }
}

/** Rejects when the time is over, and closes the connection. */
async function within<T>(boundMs: number, connection: Connection, action: () => Promise<T>): Promise<T> {
  let timer: ReturnType<typeof setTimeout> | undefined;
  // Closing ends a read, but not a write that is under way (Deno 2.6.10): that one is left to its client.
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => {
      close(connection);
      reject(new Error(`not within ${boundMs} ms`));
    }, boundMs);
  });
  try {
    return await Promise.race([action(), late]);
  } finally {
    clearTimeout(timer);
  }
}

async function readSome(connection: Connection, most = 4096): Promise<Uint8Array | undefined> {
  const buffer = new Uint8Array(most);
  const count = await connection.read(buffer);
  return count === null ? undefined : buffer.subarray(0, count);
}

async function writeAll(connection: Connection, bytes: Uint8Array): Promise<void> {
  for (let done = 0; done < bytes.length;) done += await connection.write(bytes.subarray(done));
}

function joined(a: Uint8Array, b: Uint8Array): Uint8Array<ArrayBuffer> {
  const whole = new Uint8Array(a.length + b.length);
  whole.set(a);
  whole.set(b, a.length);
  return whole;
}

function reasonOf(status: number): string {
  return status < 300 ? "OK" : status < 500 ? "Refused" : "Failed";
}

function close(connection: Connection): void {
  try {
    connection.close();
  } catch { /* Closed before. */ }
}
