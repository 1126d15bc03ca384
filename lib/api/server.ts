// Owns: the API's listener on the unix socket and how many connections it has. Must not: know routes' meaning.

import type { Log } from "../observe/log.ts";
import type { Control } from "../runtime/control.ts";
import { type ConnectionLimits, type Handler, serveConnection } from "./connection.ts";
import { problemResponse } from "./problem_json.ts";
import { type RouteLimits, routeLimits, routes } from "./routes.ts";
import { checkSocketPath, moveLink, ownSocket, prepareDirectory, removeStale, socketPlace } from "./socket_path.ts";

export interface ApiLimits extends ConnectionLimits, RouteLimits {
  readonly connections: number;
}

const defaultLimits: ApiLimits = {
  ...routeLimits,
  connections: 64,
  headBytes: 16_384,
  bodyBytes: 65_536,
  requestMs: 5_000,
  writeMs: 10_000,
};

export interface ApiOptions {
  /** What clients use; becomes a link. */
  readonly path: string;
  readonly control: Control;
  readonly log: Pick<Log, "shell">;
  readonly limits?: Partial<ApiLimits>;
}

/** Removes this process's own socket at once, then ends streams and waits and gives their last answers a moment. */
export type CloseApi = () => Promise<void>;

/** Undefined where it can't listen, which was told: the API is no reason to keep Envoy from serving. */
export async function startApi(options: ApiOptions): Promise<CloseApi | undefined> {
  const limits = { ...defaultLimits, ...options.limits };
  const bound = await bind(options);
  if ("problem" in bound) {
    options.log.shell({ kind: "api_failed", path: options.path, problem: bound.problem });
    return undefined;
  }
  const app = routes(options.control, limits, (error) => {
    options.log.shell({ kind: "bug", problem: `API: ${error.stack ?? error.message}` });
  });
  const closing = new AbortController();
  const open = new Map<Deno.Conn, Promise<void>>();
  const handler: Handler = (request, gone) => app.fetch(request, { gone });
  const accepting = accept(bound.listener, closing.signal, (connection) => {
    const answer = open.size < limits.connections ? handler : tooMany;
    // Those beyond the limit get a short answer, and less patience.
    const patience = answer === handler ? limits : { ...limits, requestMs: 500, writeMs: 500 };
    if (open.size >= 2 * limits.connections) return closeQuietly(connection);
    const done = serveConnection(connection, answer, patience, closing.signal);
    open.set(connection, done.finally(() => open.delete(connection)));
  });
  options.log.shell({ kind: "api_listening", path: options.path });
  return async () => {
    closing.abort();
    bound.listener.close();
    // The link stays: by now it may be another supervisor's, and looking first would leave a gap.
    removeQuietly(bound.socket);
    let timer: ReturnType<typeof setTimeout> | undefined;
    const late = new Promise<void>((resolve) => timer = setTimeout(resolve, lastAnswersMs));
    await Promise.race([Promise.all([accepting, ...open.values()]), late]);
    clearTimeout(timer);
    for (const connection of open.keys()) closeQuietly(connection);
  };
}

const lastAnswersMs = 500;

function tooMany(): Response {
  return problemResponse({ status: 503, name: "too_many_connections", detail: "too many connections, try again" });
}

type Bound = { readonly listener: Deno.Listener; readonly socket: string } | { readonly problem: string };

const nameAttempts = 10;

async function bind({ path, log }: ApiOptions): Promise<Bound> {
  const place = socketPlace(path);
  const wrong = checkSocketPath(path) ?? prepareDirectory(place);
  if (wrong !== undefined) return { problem: wrong };
  for (const stale of await removeStale(place)) log.shell({ kind: "stale_socket_removed", path: stale });
  for (let attempt = 0; attempt < nameAttempts; attempt++) {
    const socket = ownSocket(place, Deno.pid, attempt);
    let listener: Deno.Listener;
    try {
      listener = Deno.listen({ transport: "unix", path: socket });
    } catch (error) {
      if (error instanceof Deno.errors.AddrInUse) continue;
      return { problem: `${socket} can't be bound: ${error instanceof Error ? error.message : String(error)}` };
    }
    const problem = secure(socket) ?? moveLink(place, socket);
    if (problem === undefined) return { listener, socket };
    listener.close();
    removeQuietly(socket);
    return { problem };
  }
  return { problem: `${nameAttempts} sockets of this process's name exist in ${place.directory}` };
}

function secure(socket: string): string | undefined {
  try {
    Deno.chmodSync(socket, 0o600);
    return undefined;
  } catch (error) {
    return `${socket} can't be made private: ${error instanceof Error ? error.message : String(error)}`;
  }
}

const acceptPauseMs = 100;

async function accept(
  listener: Deno.Listener,
  closing: AbortSignal,
  take: (connection: Deno.Conn) => void,
): Promise<void> {
  while (!closing.aborted) {
    try {
      take(await listener.accept());
    } catch {
      // Out of file descriptors, for example: it passes, and must not spin meanwhile.
      if (!closing.aborted) await new Promise((resolve) => setTimeout(resolve, acceptPauseMs));
    }
  }
}

function removeQuietly(path: string): void {
  try {
    Deno.removeSync(path);
  } catch { /* Already gone. */ }
}

function closeQuietly(connection: Deno.Conn): void {
  try {
    connection.close();
  } catch { /* Closed meanwhile. */ }
}
