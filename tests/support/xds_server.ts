// Owns: a working control plane for tests: ADS over gRPC, state of the world, by hand over node:http2.
// Must not know how the resources look (xds_resources.ts).
import http2 from "node:http2";
import { isTypeUrl, resourcesOf, type Snapshot, type TypeUrl } from "./xds_resources.ts";
import { frame, Frames, message, text, textFields } from "./xds_wire.ts";

export type { Snapshot } from "./xds_resources.ts";

/** `silent`: requests are taken and never answered. `delayMs`: each answer takes this long. */
export type Pace = "silent" | { readonly delayMs: number };

export interface SeenRequest {
  readonly type: string;
  /** What Envoy has of this type; empty on a fresh stream. */
  readonly version: string;
  readonly names: readonly string[];
  /** Why Envoy took the last answer for bad. */
  readonly refused: string | undefined;
}

export interface XdsServer extends AsyncDisposable {
  readonly port: number;
  /** Streams that are open. */
  readonly streams: number;
  /** Of all streams ever, in the order they came. */
  readonly requests: readonly SeenRequest[];
  /** For what is asked from now on; what waits for an answer gets it when the silence ends. */
  pace(pace: Pace): void;
  /** New resources, told to everybody at once. */
  serve(snapshot: Snapshot): void;
  /** Ends every stream and listens no more: connections are refused. */
  stop(): Promise<void>;
  /** Listens again, on the same port. */
  start(): Promise<void>;
}

export async function startXdsServer(port: number, snapshot: Snapshot): Promise<XdsServer> {
  const server = new Server(port, snapshot);
  await server.start();
  return server;
}

class Server implements XdsServer {
  readonly requests: SeenRequest[] = [];
  #pace: Pace = { delayMs: 0 };
  #version = 1;
  #server: http2.Http2Server | undefined;
  readonly #sessions = new Set<http2.ServerHttp2Session>();
  readonly #open = new Set<AdsStream>();

  constructor(readonly port: number, private snapshot: Snapshot) {}

  get streams(): number {
    return this.#open.size;
  }

  pace(pace: Pace): void {
    this.#pace = pace;
    if (pace !== "silent") { for (const stream of this.#open) stream.pushAll(); }
  }

  serve(snapshot: Snapshot): void {
    this.snapshot = snapshot;
    this.#version++;
    for (const stream of this.#open) stream.pushAll();
  }

  start(): Promise<void> {
    const server = http2.createServer();
    this.#server = server;
    server.on("session", (session) => {
      this.#sessions.add(session);
      session.on("error", () => {});
      session.on("close", () => this.#sessions.delete(session));
    });
    server.on("stream", (stream) => {
      const ads = new AdsStream(stream, {
        seen: (request) => void this.requests.push(request),
        answer: (type) => ({ version: String(this.#version), resources: resourcesOf(type, this.snapshot) }),
        pace: () => this.#pace,
      });
      this.#open.add(ads);
      stream.on("close", () => {
        ads.close();
        this.#open.delete(ads);
      });
    });
    return new Promise((resolve, reject) => {
      server.once("error", reject);
      server.listen(this.port, "127.0.0.1", () => resolve());
    });
  }

  async stop(): Promise<void> {
    const server = this.#server;
    if (server === undefined) return;
    this.#server = undefined;
    const closed = new Promise<void>((resolve) => server.close(() => resolve()));
    for (const stream of this.#open) stream.close();
    this.#open.clear();
    for (const session of this.#sessions) session.destroy();
    await closed;
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.stop();
  }
}

interface Behind {
  readonly seen: (request: SeenRequest) => void;
  readonly answer: (
    type: TypeUrl,
  ) => { readonly version: string; readonly resources: ReadonlyMap<string, Uint8Array> };
  readonly pace: () => Pace;
}

/** One Envoy's subscriptions. */
class AdsStream {
  readonly #frames = new Frames();
  /** By type: the names asked for (none: all), and the version that was sent last. */
  readonly #subscriptions = new Map<TypeUrl, { names: readonly string[]; sent: string }>();
  readonly #timers = new Set<ReturnType<typeof setTimeout>>();
  #nonce = 0;

  constructor(private readonly stream: http2.ServerHttp2Stream, private readonly behind: Behind) {
    stream.respond({ ":status": 200, "content-type": "application/grpc" });
    stream.on("data", (bytes: Uint8Array) => {
      for (const request of this.#frames.take(bytes)) this.#asked(request);
    });
    // Envoy resets its streams at the end.
    stream.on("error", () => {});
  }

  close(): void {
    for (const timer of this.#timers) clearTimeout(timer);
    this.#timers.clear();
    this.#subscriptions.clear();
  }

  pushAll(): void {
    for (const type of this.#subscriptions.keys()) this.#push(type);
  }

  /** envoy.service.discovery.v3.DiscoveryRequest */
  #asked(request: Uint8Array): void {
    const fields = textFields(request);
    const type = text(fields.get(4)?.[0]);
    const version = text(fields.get(1)?.[0]);
    const names = (fields.get(3) ?? []).map(text);
    const error = fields.get(6)?.[0];
    const refused = error === undefined ? undefined : text(textFields(error).get(2)?.[0]);
    this.behind.seen({ type, version, names, refused });
    if (!isTypeUrl(type) || refused !== undefined) return;
    const before = this.#subscriptions.get(type);
    if (before !== undefined && before.names.join() === names.join()) return;
    this.#subscriptions.set(type, { names, sent: "" });
    this.#push(type);
  }

  #push(type: TypeUrl): void {
    const pace = this.behind.pace();
    if (pace === "silent") return;
    if (pace.delayMs === 0) return this.#send(type);
    const timer = setTimeout(() => {
      this.#timers.delete(timer);
      this.#send(type);
    }, pace.delayMs);
    this.#timers.add(timer);
  }

  /** envoy.service.discovery.v3.DiscoveryResponse */
  #send(type: TypeUrl): void {
    const subscription = this.#subscriptions.get(type);
    const { version, resources } = this.behind.answer(type);
    if (subscription === undefined || subscription.sent === version) return;
    subscription.sent = version;
    const { names } = subscription;
    const chosen = names.length === 0 || names.includes("*")
      ? [...resources.values()]
      : names.flatMap((name) => resources.get(name) ?? []);
    this.stream.write(frame(message({ 1: version, 2: chosen, 4: type, 5: String(++this.#nonce) })));
  }
}
