// Owns: the core's fixed bounds and paces, each with its reason. Must not: hold anything a user may want to set.

/** First polls for LIVE: a hot restart takes 170 ms and more (1.38.3 to 1.40.0), so 10 ms costs at most 6 % of it. */
export const POLL_FAST_MS = 10;
/** Once a child is slow (xDS), polling it fast only burns CPU. */
export const POLL_SLOW_MS = 250;
/** A child that is not LIVE by then is a slow one. */
export const POLL_FAST_FOR_MS = 2_000;

/** SIGTERM ends an Envoy in under a second; after this it is killed. */
export const KILL_AFTER_MS = 5_000;

/** A parent is ended by its child at parent-shutdown-time; this much later it is overdue. */
export const PREDECESSOR_MARGIN_MS = 10_000;

/** A parent that still has its admin answers in milliseconds; this long refused is lost. */
export const ADMIN_CHECK_MS = 1_000;
/** How often it is asked within `ADMIN_CHECK_MS`. */
export const ADMIN_CHECK_POLL_MS = 100;

/** A handoff that waits for it is not missed for half a second more. */
export const CONTROL_PLANE_POLL_MS = 500;

/** Connections are counted this often while draining; this many quiet counts in a row end the drain early. */
export const CONNECTIONS_POLL_MS = 250;
/** Four counts are one second without a connection. */
export const QUIET_POLLS = 4;

/** A child whose parent died comes up as a first epoch does, or never: where it had attached it waits for that parent, and aborts. */
export const ADOPTED_MS = 3_000;

/** A revived successor is tried this often while its parent drains. */
export const REVIVAL_TRIES = 3;
/** A parent that lost its admin is replaced by its own plan at most this often in a row. */
export const RECOVERY_TRIES = 5;

/** About the time of a cold start (170 to 290 ms). */
export const BACKOFF_FIRST_MS = 200;
/** What fails for so long won't be missed for half a minute more. */
export const BACKOFF_MAX_MS = 30_000;

/** 200 ms, 400 ms, ... 30 s. */
export function backoffMs(tries: number): number {
  return Math.min(BACKOFF_MAX_MS, BACKOFF_FIRST_MS * 2 ** Math.min(tries, 20));
}

/** The heartbeat of the Go supervisor of this design comes every second as well. */
export const HEARTBEAT_MS = 1_000;
/** Looking out for another pod's successor: one read of /proc/net/unix and two small files. */
export const LOOK_MS = 500;
/** The pace of looks that something waits for. */
export const LOOK_FAST_MS = 200;
/** A start that sees sockets and cannot tell whose they are looks on for this long. */
export const SEEK_MS = 5_000;
/** As long as a start that waits leaves handoff.lock to the supervisor whose newest has died: it tries every 20 ms. */
export const GIVE_WAY_MS = 500;
/** A revival waits for handoff.lock this long before it looks whether a successor has come instead. */
export const REVIVAL_LOCK_MS = 1_000;
/** A look is as good as a new one for this long: an Envoy takes longer to start or to end. */
export const SEEN_MS = 50;
/** A successor that vanished before LIVE is given this long to be started again by its own supervisor; requests go on meanwhile. */
export const VANISHED_MS = 5_000;
/** Two looks: nobody accepts connections, and its own supervisor would hold handoff.lock by then. */
export const VANISHED_LIVE_MS = 500;
/** Within the ten seconds that an Envoy whose parent vanished tries for (1.38.3 to 1.40.0), with the pauses of `backoffMs` between. */
export const STAND_IN_TRIES = 5;
/** LIVE is seen a poll later than it is: an orderly end this much before the time that was reckoned from there is by protocol. */
export const EARLY_MS: number = POLL_SLOW_MS + 50;
/** Envoy tries again to tell its parent to terminate every second (1.38.3 to 1.40.0). */
export const LATE_WORD_MS = 2_500;
/** A successor that has closed its parent's listeners is heard within this, by its admin or its first beats. */
export const CLOSED_MS = 1_500;
/** The last look before an epoch is ended waits for handoff.lock no longer than this. */
export const VERIFY_LOCK_MS = 1_000;
/** A successor that writes no owner.json counts as ready after this many milliseconds of its heartbeat. */
export const READY_BY_BEAT_MS = 3_000;
/** The marker of a succeeded supervisor stays until the new one is ready, no longer than this. */
export const READY_HANDOVER_MS = 30_000;
