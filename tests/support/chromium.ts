// Owns: one headless Chromium with one page, driven over its DevTools protocol. Must not: reach anything but this machine.
import { debianProgram } from "./debian_program.ts";
import { fetchOnce } from "./http_client.ts";
import { tempDir } from "./tempdir.ts";
import { until, within } from "./until.ts";

/** Undefined where there is a Chromium, or one could be installed. */
export async function chromiumObstacle(): Promise<string | undefined> {
  return (await debianProgram("chromium")).obstacle;
}

export interface Browser extends AsyncDisposable {
  go(url: string): Promise<void>;
  /** The value of an expression in the page, as JSON carries it. */
  value<T>(expression: string): Promise<T>;
  /** What the page or its policy complained about. */
  readonly complaints: readonly string[];
  /** Requests that left the page, by URL. */
  readonly requests: readonly string[];
  screenshot(path: string, scheme: "light" | "dark"): Promise<void>;
}

type Answer = { readonly result?: Record<string, unknown>; readonly error?: { readonly message: string } };

export async function openBrowser(size = { width: 1280, height: 1500 }): Promise<Browser> {
  const profile = tempDir();
  const child = new Deno.Command("/usr/bin/chromium", {
    args: [
      ...[
        "--headless=new",
        "--no-sandbox",
        "--disable-gpu",
        "--disable-quic",
        "--no-first-run",
        "--disable-dev-shm-usage",
      ],
      ...["--disable-background-networking", "--disable-component-update", "--disable-sync", "--no-proxy-server"],
      ...[
        "--remote-debugging-port=0",
        `--user-data-dir=${profile.path}`,
        `--window-size=${size.width},${size.height}`,
        "about:blank",
      ],
    ],
    stdin: "null",
    stdout: "null",
    stderr: "null",
  }).spawn();
  const portFile = profile.at("DevToolsActivePort");
  const port = await until("Chromium listens", () => {
    try {
      const [line = ""] = Deno.readTextFileSync(portFile).split("\n");
      return line === "" ? undefined : Number(line);
    } catch {
      return undefined;
    }
  }, { timeoutMs: 30_000 });
  const targets = JSON.parse((await fetchOnce({ port }, { path: "/json/list" })).body) as {
    type: string;
    webSocketDebuggerUrl: string;
  }[];
  const socket = new WebSocket(targets.find(({ type }) => type === "page")!.webSocketDebuggerUrl);
  await within("the page's socket", new Promise((resolve) => socket.onopen = resolve));
  const complaints: string[] = [];
  const requests: string[] = [];
  const waiting = new Map<number, (answer: Answer) => void>();
  const loads = new Set<() => void>();
  let last = 0;
  socket.onmessage = ({ data }) => {
    const message = JSON.parse(data);
    if (message.id !== undefined) return void waiting.get(message.id)?.(message);
    if (message.method === "Page.loadEventFired") { for (const load of loads) load(); }
    if (message.method === "Network.requestWillBeSent") requests.push(message.params.request.url);
    if (message.method === "Runtime.exceptionThrown") {
      complaints.push(message.params.exceptionDetails.exception?.description ?? "exception");
    }
    if (message.method === "Log.entryAdded" && message.params.entry.source !== "network") {
      complaints.push(message.params.entry.text);
    }
  };
  const send = async (method: string, params: Record<string, unknown> = {}): Promise<Record<string, unknown>> => {
    const id = ++last;
    const answer = await within(
      method,
      new Promise<Answer>((resolve) => {
        waiting.set(id, resolve);
        socket.send(JSON.stringify({ id, method, params }));
      }),
    );
    waiting.delete(id);
    if (answer.error !== undefined) throw new Error(`${method}: ${answer.error.message}`);
    return answer.result ?? {};
  };
  for (const domain of ["Page", "Runtime", "Log", "Network"]) await send(`${domain}.enable`);
  return {
    complaints,
    requests,
    async go(url) {
      const loaded = new Promise<void>((resolve) => loads.add(resolve));
      await send("Page.navigate", { url });
      await within(`the load of ${url}`, loaded);
      loads.clear();
    },
    async value(expression) {
      const { result, exceptionDetails } = await send("Runtime.evaluate", {
        expression,
        awaitPromise: true,
        returnByValue: true,
      }) as {
        result: { value: never };
        exceptionDetails?: { text: string };
      };
      if (exceptionDetails !== undefined) throw new Error(`${expression}: ${exceptionDetails.text}`);
      return result.value;
    },
    async screenshot(path, scheme) {
      await send("Emulation.setEmulatedMedia", { features: [{ name: "prefers-color-scheme", value: scheme }] });
      await new Promise((resolve) => setTimeout(resolve, 300));
      const { data } = await send("Page.captureScreenshot", { format: "png" });
      Deno.writeFileSync(path, Uint8Array.from(atob(data as string), (char) => char.charCodeAt(0)));
    },
    async [Symbol.asyncDispose]() {
      await send("Browser.close").catch(() => {});
      socket.close();
      await within("the end of Chromium", child.status).catch(() => child.kill("SIGKILL"));
      // Its helpers write a moment longer than it lives.
      await until("its profile is gone", () => {
        try {
          Deno.removeSync(profile.path, { recursive: true });
          return true;
        } catch (error) {
          return error instanceof Deno.errors.NotFound;
        }
      });
    },
  };
}

/** A port of this machine that leads to a unix socket, as `ssh -L` makes it. */
export function forwardTo(path: string): Disposable & { readonly port: number } {
  const listener = Deno.listen({ hostname: "127.0.0.1", port: 0 });
  const open = new Set<Deno.Conn>();
  const pass = async (from: Deno.Conn, to: Deno.Conn) => {
    try {
      const buffer = new Uint8Array(16_384);
      for (let count = await from.read(buffer); count !== null; count = await from.read(buffer)) {
        for (let done = 0; done < count;) done += await to.write(buffer.subarray(done, count));
      }
    } catch {
      /* One side has gone. */
    } finally {
      for (const side of [from, to]) {
        open.delete(side);
        try {
          side.close();
        } catch { /* Closed before. */ }
      }
    }
  };
  void (async () => {
    for await (const near of listener) {
      const far = await Deno.connect({ transport: "unix", path }).catch(() => undefined);
      if (far === undefined) {
        near.close();
        continue;
      }
      open.add(near).add(far);
      void pass(near, far);
      void pass(far, near);
    }
  })();
  return {
    port: (listener.addr as Deno.NetAddr).port,
    [Symbol.dispose]() {
      listener.close();
      for (const side of open) {
        try {
          side.close();
        } catch { /* Closed before. */ }
      }
    },
  };
}
