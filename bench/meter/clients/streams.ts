// Owns: what is slow on purpose: a long chunked download and a slow upload, one after the other. Must not: reopen a broken one as if it were whole.
import { holdStream } from "../../../tests/support/held_stream.ts";
import { HttpConnection, HttpFailure } from "../../../tests/support/http_client.ts";
import { type Desk, lossOf, now, sleep } from "../held.ts";

const PIECE_MS = 100;
const PIECE = new Uint8Array(1_000);
const STALL_MS = 5_000;

export function download(desk: Desk): Promise<void> {
  const { site, tally, phase, sessionMs } = desk;
  return oneAfterTheOther(desk, async (sentAtMs) => {
    let lastMs = sentAtMs;
    const stream = holdStream({
      target: { hostname: site.hostname, port: site.http },
      chunks: Math.max(2, Math.ceil(sessionMs / PIECE_MS)),
      everyMs: PIECE_MS,
      onChunk: () => {
        tally.piece(now() - lastMs, now());
        lastMs = now();
      },
    });
    phase.over.addEventListener("abort", stream.abandon);
    const outcome = await stream.outcome;
    phase.over.removeEventListener("abort", stream.abandon);
    if (outcome.kind === "broken") throw new HttpFailure(outcome.failure, outcome.detail);
    return outcome.kind;
  });
}

export function upload(desk: Desk): Promise<void> {
  const { site, phase, sessionMs } = desk;
  const pieces = Math.max(2, Math.ceil(sessionMs / PIECE_MS));
  return oneAfterTheOther(desk, async () => {
    const address = { hostname: site.hostname, port: site.http };
    using connection = await HttpConnection.open(address, STALL_MS);
    let abandoned = false;
    const body = async function* () {
      for (let sent = 0; sent < pieces && !abandoned; sent++) {
        yield PIECE;
        await sleep(PIECE_MS, phase.over);
        // It ends too early then, but well: a body that is cut would be an error of the upstream's.
        abandoned = phase.over.aborted && sent < pieces - 1;
      }
    };
    try {
      const timeoutMs = sessionMs + STALL_MS;
      const answer = await connection.request({ method: "POST", path: "/upload", body: body(), timeoutMs });
      if (abandoned) return "abandoned";
      if (answer.status !== 200) throw new HttpFailure("bad_status", `${answer.status} ${answer.body.slice(0, 100)}`);
      const wanted = `${pieces * PIECE.length}\n`;
      if (answer.body !== wanted) {
        throw new HttpFailure("malformed", `${answer.body.trim()} of ${wanted.trim()} bytes came`);
      }
      return "complete";
    } catch (error) {
      if (abandoned) return "abandoned";
      throw error;
    }
  });
}

/** `run` returns when its stream is whole, or given up because the measurement is over; everything else is a loss. */
export async function oneAfterTheOther(
  desk: Desk,
  run: (sentAtMs: number) => Promise<"complete" | "abandoned">,
): Promise<void> {
  const { tally, phase, sessionMs } = desk;
  // Else all streams of the meter would end in the same moment.
  await sleep(Math.random() * sessionMs / 2, phase.over);
  while (!phase.over.aborted && !phase.leaving) {
    const sentAtMs = now();
    tally.sent();
    try {
      if (await run(sentAtMs) === "abandoned") return tally.unsent();
      // How long a whole stream takes is as it was asked for; slow is one that takes longer than that.
      tally.answered(Math.max(0, now() - sentAtMs - sessionMs), now());
      tally.session({ openedAtMs: sentAtMs, lastAtMs: now() });
    } catch (error) {
      tally.lost(lossOf(error, sentAtMs));
      await sleep(PIECE_MS, phase.over);
    }
  }
}
