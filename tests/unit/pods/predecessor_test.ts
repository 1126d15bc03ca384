import assert from "node:assert/strict";
import {
  type Answer,
  type Beat,
  BEAT_AHEAD_MS,
  BEAT_TOO_OLD_MS,
  classify,
  epochToJoin,
  newestSlot,
  type Sockets,
  type Verdict,
  verdict,
} from "../../../lib/core/predecessor.ts";
import type { HeartbeatSeen, Sighting } from "../../../lib/core/sighting.ts";

const NO_BEAT: HeartbeatSeen = { kind: "none" };
const beat = (epoch: number, ageMs = 500): HeartbeatSeen => ({ kind: "beat", epoch, ageMs });

function seen(patch: Partial<Sighting> = {}): Sighting {
  return { heartbeat: NO_BEAT, mine: false, slots: [], ...patch };
}

function identity(epoch: number, state: "LIVE" | "DRAINING" | "INITIALIZING" = "LIVE") {
  return { identity: { epoch, state, hotRestartVersion: "11.104" } };
}

/** Epoch 4 serves, and its successor 5 where there are several. */
const SOCKETS: Readonly<Record<Sockets, readonly number[]>> = { none: [], one: [1], several: [1, 2] };
const ANSWERS: Readonly<Record<Answer, Partial<Sighting>>> = { silent: {}, fits: identity(4), odd: identity(3) };
const BEATS: Readonly<Record<Beat, HeartbeatSeen>> = { none: NO_BEAT, fresh: beat(4), unfit: beat(4, 60_000) };

const CELLS: readonly (readonly [Sockets, Answer, Beat, Verdict, number | undefined])[] = [
  ["none", "silent", "none", "fresh_start", undefined],
  ["none", "silent", "fresh", "fresh_start", undefined],
  ["none", "silent", "unfit", "fresh_start", undefined],
  ["none", "fits", "none", "fresh_start", undefined],
  ["none", "fits", "fresh", "fresh_start", undefined],
  ["none", "fits", "unfit", "fresh_start", undefined],
  ["none", "odd", "none", "fresh_start", undefined],
  ["none", "odd", "fresh", "fresh_start", undefined],
  ["none", "odd", "unfit", "fresh_start", undefined],
  ["one", "silent", "none", "wait_then_by_sockets", 1],
  ["one", "silent", "fresh", "join_by_beat", 4],
  ["one", "silent", "unfit", "wait_then_by_beat", 4],
  ["one", "fits", "none", "join_by_admin", 4],
  ["one", "fits", "fresh", "join_by_admin", 4],
  ["one", "fits", "unfit", "join_by_admin", 4],
  ["one", "odd", "none", "wait_then_by_sockets", 1],
  ["one", "odd", "fresh", "wait_then_by_beat", 4],
  ["one", "odd", "unfit", "wait_then_by_sockets", 4],
  ["several", "silent", "none", "wait_then_by_sockets", 2],
  ["several", "silent", "fresh", "wait_then_by_beat", 5],
  ["several", "silent", "unfit", "wait_then_by_beat", 5],
  ["several", "fits", "none", "wait_then_by_admin", 5],
  ["several", "fits", "fresh", "wait_then_by_admin", 5],
  ["several", "fits", "unfit", "wait_then_by_admin", 5],
  ["several", "odd", "none", "wait_then_by_sockets", 2],
  ["several", "odd", "fresh", "wait_then_by_beat", 5],
  ["several", "odd", "unfit", "wait_then_by_sockets", 5],
];

for (const [sockets, answer, heartbeat, expected, epoch] of CELLS) {
  Deno.test(`verdict + ${expected} for sockets ${sockets}, admin ${answer}, heartbeat ${heartbeat}`, () => {
    const of = seen({ slots: SOCKETS[sockets], heartbeat: BEATS[heartbeat], ...ANSWERS[answer] });
    // Without sockets nobody can answer as one of them.
    const asked = sockets === "none" && answer === "fits" ? "odd" : answer;
    assert.deepEqual(classify(of), { sockets, answer: asked, beat: heartbeat });
    assert.equal(verdict(of), expected);
    assert.equal(epochToJoin(of, expected), epoch);
  });
}

Deno.test("verdict + never epoch 0 while a parent socket is there, whatever else is seen", () => {
  for (const slots of [[0], [1], [2], [0, 1], [0, 2], [1, 2], [0, 1, 2]]) {
    for (const answer of Object.values(ANSWERS)) {
      for (const heartbeat of Object.values(BEATS)) {
        for (const sameBoot of [true, false]) {
          const of = seen({ slots, heartbeat, sameBoot, ...answer });
          assert.notEqual(verdict(of), "fresh_start");
          assert.equal(typeof epochToJoin(of, verdict(of)), "number");
        }
      }
    }
  }
});

Deno.test("classify + a beat is fresh by its age, in both directions, and by the boot", () => {
  const kind = (ageMs: number, sameBoot?: boolean) =>
    classify(seen({ heartbeat: beat(0, ageMs), ...(sameBoot === undefined ? {} : { sameBoot }) })).beat;
  assert.equal(kind(BEAT_TOO_OLD_MS), "fresh");
  assert.equal(kind(BEAT_TOO_OLD_MS + 1), "unfit");
  assert.equal(kind(-BEAT_AHEAD_MS), "fresh");
  assert.equal(kind(-BEAT_AHEAD_MS - 1), "unfit");
  assert.equal(kind(0, false), "unfit");
  assert.equal(kind(0, true), "fresh");
});

Deno.test("classify + an Envoy that drains is joined, one that starts is not", () => {
  assert.equal(classify(seen({ slots: [1], ...identity(4, "DRAINING") })).answer, "fits");
  assert.equal(classify(seen({ slots: [1], ...identity(4, "INITIALIZING") })).answer, "odd");
});

Deno.test("newestSlot + the one that follows the other", () => {
  assert.equal(newestSlot([]), undefined);
  assert.equal(newestSlot([2]), 2);
  assert.equal(newestSlot([0, 1]), 1);
  assert.equal(newestSlot([1, 2]), 2);
  assert.equal(newestSlot([0, 2]), 0);
});

Deno.test("epochToJoin + the number nearest to what was told of that has the socket's slot", () => {
  const by = (slot: number, heartbeat: HeartbeatSeen) =>
    epochToJoin(seen({ slots: [slot], heartbeat }), "wait_then_by_sockets");
  assert.equal(by(1, beat(4)), 4);
  assert.equal(by(2, beat(4)), 5, "its successor was not told of yet");
  assert.equal(by(0, beat(4)), 3, "it has died, its predecessor drains");
  assert.equal(by(2, beat(0)), 2, "there is none before the first");
  assert.equal(by(2, NO_BEAT), 2);
});
