// Owns: HTTP/1.1 clients: one connection as long as the server lets it, one for each request, and the first over TLS.
import { HttpConnection, HttpFailure } from "../../../tests/support/http_client.ts";
import { type Desk, inTime, keepAsking, type Line, TIMEOUT_MS } from "../held.ts";

export function keepAlive(desk: Desk): Promise<void> {
  return keepAsking(desk, async () => line(await HttpConnection.open(address(desk), TIMEOUT_MS), {}));
}

export function newEachTime(desk: Desk): Promise<void> {
  const open = async () => line(await HttpConnection.open(address(desk), TIMEOUT_MS), { connection: "close" });
  return keepAsking(desk, open, { sessionMs: 0, staysOn: true });
}

export function overTls(desk: Desk): Promise<void> {
  const { hostname, tls, authority } = desk.site;
  return keepAsking(desk, async () => {
    const opening = Deno.connectTls({ hostname, port: tls, caCerts: [authority] });
    const conn = await inTime("connect", opening, TIMEOUT_MS, () => opening.then((late) => late.close(), () => {}));
    try {
      // Else a handshake that fails would be seen in the first read only.
      await inTime("TLS handshake", conn.handshake(), TIMEOUT_MS, () => {});
    } catch (error) {
      conn.close();
      throw error;
    }
    return line(HttpConnection.over(conn, hostname), {});
  });
}

function address({ site }: Desk) {
  return { hostname: site.hostname, port: site.http };
}

function line(connection: HttpConnection, headers: Record<string, string>): Line {
  let asked = false;
  let said = false;
  return {
    async ask() {
      const { status, body, headers: answer } = await connection.request({ path: "/", headers, timeoutMs: TIMEOUT_MS });
      if (status !== 200) throw new HttpFailure("bad_status", `${status} ${body.slice(0, 100)}`);
      if (body !== "ok\n") throw new HttpFailure("malformed", `body ${JSON.stringify(body.slice(0, 60))}`);
      asked = true;
      said = /\bclose\b/i.test(answer.get("connection") ?? "");
    },
    get gone() {
      if (!asked || connection.reusable) return undefined;
      return said ? "told" : "idle";
    },
    close: () => connection.close(),
  };
}
