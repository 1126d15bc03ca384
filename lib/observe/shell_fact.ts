// Owns: what happens to the supervisor itself rather than to a service, as data. Must not: hold texts.

export type ShellFact =
  | {
    readonly kind: "supervisor_started";
    readonly version: string;
    readonly runtime: string;
    readonly pid: number;
    readonly services: readonly string[];
  }
  | { readonly kind: "config_loaded"; readonly path: string; readonly services: readonly string[] }
  | { readonly kind: "start_refused"; readonly problem: string }
  | { readonly kind: "concurrency_chosen"; readonly concurrency: number; readonly why: string }
  | { readonly kind: "stale_marker_removed"; readonly path: string }
  | { readonly kind: "signal_received"; readonly signal: string }
  | { readonly kind: "api_listening"; readonly path: string }
  | { readonly kind: "api_failed"; readonly path: string; readonly problem: string }
  | { readonly kind: "stale_socket_removed"; readonly path: string }
  | { readonly kind: "log_lines_dropped"; readonly lines: number }
  | { readonly kind: "supervisor_ended"; readonly exitCode: number }
  | { readonly kind: "bug"; readonly problem: string };
