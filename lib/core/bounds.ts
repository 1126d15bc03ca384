// Owns: the core's fixed bounds and paces, each with its reason. Must not: hold anything a user may want to set.

/** First polls for LIVE: a hot restart takes 170 ms and more (1.38.3 to 1.40.0), so 10 ms costs at most 6 % of it. */
export const POLL_FAST_MS = 10;
/** Once a child is slow (xDS), polling it fast only burns CPU. */
export const POLL_SLOW_MS = 250;
export const POLL_FAST_FOR_MS = 2_000;

/** SIGTERM ends an Envoy in under a second; after this it is killed. */
export const KILL_AFTER_MS = 5_000;

/** A parent is ended by its child at parent-shutdown-time; this much later it is overdue. */
export const PREDECESSOR_MARGIN_MS = 10_000;

/** A parent that still has its admin answers in milliseconds; this long refused is lost. */
export const ADMIN_CHECK_MS = 1_000;
export const ADMIN_CHECK_POLL_MS = 100;

export const CONTROL_PLANE_POLL_MS = 500;

/** Connections are counted this often while draining; this many quiet counts in a row end the drain early. */
export const CONNECTIONS_POLL_MS = 250;
export const QUIET_POLLS = 4;

/** A child whose parent died comes up as a first epoch does, or never: where it had attached it waits for that parent, and aborts. */
export const ADOPTED_MS = 3_000;

/** A revived successor is tried this often while its parent drains. */
export const REVIVAL_TRIES = 3;
/** A parent that lost its admin is replaced by its own plan at most this often in a row. */
export const RECOVERY_TRIES = 5;

export const BACKOFF_FIRST_MS = 200;
export const BACKOFF_MAX_MS = 30_000;

/** 200 ms, 400 ms, ... 30 s. */
export function backoffMs(tries: number): number {
  return Math.min(BACKOFF_MAX_MS, BACKOFF_FIRST_MS * 2 ** Math.min(tries, 20));
}

/** The heartbeat of the Go supervisor of this design comes every second as well. */
export const HEARTBEAT_MS = 1_000;
/** Looking out for another pod's successor: one read of /proc/net/unix and two small files. */
export const LOOK_MS = 500;
export const LOOK_FAST_MS = 200;
/** A start that sees sockets and cannot tell whose they are looks on for this long. */
export const SEEK_MS = 5_000;
/** A successor that vanished is given this long to be started again by its own supervisor. */
export const VANISHED_MS = 5_000;
/** The marker of a succeeded supervisor stays until the new one is ready, no longer than this. */
export const READY_HANDOVER_MS = 30_000;
