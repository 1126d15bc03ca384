// Owns: the event stream: records as server-sent events, with a bounded backlog a reader.
// Must not: hold more for a slow reader than its bound: it is cut off and comes back with Last-Event-ID.

import { describe } from "../observe/describe.ts";
import type { RecordedFact } from "../observe/record.ts";
import type { Control } from "../runtime/control.ts";
import { toJson } from "./json.ts";

export interface EventStreamOptions {
  readonly afterSeq?: number;
  readonly heartbeatMs: number;
  /** False: ends after what is held. */
  readonly follow?: boolean;
  readonly backlogEvents: number;
  /** Ends the stream: the client has gone or the server closes. */
  readonly signal: AbortSignal;
}

const encoder = new TextEncoder();

/** With level and text as the log has them, for readers that know no facts. */
export function formatEvent(record: RecordedFact): string {
  const { level, message } = describe(record.fact);
  return `id: ${record.seq}\nevent: ${record.fact.kind}\ndata: ${toJson({ ...record, level, message })}\n\n`;
}

export function eventStream(control: Control, options: EventStreamOptions): ReadableStream<Uint8Array> {
  let stop = () => {};
  return new ReadableStream<Uint8Array>({
    start(controller) {
      let ended = false;
      const end = () => {
        if (ended) return;
        ended = true;
        stop();
        controller.close();
      };
      const put = (text: string) => {
        if (ended) return;
        if ((controller.desiredSize ?? 0) <= 0) return end();
        controller.enqueue(encoder.encode(text));
      };
      // Tells the client at once that it is subscribed.
      put(": epochd events\n\n");
      const unsubscribe = control.subscribe((record) => put(formatEvent(record)), options.afterSeq);
      const heartbeat = setInterval(() => put(": alive\n\n"), options.heartbeatMs);
      stop = () => {
        unsubscribe();
        clearInterval(heartbeat);
        options.signal.removeEventListener("abort", end);
      };
      if (options.follow === false) end();
      if (ended) stop();
      options.signal.addEventListener("abort", end);
      if (options.signal.aborted) end();
    },
    cancel: () => stop(),
  }, new CountQueuingStrategy({ highWaterMark: options.backlogEvents }));
}

/** Where a reader that comes back goes on; an id of an earlier supervisor means everything that is held. */
export function resumeAfter(lastEventId: string | null, control: Control): number | undefined {
  if (lastEventId === null || !/^\d{1,15}$/.test(lastEventId)) return undefined;
  const newest = control.recent().at(-1)?.seq ?? 0;
  return Number(lastEventId) > newest ? 0 : Number(lastEventId);
}
