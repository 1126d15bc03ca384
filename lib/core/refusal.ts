// Owns: the names of everything epochd expects to refuse. Must not: throw, or hold a stack.

/** Names are API: they stand in logs, in the ledger, in HTTP problems and in tests. */
export type RefusalName =
  | "admin_address_differs"
  | "admin_address_missing"
  | "base_id_held"
  | "binary_hangs"
  | "binary_missing"
  | "binary_not_executable"
  | "binary_too_large"
  | "binary_wrong_architecture"
  | "bootstrap_invalid"
  | "bootstrap_missing"
  | "bootstrap_unreadable"
  | "child_died"
  | "control_plane_away"
  | "digest_differs"
  | "disk_full"
  | "handoff_elsewhere"
  | "hot_restart_version_differs"
  | "live_timeout"
  | "push_busy"
  | "push_not_now"
  | "refused_before"
  | "segment_foreign"
  | "segment_missing"
  | "signature_invalid"
  | "signature_missing"
  | "size_differs"
  | "slot_unknown"
  | "slot_unsafe"
  | "slots_off"
  | "slots_unsafe"
  | "slots_unwritable"
  | "snapshot_failed"
  | "spawn_failed"
  | "stopping"
  | "superseded_by_crash"
  | "superseded"
  | "unchanged"
  | "upload_broken";

/** An expected "no": what was refused and what the reader can do about it. */
export interface Refusal {
  readonly name: RefusalName;
  /** One line: what, the value, what is expected. */
  readonly detail: string;
}

/** A refusal by its name and its one line. */
export function refusal(name: RefusalName, detail: string): Refusal {
  return { name, detail };
}
