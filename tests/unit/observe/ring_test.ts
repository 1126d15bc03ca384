import assert from "node:assert/strict";
import type { RecordedFact } from "../../../lib/observe/record.ts";
import { Ring } from "../../../lib/observe/ring.ts";

function record(seq: number): RecordedFact {
  return { seq, service: "envoy", wallMs: 0, fact: { kind: "marker_back" } };
}

function ringOf(capacity: number, count: number): Ring {
  const ring = new Ring(capacity);
  for (let seq = 1; seq <= count; seq++) ring.push(record(seq));
  return ring;
}

Deno.test("ring keeps the newest records in order and no more than its capacity", () => {
  const seqs = (ring: Ring) => ring.all().map(({ seq }) => seq);
  assert.deepEqual(seqs(ringOf(3, 0)), []);
  assert.deepEqual(seqs(ringOf(3, 2)), [1, 2]);
  assert.deepEqual(seqs(ringOf(3, 3)), [1, 2, 3]);
  assert.deepEqual(seqs(ringOf(3, 7)), [5, 6, 7]);
  assert.deepEqual(seqs(ringOf(1, 4)), [4]);
});

Deno.test("ring answers with what came after a record", () => {
  assert.deepEqual(ringOf(4, 6).after(4).map(({ seq }) => seq), [5, 6]);
  assert.deepEqual(ringOf(4, 6).after(6), []);
  assert.deepEqual(ringOf(4, 6).after(0).map(({ seq }) => seq), [3, 4, 5, 6]);
});

Deno.test("ring refuses a capacity that holds nothing", () => {
  assert.throws(() => new Ring(0), /capacity/);
});
