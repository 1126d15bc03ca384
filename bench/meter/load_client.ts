/**
 * The load where wrk can't be had: the same requests, and the same lines about each.
 *
 *     load_client.ts URL LOGS PERIOD_MS [leave]
 */
// Owns: the load of one process. Must not: share one with the held clients, whose times it would spoil.
import { HttpConnection, HttpFailure } from "../../tests/support/http_client.ts";
import { lossOf, now, sleep, TIMEOUT_MS } from "./held.ts";

const CONNECTIONS = 16;
const FLUSH_MS = 200;
const AFTER_LOSS_MS = 20;

const [url = "", logs = "", period = "8", leave] = Deno.args;
const { hostname, port, pathname } = new URL(url);
const target = { hostname, port: Number(port) };
const over = new AbortController();
const errors = { refused: 0, reset: 0, unanswered: 0 };
let lines = "";
Deno.addSignalListener("SIGINT", () => over.abort());

const flush = () => {
  Deno.writeTextFileSync(`${logs}/all`, lines, { append: true });
  lines = "";
};
const parent = Deno.ppid;
const flushing = setInterval(() => {
  flush();
  // A meter that was killed can't end its load.
  if (Deno.ppid !== parent) over.abort();
}, FLUSH_MS);
await Promise.all(Array.from({ length: CONNECTIONS }, client));
clearInterval(flushing);
flush();
Deno.stdout.writeSync(new TextEncoder().encode(JSON.stringify(errors)));
Deno.exit(0);

async function client(): Promise<void> {
  const periodMs = Number(period);
  let connection: HttpConnection | undefined;
  let dueAtMs = now() + Math.random() * periodMs;
  while (!over.signal.aborted) {
    await sleep(dueAtMs - now(), over.signal);
    if (over.signal.aborted) break;
    dueAtMs = Math.max(dueAtMs + periodMs, now() - periodMs);
    const sentAtMs = now();
    try {
      if (!connection?.reusable) {
        connection?.close();
        connection = await HttpConnection.open(target, TIMEOUT_MS);
      }
      const { status, headers } = await connection.request({ path: pathname, timeoutMs: TIMEOUT_MS });
      const told = /\bclose\b/i.test(headers.get("connection") ?? "");
      const took = Math.round(1000 * (now() - sentAtMs));
      lines += `${Math.round(1000 * sentAtMs)}\t${status}\t${took}\t${told ? 1 : 0}\n`;
      if (told && leave === "leave") break;
    } catch (error) {
      connection?.close();
      connection = undefined;
      const { kind } = lossOf(error, sentAtMs);
      if (kind === "refused" || kind === "unanswered") errors[kind]++;
      else if (kind === "reset") errors.reset++;
      else throw error instanceof HttpFailure ? error : new Error(String(error));
      dueAtMs = now() + AFTER_LOSS_MS;
    }
  }
  connection?.close();
}
