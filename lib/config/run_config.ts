// Owns: what `epochd run` was told, checked and complete. Must not: parse.

import type { ServiceConfig } from "./service_config.ts";

export interface LogConfig {
  readonly format: "auto" | "text" | "json";
  readonly level: "debug" | "info" | "warn" | "error";
}

export interface RunConfig {
  /** At least one. */
  readonly services: Readonly<Record<string, ServiceConfig>>;
  readonly apiSocket: string;
  readonly log: LogConfig;
  /** The epochd.yaml that was read; absent where flags alone describe the service. */
  readonly configPath?: string;
}
