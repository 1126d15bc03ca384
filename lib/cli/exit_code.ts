// Owns: what the exit codes of the commands mean (`run` has more: lib/core/fact.ts). Must not: exit.

export const exitCode = {
  ok: 0,
  /** The supervisor said no, or there is none. */
  refused: 1,
  /** The command line or the configuration is wrong. */
  usage: 2,
  bug: 70,
} as const;
