// Owns: all held clients together: some of each protocol, started, told to leave, stopped and counted. Must not: speak a protocol.
import { tcp, tcpForEver, udp, webSocket } from "./clients/echo.ts";
import { keepAlive, newEachTime, overTls } from "./clients/http1.ts";
import { requests, serverStreaming } from "./clients/http2.ts";
import { http3, http3Obstacle } from "./clients/http3.ts";
import { download, upload } from "./clients/streams.ts";
import { type Desk, now, type Phase, type Site } from "./held.ts";
import { type Protocol, PROTOCOL_NAMES } from "./protocols.ts";
import { type Counts, Tally } from "./tally.ts";

export interface CrowdOptions {
  readonly site: Site;
  readonly sessionMs: number;
  /** Of each protocol. Default 3. */
  readonly clients?: number;
  readonly everyMs?: number;
  /** Default: all that can be spoken here. */
  readonly protocols?: readonly Protocol[];
}

export interface Crowd extends AsyncDisposable {
  /** Every protocol has had an answer. */
  untilServed(): Promise<void>;
  /** Finish what is held, and open nothing new: the server is to stop. */
  leave(): void;
  /** Each client has left, or the time is over. */
  untilLeft(limitMs: number): Promise<void>;
  stop(): Promise<ReadonlyMap<Protocol, Counts>>;
}

const CLIENTS: Readonly<Record<Protocol, (desk: Desk) => Promise<void>>> = {
  "h1-keep-alive": keepAlive,
  "h1-new": newEachTime,
  "h2": requests,
  "grpc": serverStreaming,
  "websocket": webSocket,
  "download": download,
  "upload": upload,
  "tcp": tcp,
  "tls": overTls,
  "h3": (desk) => http3(desk, 1),
  "udp": udp,
  "tcp-for-ever": tcpForEver,
};

/** Protocols that can't be spoken on this machine, and why. */
export function obstacles(): ReadonlyMap<Protocol, string> {
  const obstacle = http3Obstacle();
  return new Map<Protocol, string>(obstacle === undefined ? [] : [["h3", obstacle]]);
}

export function startCrowd(options: CrowdOptions): Crowd {
  const { site, sessionMs, clients = 3, everyMs = 100 } = options;
  const missing = obstacles();
  const protocols = (options.protocols ?? PROTOCOL_NAMES).filter((name) => !missing.has(name));
  const over = new AbortController();
  const phase: Phase = { leaving: false, over: over.signal };
  const tallies = new Map(protocols.map((name) => [name, new Tally()]));
  const running = [...tallies].map(([protocol, tally]) => {
    const desk = { site, sessionMs, everyMs, phase, tally };
    const all = protocol === "h3"
      // One program holds all of its connections.
      ? [http3(desk, clients)]
      : Array.from({ length: clients }, () => CLIENTS[protocol](desk));
    // The gaps of a protocol end with its last client.
    return Promise.all(all).finally(() => tally.finish(now()));
  });
  const ended = Promise.all(running);
  ended.catch(() => {});
  let stopped: Promise<ReadonlyMap<Protocol, Counts>> | undefined;
  const stop = () =>
    stopped ??= (async () => {
      over.abort();
      for (const tally of tallies.values()) tally.finish(now());
      await ended;
      return new Map([...tallies].map(([name, tally]) => [name, tally.counts()]));
    })();
  return {
    async untilServed() {
      const deadlineMs = now() + 60_000;
      // An upload is answered at its end only, and nobody waits for that.
      const silent = () =>
        [...tallies].filter(([name, tally]) => name !== "upload" && tally.counts().latency.maxMs === 0).map(([name]) =>
          name
        );
      while (silent().length > 0) {
        if (now() > deadlineMs) throw new Error(`no answer at all in 60 s: ${silent().join(", ")}`);
        await new Promise((resolve) => setTimeout(resolve, 50));
      }
    },
    leave: () => void (phase.leaving = true),
    async untilLeft(limitMs) {
      let timer: ReturnType<typeof setTimeout> | undefined;
      const late = new Promise<void>((resolve) => timer = setTimeout(resolve, limitMs));
      await Promise.race([ended, late]);
      clearTimeout(timer);
    },
    stop,
    [Symbol.asyncDispose]: async () => void await stop(),
  };
}
