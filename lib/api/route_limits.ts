// Owns: how much and how long the API's routes take. Must not: enforce it.

export interface RouteLimits {
  readonly eventStreams: number;
  readonly heartbeatMs: number;
  readonly backlogEvents: number;
  /** For the supervisor to say that it took a request. */
  readonly acceptMs: number;
  /** For a request with `wait=live` or `wait=drained`. */
  readonly waitMs: number;
}

export const routeLimits: RouteLimits = {
  eventStreams: 32,
  heartbeatMs: 10_000,
  backlogEvents: 2_000,
  acceptMs: 1_000,
  waitMs: 900_000,
};
