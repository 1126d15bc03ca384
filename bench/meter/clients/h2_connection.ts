// Owns: one HTTP/2 connection without TLS, by hand, so that a GOAWAY, a reset stream and a reset connection stay three things.
// Must not: retry, pool, or understand more of a header block than whether the status is 200.
import { HttpFailure } from "../../../tests/support/http_client.ts";
import { inTime, TIMEOUT_MS, ToldToGo } from "../held.ts";

const DATA = 0;
const HEADERS = 1;
const RST_STREAM = 3;
const SETTINGS = 4;
const PING = 6;
const GOAWAY = 7;
const WINDOW_UPDATE = 8;
const END_STREAM = 1;
const END_HEADERS = 4;
const ACK = 1;
const REFUSED_STREAM = 7;
/** `:status: 200` in HPACK's static table, which every server puts first. */
const STATUS_200 = 0x88;
const encoder = new TextEncoder();

export interface H2Request {
  readonly method?: string;
  readonly path: string;
  readonly authority: string;
  /** Names in lower case. */
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: Uint8Array;
  readonly onData?: (piece: Uint8Array) => void;
  /** How long nothing may come. */
  readonly stallMs?: number;
}

interface Stream {
  readonly request: H2Request;
  headed: boolean;
  readonly ended: { resolve(): void; reject(error: Error): void };
  readonly stalled: () => void;
}

export class H2Connection {
  /** The server has said that it takes no new streams. */
  goneAway = false;
  closed = false;
  readonly #streams = new Map<number, Stream>();
  #nextId = 1;
  #why: HttpFailure | undefined;

  private constructor(private readonly conn: Deno.Conn) {}

  static async open(hostname: string, port: number): Promise<H2Connection> {
    const opening = Deno.connect({ hostname, port });
    const conn = await inTime("connect", opening, TIMEOUT_MS, () => opening.then((late) => late.close(), () => {}));
    conn.setNoDelay(true);
    const connection = new H2Connection(conn);
    // No table of seen headers: then none of its entries can stand for a status.
    const noTable = Uint8Array.of(0, 1, 0, 0, 0, 0);
    connection.#write(encoder.encode("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"), frame(SETTINGS, 0, 0, noTable));
    connection.#read().catch((error) => connection.#end(HttpFailure.of(error, "read")));
    return connection;
  }

  /** Resolves when the answer is complete. */
  async request(request: H2Request): Promise<void> {
    if (this.closed) throw this.#why ?? new HttpFailure("closed_early", "before the request");
    if (this.goneAway) throw new ToldToGo();
    const id = this.#nextId;
    this.#nextId += 2;
    const { stallMs = TIMEOUT_MS } = request;
    let timer: ReturnType<typeof setTimeout> | undefined;
    const ended = Promise.withResolvers<void>();
    const stalled = () => {
      clearTimeout(timer);
      timer = setTimeout(() => ended.reject(new HttpFailure("timeout", `nothing in ${stallMs} ms`)), stallMs);
    };
    this.#streams.set(id, { request, headed: false, ended, stalled });
    stalled();
    const block = headerBlock({
      ":method": request.method ?? "GET",
      ":scheme": "http",
      ":path": request.path,
      ":authority": request.authority,
      ...request.headers,
    });
    const flags = END_HEADERS | (request.body === undefined ? END_STREAM : 0);
    const body = request.body === undefined ? [] : [frame(DATA, END_STREAM, id, request.body)];
    this.#write(frame(HEADERS, flags, id, block), ...body);
    try {
      await ended.promise;
    } finally {
      clearTimeout(timer);
      this.#streams.delete(id);
    }
  }

  close(): void {
    if (!this.closed) this.#end(new HttpFailure("closed_early", "by the client itself"));
  }

  #write(...frames: Uint8Array[]): void {
    // One write each time: writes that run into each other would mix their bytes.
    const bytes = joined(frames);
    const run = async () => {
      for (let sent = 0; sent < bytes.length;) sent += await this.conn.write(bytes.subarray(sent));
    };
    this.#writing = this.#writing.then(run).catch((error) => this.#end(HttpFailure.of(error, "write")));
  }
  #writing: Promise<void> = Promise.resolve();

  async #read(): Promise<void> {
    let buffer = new Uint8Array(0);
    const scratch = new Uint8Array(16_384);
    while (true) {
      const count = await this.conn.read(scratch);
      if (count === null) return this.#end(new HttpFailure("closed_early", "the other side ended the connection"));
      buffer = joined([buffer, scratch.subarray(0, count)]);
      while (buffer.length >= 9) {
        const length = buffer[0]! * 65_536 + buffer[1]! * 256 + buffer[2]!;
        if (buffer.length < 9 + length) break;
        this.#take(buffer[3]!, buffer[4]!, uint32(buffer, 5), buffer.slice(9, 9 + length));
        buffer = buffer.slice(9 + length);
      }
    }
  }

  #take(type: number, flags: number, id: number, payload: Uint8Array): void {
    const stream = this.#streams.get(id);
    stream?.stalled();
    switch (type) {
      case SETTINGS:
        if ((flags & ACK) === 0) this.#write(frame(SETTINGS, ACK, 0, new Uint8Array(0)));
        break;
      case PING:
        if ((flags & ACK) === 0) this.#write(frame(PING, ACK, 0, payload));
        break;
      case GOAWAY: {
        this.goneAway = true;
        const lastId = uint32(payload, 0) & 0x7fff_ffff;
        // Nobody has looked at these, says the protocol: another connection may have them.
        for (const [streamId, { ended }] of this.#streams) if (streamId > lastId) ended.reject(new ToldToGo());
        break;
      }
      case RST_STREAM: {
        const code = uint32(payload, 0);
        stream?.ended.reject(
          code === REFUSED_STREAM ? new ToldToGo() : new HttpFailure("reset", `stream reset with code ${code}`),
        );
        break;
      }
      case HEADERS:
        if (stream !== undefined && !stream.headed) {
          stream.headed = true;
          // The answer that empties the server's table comes before the first field.
          const status = payload.find((byte) => byte !== 0x20);
          if (status !== STATUS_200) {
            stream.ended.reject(new HttpFailure("bad_status", `header block begins ${status}`));
          }
        }
        break;
      case DATA:
        if (payload.length > 0) {
          this.#write(frame(WINDOW_UPDATE, 0, 0, number32(payload.length)));
          if ((flags & END_STREAM) === 0) this.#write(frame(WINDOW_UPDATE, 0, id, number32(payload.length)));
          try {
            stream?.request.onData?.(payload);
          } catch (error) {
            stream?.ended.reject(HttpFailure.of(error, "body"));
          }
        }
        break;
    }
    if ((type === DATA || type === HEADERS) && (flags & END_STREAM) !== 0) stream?.ended.resolve();
  }

  #end(why: HttpFailure): void {
    if (this.closed) return;
    this.closed = true;
    this.#why = why;
    this.conn.close();
    for (const { ended } of this.#streams.values()) ended.reject(why);
  }
}

function frame(type: number, flags: number, id: number, payload: Uint8Array): Uint8Array {
  const { length } = payload;
  return joined([Uint8Array.of(length >> 16, length >> 8, length, type, flags), number32(id), payload]);
}

/** Literal fields that nobody is to remember, without Huffman's code. */
function headerBlock(fields: Readonly<Record<string, string>>): Uint8Array {
  const text = (value: string) => {
    const bytes = encoder.encode(value);
    if (bytes.length > 126) throw new Error(`header text of ${bytes.length} bytes, at most 126 are written here`);
    return joined([Uint8Array.of(bytes.length), bytes]);
  };
  return joined(
    Object.entries(fields).map(([name, value]) => joined([Uint8Array.of(0), text(name), text(value)])),
  );
}

function number32(value: number): Uint8Array {
  return Uint8Array.of(value >>> 24, value >>> 16, value >>> 8, value);
}

function uint32(bytes: Uint8Array, at: number): number {
  return new DataView(bytes.buffer, bytes.byteOffset).getUint32(at);
}

function joined(parts: readonly Uint8Array[]): Uint8Array<ArrayBuffer> {
  const bytes = new Uint8Array(parts.reduce((sum, part) => sum + part.length, 0));
  let at = 0;
  for (const part of parts) {
    bytes.set(part, at);
    at += part.length;
  }
  return bytes;
}
