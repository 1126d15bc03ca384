// Owns: the API's listener on TCP: TLS with certificates that are read again when they change, and trying on while another
// supervisor has the port. Must not: let anybody in (credentials.ts), or hold up anything else.

import net from "node:net";
import tls from "node:tls";
import { createPrivateKey, X509Certificate } from "node:crypto";
import { ContentWatch } from "../adapters/file_watch.ts";
import { reason } from "../adapters/content.ts";
import type { ListenConfig } from "../config/run_config.ts";
import type { ShellFact } from "../observe/shell_fact.ts";

export interface TcpListening {
  close(): void;
}

/** Two pods of one node want the same port during a roll: the newcomer gets it when the old one has ended. */
const retryMs = 1_000;
const restMs = 200;

interface Take {
  /** Full: what comes is closed before it costs anything. */
  readonly isFull: () => boolean;
  readonly handshakeMs: number;
  readonly take: (socket: net.Socket, secured: boolean) => void;
}

export function listenOnTcp(config: ListenConfig, tell: (fact: ShellFact) => void, to: Take): TcpListening {
  const { host, port } = config.address;
  const address = `${host.includes(":") ? `[${host}]` : host}:${port}`;
  let server: net.Server | undefined;
  let timer: ReturnType<typeof setTimeout> | undefined;
  let closed = false;
  let told = "";
  const watches = watchFiles(config, () => void renew());

  const again = (problem: string) => {
    server = undefined;
    if (closed) return;
    if (problem !== told) tell({ kind: "api_waits", address, problem });
    told = problem;
    timer = setTimeout(() => void open(), retryMs);
  };
  const open = async () => {
    try {
      const fresh = await makeServer(config, to);
      if (closed) return;
      fresh.once("error", (error: Error) => again(error.message));
      fresh.listen({ host, port }, () => {
        if (closed) return void fresh.close();
        server = fresh;
        // Out of file descriptors, for example: it listens on.
        fresh.on("error", () => {});
        tell({ kind: "api_listening", path: address });
      });
    } catch (error) {
      again(reason(error));
    }
  };
  const renew = async () => {
    if (server === undefined || config.tls === undefined) return;
    try {
      (server as tls.Server).setSecureContext(await readContext(config.tls));
      tell({ kind: "api_credentials_read", what: "certificates", count: 1 });
    } catch (error) {
      tell({ kind: "api_credentials_failed", what: "certificates", problem: reason(error) });
    }
  };
  void open();
  return {
    close() {
      closed = true;
      clearTimeout(timer);
      for (const watch of watches) watch.close();
      server?.close();
    },
  };
}

async function makeServer({ tls: secure }: ListenConfig, to: Take): Promise<net.Server> {
  if (secure === undefined) {
    return net.createServer((socket) => {
      if (to.isFull()) socket.destroy();
      else to.take(socket, false);
    });
  }
  const verifies = secure.clientCaPath !== undefined;
  const server = tls.createServer({
    ...await readContext(secure),
    minVersion: "TLSv1.2",
    requestCert: verifies,
    rejectUnauthorized: verifies,
    handshakeTimeout: to.handshakeMs,
  }, (socket) => {
    // Asked for again: a runtime that does not enforce it must not let anybody in.
    if (verifies && !socket.authorized) return void socket.destroy();
    to.take(socket, verifies);
  });
  const shaking = new Set<net.Socket>();
  server.on("connection", (socket: net.Socket) => {
    if (to.isFull() || shaking.size > 64) return void socket.destroy();
    shaking.add(socket);
    const timer = setTimeout(() => {
      if (shaking.delete(socket)) socket.destroy();
    }, to.handshakeMs);
    socket.once("close", () => {
      clearTimeout(timer);
      shaking.delete(socket);
    });
  });
  server.on("secureConnection", (socket: net.Socket) => {
    for (const raw of shaking) if (raw.remotePort === socket.remotePort) shaking.delete(raw);
  });
  server.on("tlsClientError", () => {});
  return server;
}

async function readContext(paths: NonNullable<ListenConfig["tls"]>) {
  const [cert, key, ca] = await Promise.all([
    Deno.readTextFile(paths.certPath),
    Deno.readTextFile(paths.keyPath),
    paths.clientCaPath === undefined ? undefined : Deno.readTextFile(paths.clientCaPath),
  ]);
  // While both are being replaced, one is the old one.
  if (!new X509Certificate(cert).checkPrivateKey(createPrivateKey(key))) {
    throw new Error(`${paths.keyPath} is not the key of ${paths.certPath}`);
  }
  if (ca !== undefined) new X509Certificate(ca);
  return { cert, key, ...(ca === undefined ? {} : { ca }) };
}

function watchFiles({ tls: secure }: ListenConfig, changed: () => void): readonly { close(): void }[] {
  if (secure === undefined) return [];
  let timer: ReturnType<typeof setTimeout> | undefined;
  const paths = [secure.certPath, secure.keyPath, ...(secure.clientCaPath === undefined ? [] : [secure.clientCaPath])];
  const watches = paths.map((path) => {
    let isFirst = true;
    return new ContentWatch().watch(path, () => {
      if (isFirst) return void (isFirst = false);
      clearTimeout(timer);
      timer = setTimeout(changed, restMs);
    }, () => {});
  });
  return [...watches, { close: () => clearTimeout(timer) }];
}
