// Owns: one request to a supervisor over its unix socket, and the answer's head. Must not: know routes, or use a proxy.
// (node:http's client leaves unix connections open after destroy() on Deno 2.6.10.)

import { headEnd } from "./request_head.ts";

export interface Question {
  readonly method: "GET" | "POST" | "PUT" | "PATCH";
  readonly target: string;
  readonly headers?: Readonly<Record<string, string>>;
  /** JSON. */
  readonly body?: string;
  /** Bytes instead, sent as they come; an answer that comes before their end ends them. Without `bytes`, in chunks. */
  readonly stream?: { readonly pieces: AsyncIterable<Uint8Array>; readonly bytes?: number };
  /** For the head of the answer to come; absent: as long as it takes. */
  readonly boundMs?: number;
}

export interface Incoming {
  readonly status: number;
  /** Ends with the connection. */
  readonly pieces: AsyncIterable<string>;
  close(): void;
}

/** Nobody answers; `why` is for people. */
export interface Absent {
  readonly why: string;
}

const mostHeadBytes = 65_536;

export async function ask(socket: string, question: Question): Promise<Incoming | Absent> {
  let connection: Deno.Conn;
  try {
    connection = await Deno.connect({ transport: "unix", path: socket });
  } catch (error) {
    return { why: whyAbsent(socket, error) };
  }
  const { boundMs } = question;
  let late = false;
  const bound = () =>
    boundMs === undefined ? undefined : setTimeout(() => {
      late = true;
      close(connection);
    }, boundMs);
  let timer = question.stream === undefined ? bound() : undefined;
  try {
    await writeAll(connection, requestBytes(question));
    if (question.stream === undefined) return await readHead(connection);
    const head = readHead(connection);
    await sendStream(connection, question.stream, head);
    timer = bound();
    return await head;
  } catch (error) {
    close(connection);
    if (late) return { why: `the supervisor at ${socket} has not answered within ${boundMs! / 1000} s` };
    return { why: `the supervisor at ${socket} broke the connection: ${messageOf(error)}` };
  } finally {
    clearTimeout(timer);
  }
}

/** What the source says of its own failure is not the connection's: it ends the request, and is told as it is. */
async function sendStream(
  connection: Deno.Conn,
  { pieces, bytes }: NonNullable<Question["stream"]>,
  head: Promise<unknown>,
): Promise<void> {
  let answered = false;
  const done = () => void (answered = true);
  head.then(done, done);
  const encoder = new TextEncoder();
  for await (const piece of pieces) {
    if (answered) break;
    if (piece.length === 0) continue;
    const framed = bytes === undefined
      ? [encoder.encode(`${piece.length.toString(16)}\r\n`), piece, encoder.encode("\r\n")]
      : [piece];
    // Who is refused early gets an answer, which counts more than that he could not send.
    try {
      for (const part of framed) await writeAll(connection, part);
    } catch {
      return void await head;
    }
  }
  if (!answered && bytes === undefined) await writeAll(connection, encoder.encode("0\r\n\r\n")).catch(() => {});
  // Else both would wait for the other one's end.
  if (answered) await connection.closeWrite().catch(() => {});
}

/** HTTP/1.0 but for chunks: the answer comes in one piece, ended by the connection. */
function requestBytes({ method, target, headers = {}, body = "", stream }: Question): Uint8Array {
  const isChunked = stream !== undefined && stream.bytes === undefined;
  const lines = [`${method} ${target} HTTP/1.${isChunked ? 1 : 0}`, "host: epochd"];
  const encoder = new TextEncoder();
  if (isChunked) lines.push("transfer-encoding: chunked");
  else if (stream !== undefined) lines.push(`content-length: ${stream.bytes}`);
  else if (method !== "GET") lines.push(`content-length: ${encoder.encode(body).length}`);
  if (body !== "") lines.push("content-type: application/json");
  for (const [name, value] of Object.entries(headers)) lines.push(`${name}: ${value}`);
  return encoder.encode(`${lines.join("\r\n")}\r\n\r\n${body}`);
}

async function readHead(connection: Deno.Conn): Promise<Incoming> {
  let bytes = new Uint8Array(0);
  let end = -1;
  while (end < 0) {
    const more = await readSome(connection);
    if (more === undefined || bytes.length > mostHeadBytes) throw new Error("no HTTP answer came");
    bytes = new Uint8Array([...bytes, ...more]);
    end = headEnd(bytes);
  }
  const [, status] = /^HTTP\/1\.[01] (\d{3})/.exec(new TextDecoder("latin1").decode(bytes.subarray(0, end))) ?? [];
  if (status === undefined) throw new Error("the answer is no HTTP");
  return { status: Number(status), pieces: piecesOf(connection, bytes.subarray(end)), close: () => close(connection) };
}

async function* piecesOf(connection: Deno.Conn, first: Uint8Array): AsyncGenerator<string> {
  const decoder = new TextDecoder();
  try {
    yield decoder.decode(first, { stream: true });
    for (let more = await readSome(connection); more !== undefined; more = await readSome(connection)) {
      yield decoder.decode(more, { stream: true });
    }
  } finally {
    close(connection);
  }
}

async function readSome(connection: Deno.Conn): Promise<Uint8Array | undefined> {
  const buffer = new Uint8Array(16_384);
  const count = await connection.read(buffer);
  return count === null ? undefined : buffer.subarray(0, count);
}

async function writeAll(connection: Deno.Conn, bytes: Uint8Array): Promise<void> {
  for (let done = 0; done < bytes.length;) done += await connection.write(bytes.subarray(done));
}

function close(connection: Deno.Conn): void {
  try {
    connection.close();
  } catch { /* Closed before. */ }
}

function whyAbsent(socket: string, error: unknown): string {
  // A link without its socket is what a supervisor leaves that ended in order.
  const left = error instanceof Deno.errors.NotFound && isLink(socket);
  if (left || error instanceof Deno.errors.ConnectionRefused) {
    return `no supervisor: nobody listens on ${socket}, its supervisor has ended`;
  }
  if (error instanceof Deno.errors.NotFound) return `no supervisor: ${socket} does not exist`;
  if (error instanceof Deno.errors.PermissionDenied) return `${socket} belongs to another user`;
  return `${socket} can't be asked: ${messageOf(error)}`;
}

function isLink(path: string): boolean {
  try {
    return Deno.lstatSync(path).isSymlink;
  } catch {
    return false;
  }
}

export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
