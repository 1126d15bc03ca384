// Owns: one long streaming answer, checked chunk by chunk. Must not reopen it: a broken stream stays broken.
import { type FailureKind, HttpConnection, HttpFailure, type Target } from "./http_client.ts";
import { chunkLine } from "./upstream.ts";

export interface HeldStreamOptions {
  readonly target: Target;
  readonly chunks: number;
  readonly everyMs: number;
  /** How much longer than `everyMs` a chunk may take. */
  readonly stallMs?: number;
  /** Called for each chunk, as it comes. */
  readonly onChunk?: () => void;
}

export type StreamOutcome =
  | { readonly kind: "complete"; readonly chunks: number }
  | { readonly kind: "abandoned"; readonly chunks: number }
  | { readonly kind: "broken"; readonly chunks: number; readonly detail: string; readonly failure: FailureKind };

export interface HeldStream {
  /** Chunks that came so far, in order. */
  readonly received: number;
  /** Settles when the first chunk has come: from then on the stream is held. */
  readonly opened: Promise<void>;
  readonly outcome: Promise<StreamOutcome>;
  abandon(): void;
}

export function holdStream(options: HeldStreamOptions): HeldStream {
  const { target, chunks, everyMs, stallMs = 5_000 } = options;
  let received = 0;
  let abandoned = false;
  let connection: HttpConnection | undefined;
  let markOpened = () => {};
  const opened = new Promise<void>((resolve) => markOpened = resolve);

  // Bytes, not decoded text: a chunk may be split anywhere.
  const decoder = new TextDecoder();
  let rest = "";
  const take = (piece: Uint8Array) => {
    rest += decoder.decode(piece, { stream: true });
    for (let expected = chunkLine(received); rest.length >= expected.length; expected = chunkLine(received)) {
      if (!rest.startsWith(expected)) {
        throw new HttpFailure("malformed", `wanted ${expected}, got ${rest.slice(0, 60)}`);
      }
      rest = rest.slice(expected.length);
      received++;
      markOpened();
      options.onChunk?.();
    }
  };
  const run = async (): Promise<StreamOutcome> => {
    try {
      connection = await HttpConnection.open(target);
      if (abandoned) return { kind: "abandoned", chunks: 0 };
      const path = `/stream?chunks=${chunks}&everyMs=${everyMs}`;
      const response = await connection.request({ path, onPiece: take, stallMs: everyMs + stallMs });
      if (response.status !== 200) throw new HttpFailure("bad_status", String(response.status));
      if (received !== chunks) throw new HttpFailure("closed_early", `${received} of ${chunks} chunks`);
      return { kind: "complete", chunks: received };
    } catch (error) {
      if (abandoned) return { kind: "abandoned", chunks: received };
      const detail = `${error instanceof Error ? error.message : String(error)}; ${received} of ${chunks} chunks came`;
      return { kind: "broken", chunks: received, detail, failure: HttpFailure.of(error, "stream").kind };
    } finally {
      connection?.close();
      markOpened();
    }
  };
  return {
    get received() {
      return received;
    },
    opened,
    outcome: run(),
    abandon() {
      abandoned = true;
      connection?.close();
    },
  };
}
