// Owns: where a supervisor is asked, if nobody says where. Must not: import a library (every command needs it).

export const defaultApiSocket = "/run/epochd/api.sock";

/** Flag, environment (EPOCHD_API_SOCKET), default. */
export function apiSocketOf(given: string | undefined, environment: string | undefined): string {
  return given ?? (environment === undefined || environment === "" ? defaultApiSocket : environment);
}
