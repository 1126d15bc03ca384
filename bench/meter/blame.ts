// Owns: telling what a supervisor dropped from what Envoy itself can't do, by the moments of the handoffs. Must not: measure.
import type { Protocol } from "./protocols.ts";
import type { Loss } from "./tally.ts";

/** One change of the serving Envoy, as seen from outside. Times are Unix ms. */
export interface Mark {
  readonly number: number;
  /**
   * `handoff`: the new one was LIVE while the old one lived; `replaced`: it was not; `failed`: no new one was LIVE in time;
   * `stop`: nobody was to follow.
   */
  readonly kind: "handoff" | "replaced" | "failed" | "stop";
  readonly triggeredAtMs: number;
  readonly liveAtMs?: number;
  /** When the last of the old ones was gone. */
  readonly goneAtMs?: number;
  readonly from: string;
  readonly to?: string;
}

/** Envoy's own limits; nothing that a supervisor of it could help. */
export type Limit =
  /** Raw UDP of a parent before 1.40 is read by nobody from the child's start until the parent's end: it waits, or is lost. */
  | "udp_dark"
  /** A datagram that the parent has read and not yet answered when it ends: nobody sends it again. */
  | "udp_end"
  /** A connection that outlives the parent is cut with it. */
  | "parent_shutdown"
  /** After a stop: the drain time is over, or the listener is closed; nobody was to follow. */
  | "stopped";

export const LIMITS: Readonly<Record<Limit, string>> = {
  udp_dark:
    "UDP without QUIC is read by nobody while the parent lives, where the parent is older than Envoy 1.40 (whatever the child is): " +
    "what fits into the socket's buffer is answered when the parent has ended, the rest is lost; here a client waits 2 s",
  udp_end:
    "a datagram that the parent is at when it ends is lost with it, on Envoy 1.40, whose parents go on reading UDP",
  parent_shutdown: "a connection that is still open at parent-shutdown is cut with the parent, on every version",
  stopped: "after a stop nobody listens, and what is open when the drain time is over is cut",
};

/** What the limits are measured in: the times that the Envoys were started with. */
export interface Bounds {
  readonly drainTimeMs: number;
  readonly parentShutdownTimeMs: number;
}

/** Between what the meter sees and what Envoy did lie a timer's tick and a look at /proc. */
const SLACK_MS = 500;
/** How long before its process is seen to be gone a parent may have stopped answering; bare Envoys show 10 to 60 ms. */
const ENDING_MS = 250;
/** And how late the meter sees it. */
const LOOK_MS = 50;
/** A datagram that was sent in the dark is given up this much later at most. */
const AFTER_DARK_MS = 1_000;

export interface Excuse {
  readonly limit: Limit;
  /** The change that it happened in. */
  readonly mark: Mark;
}

/** Undefined: a drop, which counts against the supervisor. */
export function excuseOf(
  protocol: Protocol | "load",
  loss: Loss,
  marks: readonly Mark[],
  bounds: Bounds,
): Excuse | undefined {
  // The latest first: one that follows at once begins within what is forgiven after the end of the one before.
  for (const mark of marks.toReversed()) {
    const limit = limitAt(protocol, loss, mark, bounds);
    if (limit !== undefined) return { limit, mark };
  }
  return undefined;
}

function limitAt(protocol: Protocol | "load", loss: Loss, mark: Mark, bounds: Bounds): Limit | undefined {
  const { kind, triggeredAtMs, liveAtMs, goneAtMs } = mark;
  switch (kind) {
    case "failed":
    case "replaced":
      return undefined;
    case "stop": {
      if (loss.atMs < triggeredAtMs) return undefined;
      if (loss.kind === "refused") return "stopped";
      const drainedAtMs = triggeredAtMs + bounds.drainTimeMs - SLACK_MS;
      // The kernel resets what it had accepted and Envoy had not when the listener was closed: as good as refused.
      const isBacklog = protocol === "h1-new" && loss.kind === "reset" && loss.sentAtMs >= drainedAtMs;
      const isHeld = protocol === "tcp-for-ever" && loss.atMs >= drainedAtMs;
      return isBacklog || isHeld ? "stopped" : undefined;
    }
    case "handoff": {
      if (liveAtMs === undefined || goneAtMs === undefined) return undefined;
      if (protocol === "udp" && loss.kind === "unanswered") {
        const isDark = isBefore140(mark.from) && isWithin(loss.sentAtMs, triggeredAtMs, goneAtMs + AFTER_DARK_MS);
        if (isDark) return "udp_dark";
        return isWithin(loss.sentAtMs, goneAtMs - ENDING_MS, goneAtMs + LOOK_MS) ? "udp_end" : undefined;
      }
      const isCut = isWithin(loss.atMs, liveAtMs + bounds.parentShutdownTimeMs - SLACK_MS, goneAtMs + AFTER_DARK_MS);
      // Only what is held on purpose longer than any parent lives: all others end in time, and a cut of theirs is a drop.
      return protocol === "tcp-for-ever" && loss.kind === "reset" && isCut ? "parent_shutdown" : undefined;
    }
  }
}

function isWithin(ms: number, fromMs: number, toMs: number): boolean {
  return ms >= fromMs && ms <= toMs;
}

function isBefore140(version: string): boolean {
  const [major = 0, minor = 0] = version.split(".").map(Number);
  return major < 1 || major === 1 && minor < 40;
}
