// Owns: whether another supervisor's Envoy serves on this base id, and as which epoch to join it: one table.
// Must not: look for itself, or wait; starting does.

import type { Sighting } from "./sighting.ts";

/** A beat comes every second; ten missed ones are a supervisor that is gone or hangs. */
export const BEAT_TOO_OLD_MS = 10_000;
/** Clocks of one machine agree; a beat from further ahead than this was written before the clock was set back. */
export const BEAT_AHEAD_MS = 2_000;

/** `fresh`: of a supervisor that is alive. `unfit`: stale, from the future or of another boot; its number is a hint at best. */
export type Beat = "none" | "fresh" | "unfit";
/** Parent sockets: each proves a living Envoy, whatever its supervisor says. */
export type Sockets = "none" | "one" | "several";
/** `fits`: it serves, at an epoch whose slot has a parent socket. `odd`: answered by somebody else, or it does not serve yet. */
export type Answer = "silent" | "fits" | "odd";

/** `fresh_start`: epoch 0. `join`: epoch + 1, at once. `wait`: look again; at the bound the second word is done. */
export type Verdict =
  | "fresh_start"
  | "join_by_admin"
  | "join_by_beat"
  | "wait_then_by_beat"
  | "wait_then_by_sockets"
  | "wait_then_by_admin";

/**
 * Sockets decide whether somebody is there, admin who it is, the heartbeat only helps out. Any living parent socket means: never
 * epoch 0 (two of them on one base id would both serve one port, and nothing of Envoy's prevents it).
 */
export const TABLE: Readonly<Record<Sockets, Readonly<Record<Answer, Readonly<Record<Beat, Verdict>>>>>> = {
  none: {
    silent: { none: "fresh_start", fresh: "fresh_start", unfit: "fresh_start" },
    fits: { none: "fresh_start", fresh: "fresh_start", unfit: "fresh_start" },
    odd: { none: "fresh_start", fresh: "fresh_start", unfit: "fresh_start" },
  },
  one: {
    // Its admin may have been taken by a successor that failed; a fresh beat says that its supervisor knows.
    silent: { none: "wait_then_by_sockets", fresh: "join_by_beat", unfit: "wait_then_by_beat" },
    fits: { none: "join_by_admin", fresh: "join_by_admin", unfit: "join_by_admin" },
    odd: { none: "wait_then_by_sockets", fresh: "wait_then_by_beat", unfit: "wait_then_by_sockets" },
  },
  several: {
    // A handoff is under way or drains: a third generation would end the first at once, with all its connections.
    silent: { none: "wait_then_by_sockets", fresh: "wait_then_by_beat", unfit: "wait_then_by_beat" },
    fits: { none: "wait_then_by_admin", fresh: "wait_then_by_admin", unfit: "wait_then_by_admin" },
    odd: { none: "wait_then_by_sockets", fresh: "wait_then_by_beat", unfit: "wait_then_by_sockets" },
  },
};

/** The slot of the newest generation: with two, the one that follows the other (slots are epochs modulo 3). */
export function newestSlot(slots: readonly number[]): number | undefined {
  if (slots.length <= 1) return slots[0];
  return slots.find((slot) => slots.includes((slot + 2) % 3) && !slots.includes((slot + 1) % 3)) ?? slots.at(-1);
}

/** What was seen, in the terms of the table. */
export function classify(seen: Sighting): { readonly sockets: Sockets; readonly answer: Answer; readonly beat: Beat } {
  const { heartbeat, identity, slots, sameBoot } = seen;
  // One that drains is joined before its listeners close.
  const serves = identity?.state === "LIVE" || identity?.state === "DRAINING";
  const fits = serves && slots.includes(identity.epoch % 3);
  return {
    sockets: slots.length === 0 ? "none" : slots.length === 1 ? "one" : "several",
    answer: identity === undefined ? "silent" : fits ? "fits" : "odd",
    beat: heartbeat.kind === "none"
      ? "none"
      : heartbeat.ageMs <= BEAT_TOO_OLD_MS && heartbeat.ageMs >= -BEAT_AHEAD_MS && sameBoot !== false
      ? "fresh"
      : "unfit",
  };
}

/** The word of the table on what was seen. */
export function verdict(seen: Sighting): Verdict {
  const { sockets, answer, beat } = classify(seen);
  return TABLE[sockets][answer][beat];
}

/** The number of the epoch to join, where the verdict is to be carried out now. */
export function epochToJoin(seen: Sighting, how: Verdict): number | undefined {
  const slot = newestSlot(seen.slots);
  if (how === "fresh_start" || slot === undefined) return undefined;
  const byAdmin = how === "join_by_admin" || how === "wait_then_by_admin" ? seen.identity?.epoch : undefined;
  const named = byAdmin ?? (seen.heartbeat.kind === "beat" ? seen.heartbeat.epoch : seen.owner?.epoch);
  return named === undefined ? slot : nearest(named, slot);
}

/**
 * Envoy finds its parent by the slot alone, so a number that only fits the slot joins the right one. The one that was told of, or that
 * answers, need not be the newest: that is then its successor, or its predecessor where it has ended itself.
 */
function nearest(named: number, slot: number): number {
  const ahead = (slot - named % 3 + 3) % 3;
  return ahead === 2 && named > 0 ? named - 1 : named + ahead;
}
