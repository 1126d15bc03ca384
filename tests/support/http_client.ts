// Owns: one HTTP/1.1 connection, by hand, so that each way a request can fail has exactly one name.
// Must not retry, pool, follow redirects or obey HTTP_PROXY.

export type Target = { readonly hostname?: string; readonly port: number } | { readonly path: string };

export type FailureKind =
  /** Nobody listens. */
  | "refused"
  /** The other side reset the connection. */
  | "reset"
  /** The other side ended the connection before the answer was complete. */
  | "closed_early"
  | "timeout"
  /** A complete answer, but not the status asked for. Only callers that expect a status raise it. */
  | "bad_status"
  /** Bytes that are no HTTP/1.1 answer, or a body that is not what was expected. */
  | "malformed"
  /** This machine failed (no ephemeral ports, no descriptors), not the server. */
  | "local";

export class HttpFailure extends Error {
  constructor(readonly kind: FailureKind, detail: string) {
    super(`${kind}: ${detail}`);
    this.name = "HttpFailure";
  }

  /** Gives an error of the runtime its name; `when` goes before its text. */
  static of(error: unknown, when: string): HttpFailure {
    return asFailure(error, when);
  }
}

export interface HttpRequest {
  readonly method?: string;
  readonly path: string;
  readonly headers?: Readonly<Record<string, string>>;
  /** An iterable is sent chunked, piece by piece. */
  readonly body?: string | AsyncIterable<Uint8Array>;
  /** Until the answer is complete; with `onPiece` until its head has come. Default 10 s. */
  readonly timeoutMs?: number;
  /** Takes the body piece by piece instead of collecting it; a piece is valid only during the call. */
  readonly onPiece?: (piece: Uint8Array) => void;
  /** With `onPiece`: how long the body may pause. Default: `timeoutMs`. */
  readonly stallMs?: number;
}

export interface HttpResponse {
  readonly status: number;
  /** Names in lower case. */
  readonly headers: ReadonlyMap<string, string>;
  readonly body: string;
}

const encoder = new TextEncoder();
const decoder = new TextDecoder();
const HEAD_END = [13, 10, 13, 10];
const DEFAULT_TIMEOUT_MS = 10_000;

export class HttpConnection implements Disposable {
  #buffer = new Uint8Array(0);
  readonly #scratch = new Uint8Array(16 * 1024);
  #idleRead: Promise<number | null> | undefined;
  #reusable = true;
  #closed = false;
  #timedOut: string | undefined;
  #timer: ReturnType<typeof setTimeout> | undefined;

  private constructor(readonly conn: Deno.Conn, readonly host: string) {}

  static async open(target: Target, timeoutMs: number = DEFAULT_TIMEOUT_MS): Promise<HttpConnection> {
    const opening: Promise<Deno.Conn> = "path" in target
      ? Deno.connect({ transport: "unix", path: target.path })
      : Deno.connect({ hostname: target.hostname ?? "127.0.0.1", port: target.port });
    let timer: ReturnType<typeof setTimeout> | undefined;
    const late = new Promise<undefined>((resolve) => {
      timer = setTimeout(() => resolve(undefined), timeoutMs);
    });
    try {
      const conn = await Promise.race([opening, late]);
      if (conn === undefined) {
        opening.then((tooLate) => tooLate.close(), () => {});
        throw new HttpFailure("timeout", `no connection in ${timeoutMs} ms`);
      }
      return new HttpConnection(
        conn,
        "path" in target ? "localhost" : `${target.hostname ?? "127.0.0.1"}:${target.port}`,
      );
    } catch (error) {
      throw asFailure(error, "connect");
    } finally {
      clearTimeout(timer);
    }
  }

  /** Over a connection that is there already, such as one of TLS. */
  static over(conn: Deno.Conn, host: string): HttpConnection {
    return new HttpConnection(conn, host);
  }

  /**
   * False after `connection: close`, after any failure, and once the server has closed the idle connection. That is
   * known before the next request is written, as in any client that reads its idle connections; a close that crosses
   * the request on the wire stays a failure.
   */
  get reusable(): boolean {
    return this.#reusable && !this.#closed;
  }

  async request(request: HttpRequest): Promise<HttpResponse> {
    const timeoutMs = request.timeoutMs ?? DEFAULT_TIMEOUT_MS;
    this.#setDeadline(timeoutMs, `no complete answer in ${timeoutMs} ms`);
    try {
      const sending = this.#send(request);
      // An answer may come before the upload has ended (413, a dying server); its failure must not go unobserved.
      sending.catch(() => {});
      if (request.body === undefined || typeof request.body === "string") await sending;
      const response = await this.#receive(request, timeoutMs);
      await sending;
      if (this.#reusable) this.#watchIdle();
      else this.close();
      return response;
    } catch (error) {
      this.close();
      throw this.#timedOut === undefined ? asFailure(error, "exchange") : new HttpFailure("timeout", this.#timedOut);
    } finally {
      clearTimeout(this.#timer);
    }
  }

  close(): void {
    if (this.#closed) return;
    this.#closed = true;
    clearTimeout(this.#timer);
    this.conn.close();
  }

  [Symbol.dispose](): void {
    this.close();
  }

  #setDeadline(ms: number, what: string): void {
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => {
      this.#timedOut = what;
      this.close();
    }, ms);
  }

  #watchIdle(): void {
    const read = this.conn.read(this.#scratch);
    this.#idleRead = read;
    const ended = (bytes: number | null) => {
      if (bytes === null && this.#idleRead === read) this.#reusable = false;
    };
    read.then(ended, () => ended(null));
  }

  async #send(request: HttpRequest): Promise<void> {
    const { body } = request;
    let head = `${request.method ?? "GET"} ${request.path} HTTP/1.1\r\nhost: ${this.host}\r\n`;
    for (const [name, value] of Object.entries(request.headers ?? {})) head += `${name}: ${value}\r\n`;
    if (typeof body === "string") {
      head += `content-length: ${encoder.encode(body).length}\r\n\r\n${body}`;
    } else {
      head += body === undefined ? "\r\n" : "transfer-encoding: chunked\r\n\r\n";
    }
    await this.#write(encoder.encode(head));
    if (body === undefined || typeof body === "string") return;
    for await (const piece of body) {
      await this.#write(encoder.encode(`${piece.length.toString(16)}\r\n`));
      await this.#write(piece);
      await this.#write(encoder.encode("\r\n"));
    }
    await this.#write(encoder.encode("0\r\n\r\n"));
  }

  async #write(bytes: Uint8Array): Promise<void> {
    for (let sent = 0; sent < bytes.length;) sent += await this.conn.write(bytes.subarray(sent));
  }

  async #receive(request: HttpRequest, timeoutMs: number): Promise<HttpResponse> {
    let status: number;
    let headers: Map<string, string>;
    do ({ status, headers } = parseHead(await this.#takeUntil(HEAD_END))); while (status >= 100 && status < 200);
    if (/\bclose\b/i.test(headers.get("connection") ?? "")) this.#reusable = false;

    const { onPiece } = request;
    let body = "";
    const partial = new TextDecoder();
    const take = (piece: Uint8Array) => {
      if (onPiece === undefined) body += partial.decode(piece, { stream: true });
      else {
        const stallMs = request.stallMs ?? timeoutMs;
        this.#setDeadline(stallMs, `body paused for ${stallMs} ms`);
        onPiece(piece);
      }
    };
    const length = headers.get("content-length");
    if (request.method === "HEAD" || status === 204 || status === 304) return { status, headers, body };
    if (/\bchunked\b/i.test(headers.get("transfer-encoding") ?? "")) await this.#takeChunks(take);
    else if (length !== undefined) await this.#takeBytes(Number(length), take);
    else {
      this.#reusable = false;
      take(this.#buffer);
      this.#buffer = new Uint8Array(0);
      while (await this.#fill()) {
        take(this.#buffer);
        this.#buffer = new Uint8Array(0);
      }
    }
    return { status, headers, body };
  }

  async #takeChunks(take: (piece: Uint8Array) => void): Promise<void> {
    while (true) {
      const line = decoder.decode(await this.#takeUntil([13, 10]));
      const size = Number.parseInt(line, 16);
      if (Number.isNaN(size)) throw new HttpFailure("malformed", `chunk size ${JSON.stringify(line.slice(0, 40))}`);
      if (size > 0) await this.#takeBytes(size, take);
      await this.#takeUntil([13, 10]);
      if (size === 0) return;
    }
  }

  async #takeBytes(count: number, take: (piece: Uint8Array) => void): Promise<void> {
    for (let left = count; left > 0;) {
      if (this.#buffer.length === 0) await this.#mustFill(`${left} of ${count} body bytes missing`);
      const piece = this.#buffer.subarray(0, left);
      this.#buffer = this.#buffer.subarray(piece.length);
      left -= piece.length;
      take(piece);
    }
  }

  /** The bytes up to a mark, which is taken off the buffer too. */
  async #takeUntil(mark: readonly number[]): Promise<Uint8Array> {
    for (let from = 0;;) {
      const at = indexOf(this.#buffer, mark, from);
      if (at >= 0) {
        const bytes = this.#buffer.subarray(0, at);
        this.#buffer = this.#buffer.subarray(at + mark.length);
        return bytes;
      }
      if (this.#buffer.length > 1_000_000) throw new HttpFailure("malformed", "no end of line in 1 MB");
      from = Math.max(0, this.#buffer.length - mark.length);
      await this.#mustFill(this.#buffer.length === 0 ? "before the answer" : "in the middle of a line");
    }
  }

  async #mustFill(where: string): Promise<void> {
    if (!await this.#fill()) throw new HttpFailure("closed_early", where);
  }

  async #fill(): Promise<boolean> {
    const read = this.#idleRead ?? this.conn.read(this.#scratch);
    this.#idleRead = undefined;
    const count = await read;
    if (count === null) return false;
    const grown = new Uint8Array(this.#buffer.length + count);
    grown.set(this.#buffer);
    grown.set(this.#scratch.subarray(0, count), this.#buffer.length);
    this.#buffer = grown;
    return true;
  }
}

/** One request on a connection of its own. */
export async function fetchOnce(target: Target, request: HttpRequest): Promise<HttpResponse> {
  using connection = await HttpConnection.open(target, request.timeoutMs);
  return await connection.request({ ...request, headers: { connection: "close", ...request.headers } });
}

function parseHead(bytes: Uint8Array): { status: number; headers: Map<string, string> } {
  const [first = "", ...lines] = decoder.decode(bytes).split("\r\n");
  const match = /^HTTP\/1\.[01] (\d{3})/.exec(first);
  if (match === null) throw new HttpFailure("malformed", `status line ${JSON.stringify(first.slice(0, 80))}`);
  const headers = new Map<string, string>();
  for (const line of lines) {
    const at = line.indexOf(":");
    headers.set(line.slice(0, at).toLowerCase(), line.slice(at + 1).trim());
  }
  return { status: Number(match[1]), headers };
}

function indexOf(bytes: Uint8Array, mark: readonly number[], from: number): number {
  const first = mark[0] ?? 0;
  for (let at = bytes.indexOf(first, from); at >= 0; at = bytes.indexOf(first, at + 1)) {
    if (mark.every((byte, index) => bytes[at + index] === byte)) return at;
  }
  return -1;
}

function asFailure(error: unknown, when: string): HttpFailure {
  if (error instanceof HttpFailure) return error;
  const detail = `${when}: ${error instanceof Error ? error.message : String(error)}`;
  const { errors } = Deno;
  if (error instanceof errors.ConnectionRefused || error instanceof errors.NotFound) {
    return new HttpFailure("refused", detail);
  }
  if (
    error instanceof errors.ConnectionReset || error instanceof errors.ConnectionAborted ||
    error instanceof errors.BrokenPipe || error instanceof errors.NotConnected
  ) return new HttpFailure("reset", detail);
  // TLS that ends without its close_notify.
  if (error instanceof errors.UnexpectedEof) return new HttpFailure("closed_early", detail);
  if (error instanceof errors.TimedOut) return new HttpFailure("timeout", detail);
  return new HttpFailure("local", detail);
}
