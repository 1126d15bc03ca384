// Owns: who asks the API: the channel, and the key or certificate. Must not: find that out.

import type { Role } from "../config/client_role.ts";

export interface Identity {
  /** For the audit log: `unix socket`, `key ci from 10.0.0.7`, `certificate CN=alice from 10.0.0.7`. Never a secret. */
  readonly who: string;
  /** Undefined: known to nobody. */
  readonly role: Role | undefined;
  /** By a unix socket: nobody had to log in. */
  readonly isLocal?: boolean;
}

/** 0600 in a directory of 0700: whoever reaches it is this user, or root. */
export const socketClient: Identity = { who: "unix socket", role: "admin", isLocal: true };

/** What a connection knows of its client; a key comes with each request. */
export type Identify = (request: Request) => Identity | Promise<Identity>;
