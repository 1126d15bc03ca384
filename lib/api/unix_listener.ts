// Owns: the API's listener on its unix socket. Must not: know what is answered.

import type { ShellFact } from "../observe/shell_fact.ts";
import type { Connection } from "./connection.ts";
import { SocketLink } from "./socket_link.ts";
import { checkSocketPath, ownSocket, prepareDirectory, removeStale, socketPlace } from "./socket_path.ts";

export interface Listening {
  /** At once: nobody new comes in, and this process's own socket is gone. */
  close(): void;
}

const acceptPauseMs = 100;
const nameAttempts = 10;

/** Where it can't listen, the problem. `turn`: as for SocketLink. */
export async function listenOnSocket(
  path: string,
  tell: (fact: ShellFact) => void,
  take: (connection: Connection) => void,
  turn?: Promise<void>,
): Promise<Listening | { readonly problem: string }> {
  const bound = await bind(path, tell, turn);
  if ("problem" in bound) return bound;
  const { listener, socket, link } = bound;
  let closing = false;
  void accept();
  return {
    close() {
      closing = true;
      link.close();
      listener.close();
      removeQuietly(socket);
    },
  };

  async function accept(): Promise<void> {
    while (!closing) {
      try {
        take(await listener.accept());
      } catch {
        // Out of file descriptors, for example: it passes, and must not spin meanwhile.
        if (!closing) await new Promise((resolve) => setTimeout(resolve, acceptPauseMs));
      }
    }
  }
}

type Bound =
  | { readonly listener: Deno.Listener; readonly socket: string; readonly link: SocketLink }
  | { readonly problem: string };

async function bind(path: string, tell: (fact: ShellFact) => void, turn: Promise<void> | undefined): Promise<Bound> {
  const place = socketPlace(path);
  const wrong = checkSocketPath(path) ?? prepareDirectory(place);
  if (wrong !== undefined) return { problem: wrong };
  for (const stale of await removeStale(place)) tell({ kind: "stale_socket_removed", path: stale });
  for (let attempt = 0; attempt < nameAttempts; attempt++) {
    const socket = ownSocket(place, Deno.pid, attempt);
    let listener: Deno.Listener;
    try {
      listener = Deno.listen({ transport: "unix", path: socket });
    } catch (error) {
      if (error instanceof Deno.errors.AddrInUse) continue;
      return { problem: `${socket} can't be bound: ${error instanceof Error ? error.message : String(error)}` };
    }
    const link = new SocketLink({ place, socket, tell, ...(turn === undefined ? {} : { turn }) });
    const problem = secure(socket) ?? await link.begin();
    if (problem === undefined) return { listener, socket, link };
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

function removeQuietly(path: string): void {
  try {
    Deno.removeSync(path);
  } catch { /* Already gone. */ }
}
