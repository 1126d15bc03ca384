// Owns: what `epochd run` was told, checked and complete. Must not: parse.

import type { ClientRole } from "./client_role.ts";
import type { ListenAddress } from "./listen_address.ts";
import type { ServiceConfig } from "./service_config.ts";

export interface LogConfig {
  readonly format: "auto" | "text" | "json";
  readonly level: "debug" | "info" | "warn" | "error";
}

/** The API over TCP. */
export interface ListenConfig {
  readonly address: ListenAddress;
  readonly tls?: { readonly certPath: string; readonly keyPath: string; readonly clientCaPath?: string };
  readonly keysPath?: string;
}

export interface RunConfig {
  /** At least one. */
  readonly services: Readonly<Record<string, ServiceConfig>>;
  readonly apiSocket: string;
  /** Absent: the socket alone. */
  readonly apiListen?: ListenConfig;
  readonly apiClientRoles: readonly ClientRole[];
  /** Changes by the API are written back into the file. */
  readonly persist: boolean;
  readonly log: LogConfig;
  /** The epochd.yaml that was read; absent where flags alone describe the service. */
  readonly configPath?: string;
}
