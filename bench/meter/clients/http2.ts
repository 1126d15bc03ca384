// Owns: HTTP/2 clients: requests on one connection until a GOAWAY, and streaming gRPC calls one after the other.
import { HttpFailure } from "../../../tests/support/http_client.ts";
import {
  frame as grpcFrame,
  Frames,
  message as grpcMessage,
  text,
  textFields,
} from "../../../tests/support/xds_wire.ts";
import { type Desk, keepAsking, now, ToldToGo } from "../held.ts";
import { H2Connection } from "./h2_connection.ts";
import { oneAfterTheOther } from "./streams.ts";

const STREAM_EVERY_MS = 100;
const decoder = new TextDecoder();

export function requests(desk: Desk): Promise<void> {
  const { hostname, http } = desk.site;
  return keepAsking(desk, async () => {
    const connection = await H2Connection.open(hostname, http);
    return {
      async ask() {
        let body = "";
        const onData = (piece: Uint8Array) => {
          body += decoder.decode(piece);
        };
        await connection.request({ path: "/", authority: hostname, onData });
        if (body !== "ok\n") throw new HttpFailure("malformed", `body ${JSON.stringify(body.slice(0, 60))}`);
      },
      get gone() {
        if (connection.goneAway) return "told";
        return connection.closed ? "idle" : undefined;
      },
      close: () => connection.close(),
    };
  });
}

/** A call is complete when all of its messages have come in order, and the server's trailers after them. */
export function serverStreaming(desk: Desk): Promise<void> {
  const { site, tally, phase, sessionMs } = desk;
  const count = Math.max(2, Math.ceil(sessionMs / STREAM_EVERY_MS));
  return oneAfterTheOther(desk, async (sentAtMs) => {
    const connection = await H2Connection.open(site.hostname, site.http);
    let abandoned = false;
    const giveUp = () => {
      abandoned = true;
      connection.close();
    };
    phase.over.addEventListener("abort", giveUp);
    const frames = new Frames();
    let [received, lastMs] = [0, sentAtMs];
    try {
      await connection.request({
        method: "POST",
        path: `/meter.Meter/Count`,
        authority: site.hostname,
        headers: { "content-type": "application/grpc", te: "trailers" },
        body: grpcFrame(grpcMessage({ 1: String(count), 2: String(STREAM_EVERY_MS) })),
        onData: (piece) => {
          for (const bytes of frames.take(piece)) {
            const got = text(textFields(bytes).get(1)?.[0]);
            if (got !== String(received)) throw new HttpFailure("malformed", `wanted message ${received}, got ${got}`);
            received++;
            tally.piece(now() - lastMs, now());
            lastMs = now();
          }
        },
      });
      if (received !== count) throw new HttpFailure("closed_early", `${received} of ${count} messages`);
      if (connection.goneAway) tally.toldToGo();
      return "complete";
    } catch (error) {
      if (abandoned) return "abandoned";
      if (error instanceof ToldToGo) throw new HttpFailure("reset", "GOAWAY before a call that was just opened");
      throw error;
    } finally {
      phase.over.removeEventListener("abort", giveUp);
      connection.close();
    }
  });
}
