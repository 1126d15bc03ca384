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
  | {
    readonly kind: "config_applied";
    readonly source: string;
    readonly who: string;
    readonly verdict: string;
    readonly fields: readonly string[];
    readonly added: readonly string[];
    readonly removed: readonly string[];
    readonly digest: string;
  }
  | {
    readonly kind: "config_refused";
    readonly source: string;
    readonly who: string;
    readonly refusal: string;
    readonly detail: string;
  }
  | { readonly kind: "config_history_failed"; readonly problem: string }
  | { readonly kind: "config_watch_changed"; readonly mode: "events" | "polling"; readonly why: string }
  | { readonly kind: "service_not_added"; readonly name: string; readonly problem: string }
  /** A write, or a denial: `action` is method and path, `who` the channel and the key or certificate. */
  | {
    readonly kind: "api_audit";
    readonly who: string;
    readonly action: string;
    readonly status: number;
    readonly outcome: string;
  }
  | { readonly kind: "api_waits"; readonly address: string; readonly problem: string }
  | { readonly kind: "api_credentials_read"; readonly what: string; readonly count: number }
  | { readonly kind: "api_credentials_failed"; readonly what: string; readonly problem: string }
  | { readonly kind: "start_refused"; readonly problem: string }
  | { readonly kind: "base_id_chosen"; readonly baseId: number }
  | { readonly kind: "concurrency_chosen"; readonly concurrency: number; readonly why: string }
  | {
    readonly kind: "binary_switched";
    readonly service: string;
    readonly to: string;
    readonly version: string;
    readonly source: "push" | "rollback";
  }
  | { readonly kind: "binary_proven"; readonly service: string; readonly digest: string }
  | {
    readonly kind: "binary_undone";
    readonly service: string;
    readonly from: string;
    readonly to: string;
    readonly why: string;
  }
  | { readonly kind: "slots_mended"; readonly service: string; readonly what: string }
  | { readonly kind: "slots_failed"; readonly service: string; readonly problem: string }
  | { readonly kind: "stale_marker_removed"; readonly path: string }
  | { readonly kind: "signal_received"; readonly signal: string }
  | { readonly kind: "api_listening"; readonly path: string }
  /** A living supervisor has the link: this one listens on `socket` alone. `pid` in its own PID namespace. */
  | {
    readonly kind: "api_link_held";
    readonly path: string;
    readonly holder: string;
    readonly pid: number | undefined;
    readonly socket: string;
  }
  | { readonly kind: "api_failed"; readonly path: string; readonly problem: string }
  | { readonly kind: "stale_socket_removed"; readonly path: string }
  | { readonly kind: "log_lines_dropped"; readonly lines: number }
  | { readonly kind: "ledger_failed"; readonly problem: string }
  | { readonly kind: "traces_failed"; readonly problem: string }
  /** The service manager (NOTIFY_SOCKET) can't be told. */
  | { readonly kind: "notify_failed"; readonly problem: string }
  | {
    readonly kind: "upgrade_began";
    readonly executable: string;
    readonly who: string;
    readonly version: string;
    readonly pid: number;
  }
  | {
    readonly kind: "upgrade_refused";
    readonly executable: string;
    readonly who: string;
    readonly refusal: string;
    readonly detail: string;
  }
  /** Every service of the new supervisor is LIVE; this one's epochs drain. */
  | { readonly kind: "upgrade_taken_over"; readonly pid: number; readonly version: string }
  | { readonly kind: "upgrade_failed"; readonly pid: number; readonly version: string; readonly problem: string }
  /** Nothing is left here: the new one is the main process from now on. */
  | { readonly kind: "upgrade_handed_over"; readonly pid: number }
  | { readonly kind: "supervisor_ended"; readonly exitCode: number }
  | { readonly kind: "bug"; readonly problem: string };
