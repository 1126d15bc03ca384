// Owns: reading the head of an HTTP/1.1 request from bytes. Must not: read or write a connection.

export interface RequestHead {
  readonly method: string;
  /** Path and query, beginning with a slash. */
  readonly target: string;
  readonly headers: Headers;
  readonly bodyBytes: number;
  /** In chunks, whose sum nobody says before: only where a body is streamed. */
  readonly isChunked: boolean;
  readonly expectsContinue: boolean;
}

/** Whether the body of this request is taken in as it comes, instead of whole and small. */
export type IsStreamed = (method: string, target: string) => boolean;

/** What is wrong with a request, as an HTTP status. */
export interface BadRequest {
  readonly status: 400 | 411 | 413 | 417 | 431 | 505;
  readonly detail: string;
}

const decoder = new TextDecoder("latin1");
const requestLine = /^([A-Z]{1,16}) (\/[\x21-\x7e]*) HTTP\/(\d)\.(\d)$/;
const headerLine = /^([!#$%&'*+.^_`|~0-9A-Za-z-]+):[ \t]*([\t\x20-\x7e\x80-\xff]*?)[ \t]*$/;

/** Where the head ends in `bytes` (after its empty line), or -1. */
export function headEnd(bytes: Uint8Array): number {
  for (let at = 3; at < bytes.length; at++) {
    if (bytes[at] === 10 && bytes[at - 1] === 13 && bytes[at - 2] === 10 && bytes[at - 3] === 13) return at + 1;
  }
  return -1;
}

export function parseHead(
  bytes: Uint8Array,
  mostBodyBytes: number,
  isStreamed: IsStreamed = () => false,
): RequestHead | BadRequest {
  const [first, ...lines] = decoder.decode(bytes).replace(/\r\n\r\n$/, "").split("\r\n");
  const [, method, target, major, minor] = requestLine.exec(first!) ?? [];
  if (method === undefined || target === undefined) return { status: 400, detail: "this is no HTTP request line" };
  if (major !== "1" || (minor !== "0" && minor !== "1")) return { status: 505, detail: "expected HTTP/1.1" };
  const headers = new Headers();
  for (const line of lines) {
    const [, name, value] = headerLine.exec(line) ?? [];
    if (name === undefined || value === undefined) return { status: 400, detail: "this is no HTTP header line" };
    headers.append(name, value);
  }
  // Bodies are small and their length is known: what else there is makes room for smuggling, not for clients.
  const encoding = headers.get("transfer-encoding");
  const streams = isStreamed(method, target);
  if (encoding !== null && (!streams || encoding.toLowerCase() !== "chunked" || headers.has("content-length"))) {
    return { status: 411, detail: "expected Content-Length, not Transfer-Encoding" };
  }
  const length = headers.get("content-length") ?? "0";
  if (!/^\d{1,15}$/.test(length)) return { status: 400, detail: "expected one Content-Length, a whole number" };
  if (Number(length) > mostBodyBytes && !streams) {
    return { status: 413, detail: `expected a body of at most ${mostBodyBytes} bytes` };
  }
  const expect = headers.get("expect")?.toLowerCase();
  if (expect !== undefined && expect !== "100-continue") return { status: 417, detail: "expected no such expectation" };
  const isChunked = encoding !== null;
  return { method, target, headers, bodyBytes: Number(length), isChunked, expectsContinue: expect !== undefined };
}
