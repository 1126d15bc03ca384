// Owns: the admin of a fake Envoy, by hand over TCP or a unix socket. Must not end the process.
//
// By hand, because a real parent that has lost its admin listener goes on answering on the connections it had already
// accepted, and because a test wants to choose how it fails.
import type { FakeBehaviour } from "./fake_envoy.ts";
import type { FakeFlags } from "./fake_envoy_args.ts";

interface AdminSetup {
  readonly epoch: number;
  readonly flags: FakeFlags;
  readonly bootstrap: string;
  readonly behaviour: () => FakeBehaviour;
  readonly say: (text: string) => void;
  /** Before the answer, so that who has read the answer finds it recorded. */
  readonly onRequest: (method: string, path: string) => void;
  /** After the answer to `/quitquitquit`. */
  readonly onQuit: () => void;
}

const STARTED_MS = Date.now();
const POST_ONLY = new Set([
  "/drain_listeners",
  "/healthcheck/fail",
  "/healthcheck/ok",
  "/quitquitquit",
  "/reopen_logs",
]);

export class FakeAdmin {
  state: "INITIALIZING" | "LIVE" = "INITIALIZING";
  #failing = false;
  #listener: Deno.Listener | undefined;
  #accepting: Promise<void> | undefined;

  private constructor(readonly setup: AdminSetup) {}

  /** Undefined when somebody else has the address. A bootstrap without admin gets an admin that nobody can reach. */
  static start(setup: AdminSetup): FakeAdmin | undefined {
    const admin = new FakeAdmin(setup);
    const address = adminAddress(setup.bootstrap);
    if (address === undefined || setup.behaviour().admin === "refuse") return admin;
    try {
      admin.#listener = "path" in address ? listenUnix(address.path) : Deno.listen(address);
    } catch (error) {
      setup.say(String(error));
      return undefined;
    }
    admin.#accepting = admin.#accept(admin.#listener);
    return admin;
  }

  async stopListening(): Promise<void> {
    this.#listener?.close();
    this.#listener = undefined;
    // Deno lets go of the address only when the accept under way has ended.
    await this.#accepting;
  }

  async #accept(listener: Deno.Listener): Promise<void> {
    // Ends when the listener is closed.
    for await (const conn of listener) {
      this.#answerAll(conn).catch(() => {}).finally(() => {
        try {
          conn.close();
        } catch { /* the client was faster */ }
      });
    }
  }

  async #answerAll(conn: Deno.Conn): Promise<void> {
    const decoder = new TextDecoder();
    const encoder = new TextEncoder();
    const bytes = new Uint8Array(8192);
    let text = "";
    while (true) {
      const headEnd = text.indexOf("\r\n\r\n");
      if (headEnd < 0) {
        const count = await conn.read(bytes);
        if (count === null) return;
        text += decoder.decode(bytes.subarray(0, count));
        continue;
      }
      const head = text.slice(0, headEnd);
      // A body, should a client send one, is skipped by its length when it has come with the head.
      text = text.slice(headEnd + 4 + Number(/^content-length: *(\d+)/im.exec(head)?.[1] ?? 0));
      const behaviour = this.setup.behaviour();
      if (behaviour.admin === "hang") await new Promise(() => {});
      if (behaviour.adminDelayMs !== undefined) await new Promise((r) => setTimeout(r, behaviour.adminDelayMs));

      const [method = "", target = ""] = head.split(" ", 2);
      const url = new URL(target, "http://admin");
      const { status, body, type = "text/plain; charset=UTF-8" } = this.#answer(method, url);
      if (status === 200) this.setup.onRequest(method, url.pathname + url.search);
      const close = /^connection: *close/im.test(head);
      const payload = encoder.encode(body);
      const lines = [
        `HTTP/1.1 ${status} ${status === 200 ? "OK" : "Not as asked"}`,
        `content-type: ${type}`,
        "server: envoy",
        `content-length: ${payload.length}`,
        ...(close ? ["connection: close"] : []),
      ];
      await writeAll(conn, encoder.encode(lines.join("\r\n") + "\r\n\r\n"));
      await writeAll(conn, payload);
      if (status === 200 && url.pathname === "/quitquitquit") this.setup.onQuit();
      if (close) return;
    }
  }

  #answer(method: string, url: URL): { status: number; body: string; type?: string } {
    if (POST_ONLY.has(url.pathname) && method !== "POST") {
      return { status: 405, body: `Method ${method} not allowed, POST required.` };
    }
    switch (url.pathname) {
      case "/server_info":
        return { status: 200, body: this.setup.behaviour().serverInfo ?? this.#serverInfo(), type: "application/json" };
      case "/ready":
        return { status: this.#shownState() === "LIVE" ? 200 : 503, body: `${this.#shownState()}\n` };
      case "/stats":
        return { status: 200, body: this.#stats(url.searchParams) };
      case "/healthcheck/fail":
      case "/healthcheck/ok":
        this.#failing = url.pathname.endsWith("fail");
        return { status: 200, body: "OK\n" };
      case "/drain_listeners":
      case "/quitquitquit":
      case "/reopen_logs":
        return { status: 200, body: "OK\n" };
      default:
        return { status: 404, body: "invalid path. admin commands are: ...\n" };
    }
  }

  #shownState(): string {
    return this.#failing ? "DRAINING" : this.state;
  }

  #serverInfo(): string {
    const { flags, epoch, behaviour } = this.setup;
    const { version = "1.40.0", hotRestartVersion = "11.104" } = behaviour();
    const uptime = `${Math.floor((Date.now() - STARTED_MS) / 1000)}s`;
    const info = {
      version: `${"0".repeat(40)}/${version}/Clean/RELEASE/BoringSSL`,
      state: this.#shownState(),
      uptime_current_epoch: uptime,
      uptime_all_epochs: uptime,
      hot_restart_version: hotRestartVersion,
      command_line_options: {
        base_id: String(flags.baseId),
        concurrency: flags.concurrency,
        config_path: flags.configPath,
        drain_time: `${flags.drainTimeS}s`,
        parent_shutdown_time: `${flags.parentShutdownTimeS}s`,
        mode: "Serve",
        restart_epoch: epoch,
        skip_hot_restart_on_no_parent: flags.skipOnNoParent,
      },
      hot_restart_initializing: this.state !== "LIVE",
    };
    return JSON.stringify(info, null, 1);
  }

  #stats(query: URLSearchParams): string {
    const values: Record<string, number> = {
      "cluster_manager.active_clusters": 1,
      "listener_manager.total_listeners_active": 1,
      "server.concurrency": this.setup.flags.concurrency,
      "server.hot_restart_epoch": this.setup.epoch,
      "server.hot_restart_generation": this.setup.epoch + 1,
      "server.live": this.#shownState() === "LIVE" ? 1 : 0,
      "server.total_connections": 0,
      ...this.setup.behaviour().stats,
    };
    const filter = new RegExp(query.get("filter") ?? "");
    const chosen = Object.entries(values).filter(([name]) => filter.test(name));
    if (query.get("format") === "json") {
      return JSON.stringify({ stats: chosen.map(([name, value]) => ({ name, value })) });
    }
    return chosen.map(([name, value]) => `${name}: ${value}\n`).join("");
  }
}

/** Read from the text without a YAML parser, which would take longer than everything else at the start. */
function adminAddress(bootstrap: string): { hostname: string; port: number } | { path: string } | undefined {
  let section = /^admin:[^\n]*\n((?:[ \t]+[^\n]*\n?|\n)*)/m.exec(bootstrap)?.[0] ?? "";
  if (bootstrap.trimStart().startsWith("{")) section = JSON.stringify(JSON.parse(bootstrap).admin ?? "");
  const port = /\bport_value"?\s*:\s*(\d+)/.exec(section)?.[1];
  const path = /\bpath"?\s*:\s*"?([^"\s,}]+)/.exec(section)?.[1];
  const hostname = /\bsocket_address"?[^]*?\baddress"?\s*:\s*"?([\w.:]+)/.exec(section)?.[1];
  if (port !== undefined) return { hostname: hostname ?? "127.0.0.1", port: Number(port) };
  return path === undefined ? undefined : { path };
}

function listenUnix(path: string): Deno.Listener {
  // Envoy takes over a socket file that is there.
  try {
    Deno.removeSync(path);
  } catch { /* it was not there */ }
  return Deno.listen({ transport: "unix", path });
}

async function writeAll(conn: Deno.Conn, bytes: Uint8Array): Promise<void> {
  for (let sent = 0; sent < bytes.length;) sent += await conn.write(bytes.subarray(sent));
}
