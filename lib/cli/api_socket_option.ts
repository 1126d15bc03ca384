// Owns: --api-socket, the option of every command that asks a supervisor. Must not: ask.

import { Option } from "commander";
import { apiSocketOf, defaultApiSocket } from "../config/api_socket.ts";

export function apiSocketOption(): Option {
  return new Option(
    "--api-socket <FILE>",
    `socket of the supervisor (default $EPOCHD_API_SOCKET or ${defaultApiSocket})`,
  );
}

export function socketOf(options: { readonly apiSocket?: string }): string {
  return apiSocketOf(options.apiSocket, Deno.env.get("EPOCHD_API_SOCKET"));
}
