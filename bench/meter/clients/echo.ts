// Owns: clients that send a short text and wait for it to come back: raw TCP, WebSocket and UDP.
import dgram from "node:dgram";
import { HttpFailure } from "../../../tests/support/http_client.ts";
import { type Asking, type Desk, inTime, keepAsking, type Line, TIMEOUT_MS } from "../held.ts";

const encoder = new TextEncoder();
const decoder = new TextDecoder();
/** Long for a datagram; a busy machine must not look like a lost one. */
const DATAGRAM_MS = 2_000;

export function tcp(desk: Desk): Promise<void> {
  return rawTcp(desk, { sessionMs: desk.sessionMs });
}

export function tcpForEver(desk: Desk): Promise<void> {
  return rawTcp(desk, {});
}

function rawTcp(desk: Desk, asking: Asking): Promise<void> {
  let number = 0;
  return keepAsking(desk, async () => {
    const reader = await connect(desk, desk.site.tcp);
    return {
      gone: undefined,
      async ask() {
        const text = `${++number}\n`;
        await reader.write(encoder.encode(text));
        const answer = decoder.decode(await reader.take(text.length));
        if (answer !== text) throw new HttpFailure("malformed", `sent ${text.trim()}, got ${answer.trim()}`);
      },
      close: () => reader.close(),
    };
  }, asking);
}

export function webSocket(desk: Desk): Promise<void> {
  let number = 0;
  const { hostname, http } = desk.site;
  return keepAsking(desk, async () => {
    const reader = await connect(desk, http);
    try {
      await reader.write(encoder.encode(
        `GET /ws HTTP/1.1\r\nhost: ${hostname}\r\nconnection: upgrade\r\nupgrade: websocket\r\n` +
          "sec-websocket-version: 13\r\nsec-websocket-key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n",
      ));
      const head = await reader.takeUntil("\r\n\r\n");
      if (!/^HTTP\/1\.1 101 /.test(head)) throw new HttpFailure("bad_status", head.slice(0, 60));
    } catch (error) {
      reader.close();
      throw error;
    }
    return {
      gone: undefined,
      async ask() {
        const text = encoder.encode(String(++number));
        // A final text frame, masked by zeros: the mask is there for proxies that don't know WebSocket.
        await reader.write(Uint8Array.of(0x81, 0x80 | text.length, 0, 0, 0, 0, ...text));
        const [kind, length = 0] = await reader.take(2);
        const answer = decoder.decode(await reader.take(length));
        if (kind === 0x88) throw new HttpFailure("closed_early", "close frame");
        if (kind !== 0x81 || answer !== String(number)) throw new HttpFailure("malformed", `frame ${kind} ${answer}`);
      },
      close: () => reader.close(),
    };
  }, { sessionMs: desk.sessionMs });
}

export function udp(desk: Desk): Promise<void> {
  let number = 0;
  const { hostname, udp: port } = desk.site;
  const open = (): Promise<Line> => {
    const socket = dgram.createSocket("udp4");
    let taken: (text: string) => void = () => {};
    socket.on("message", (data) => taken(data.toString()));
    socket.on("error", () => {});
    let closed = false;
    const close = () => {
      if (!closed) socket.close();
      closed = true;
    };
    return Promise.resolve({
      gone: undefined,
      async ask() {
        const text = String(++number);
        const answer = new Promise<void>((resolve) => {
          // A late answer to an earlier one is not this one's.
          taken = (got) => got === text && resolve();
        });
        socket.send(text, port, hostname);
        await inTime("datagram", answer, DATAGRAM_MS, () => {});
      },
      close,
    });
  };
  return keepAsking(desk, open, { sessionMs: desk.sessionMs });
}

interface Reader {
  write(bytes: Uint8Array): Promise<void>;
  take(count: number): Promise<Uint8Array>;
  takeUntil(mark: string): Promise<string>;
  close(): void;
}

async function connect({ site }: Desk, port: number): Promise<Reader> {
  const opening = Deno.connect({ hostname: site.hostname, port });
  const conn = await inTime("connect", opening, TIMEOUT_MS, () => opening.then((late) => late.close(), () => {}));
  const scratch = new Uint8Array(4_096);
  let buffer = new Uint8Array(0);
  let closed = false;
  const close = () => {
    if (!closed) conn.close();
    closed = true;
  };
  const fill = async () => {
    const count = await inTime("answer", conn.read(scratch), TIMEOUT_MS, close);
    if (count === null) throw new HttpFailure("closed_early", "the other side ended the connection");
    const grown = new Uint8Array(buffer.length + count);
    grown.set(buffer);
    grown.set(scratch.subarray(0, count), buffer.length);
    buffer = grown;
  };
  const take = async (count: number) => {
    while (buffer.length < count) await fill();
    const bytes = buffer.slice(0, count);
    buffer = buffer.slice(count);
    return bytes;
  };
  return {
    take,
    async write(bytes) {
      for (let sent = 0; sent < bytes.length;) sent += await conn.write(bytes.subarray(sent));
    },
    async takeUntil(mark) {
      while (!decoder.decode(buffer).includes(mark)) await fill();
      return decoder.decode(await take(decoder.decode(buffer).indexOf(mark) + mark.length));
    },
    close,
  };
}
