import assert from "node:assert/strict";
import { eventReader } from "../../../lib/api/event_reader.ts";
import { formatEvent } from "../../../lib/api/event_stream.ts";
import type { RecordedFact } from "../../../lib/observe/record.ts";

const records: readonly RecordedFact[] = [
  {
    seq: 1,
    service: "edge",
    wallMs: 0,
    fact: { kind: "content_unusable", subject: "bootstrap", problem: "a\n\nb: ü" },
  },
  { seq: 2, service: "edge", wallMs: 0, fact: { kind: "marker_back" } },
];

Deno.test("event reader gives back what the stream wrote, however it is cut", () => {
  const text = `: hello\n\n${formatEvent(records[0]!)}: alive\n\n${formatEvent(records[1]!)}`;
  for (let size = 1; size < text.length; size += 7) {
    const read = eventReader();
    const found: RecordedFact[] = [];
    for (let at = 0; at < text.length; at += size) found.push(...read(text.slice(at, at + size)));
    assert.deepEqual(
      found.map(({ seq, service, wallMs, fact }) => ({ seq, service, wallMs, fact })),
      records,
      `pieces of ${size}`,
    );
  }
});

Deno.test("event stream writes id, event and data of a record", () => {
  assert.equal(
    formatEvent(records[1]!),
    'id: 2\nevent: marker_back\ndata: {"seq":2,"service":"edge","wallMs":0,"fact":{"kind":"marker_back"},"level":"info","message":"the ready marker is written again"}\n\n',
  );
});
