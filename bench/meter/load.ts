// Owns: the load beside the held clients: wrk where it is installed, else a Deno of its own, and what it has met.
// Must not: count twice what the held clients count, or let an outage end the load for good.
import { existsSync } from "node:fs";
import { tempDir } from "../../tests/support/tempdir.ts";
import { now, sleep } from "./held.ts";
import { type LoadErrors, type LoadLog, parseLog, parseWrkErrors } from "./load_log.ts";

export interface LoadOptions {
  readonly url: string;
  readonly requestsPerSecond: number;
  /** A connection that is told to go has nowhere else to go: the server is to stop. */
  readonly leave: boolean;
}

export interface LoadReport extends LoadLog {
  readonly tool: "wrk" | "deno";
  readonly startMs: number;
  readonly endMs: number;
  readonly errors: LoadErrors;
  /** After an outage: its connections were gone. Unix ms. */
  readonly restartsAtMs: readonly number[];
}

export interface Load extends AsyncDisposable {
  stop(): Promise<LoadReport>;
}

export const CONNECTIONS = 16;
const WRK = "/usr/bin/wrk";
/** Asked for beyond the rate that is wanted, since a late timer is not made up for. */
const HEADROOM = 1.2;
/** Beside the pause between two requests: what one takes, and what a timer is late. */
const OVERHEAD_MS = 0.4;
const LOOK_MS = 1_000;
/** wrk ends by itself after this; nobody lets it run so long. */
const FOR_EVER = "3600s";

export function loadTool(): "wrk" | "deno" {
  return existsSync(WRK) ? "wrk" : "deno";
}

export function startLoad(options: LoadOptions, tool: "wrk" | "deno" = loadTool()): Load {
  const directory = tempDir();
  const stopping = new AbortController();
  const startMs = now();
  const restartsAtMs: number[] = [];
  const errors = { refused: 0, reset: 0, unanswered: 0 };
  let runs = 0;
  const one = () => {
    const logs = directory.at(`run-${runs++}`);
    Deno.mkdirSync(logs);
    return runOne(tool, options, logs);
  };
  const add = (more: LoadErrors) => {
    for (const name of ["refused", "reset", "unanswered"] as const) errors[name] += more[name];
  };
  // Where the server is to stop, connections end one by one, and that is as it should be.
  const supervise = async () => {
    let running = one();
    for (let atMs = now(), seen = 0; !stopping.signal.aborted;) {
      await Promise.race([sleep(LOOK_MS, stopping.signal), options.leave ? running.ended : never]);
      if (stopping.signal.aborted || options.leave) break;
      const size = bytesIn(directory.path);
      // Neither tool comes back by itself from connections that were refused.
      const isDown = now() - atMs > LOOK_MS && (size - seen) / LINE_BYTES < options.requestsPerSecond / 4;
      [seen, atMs] = [size, now()];
      if (!isDown) continue;
      add(await running.stop());
      restartsAtMs.push(now());
      running = one();
      // A tool writes down its first lines by the block.
      await sleep(LOOK_MS, stopping.signal);
      [seen, atMs] = [bytesIn(directory.path), now()];
    }
    if (options.leave) await Promise.race([running.ended, aborted(stopping.signal)]);
    add(await running.stop());
  };
  const supervised = supervise();
  supervised.catch(() => {});
  let stopped: Promise<LoadReport> | undefined;
  const stop = () =>
    stopped ??= (async () => {
      const endMs = now();
      stopping.abort();
      try {
        await supervised;
        const log = parseLog(filesIn(directory.path).map((path) => Deno.readTextFileSync(path)).join(""));
        return { tool, startMs, endMs, errors, restartsAtMs, ...log };
      } finally {
        await directory[Symbol.asyncDispose]();
      }
    })();
  return { stop, [Symbol.asyncDispose]: async () => void await stop() };
}

function aborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => signal.aborted ? resolve() : signal.addEventListener("abort", () => resolve()));
}

/** About what one request adds to the log. */
const LINE_BYTES = 26;
const never = new Promise<never>(() => {});

interface Running {
  readonly ended: Promise<unknown>;
  stop(): Promise<LoadErrors>;
}

function runOne(tool: "wrk" | "deno", { url, requestsPerSecond, leave }: LoadOptions, logs: string): Running {
  const here = (name: string) => decodeURIComponent(new URL(name, import.meta.url).pathname);
  const periodMs = 1000 * CONNECTIONS / (HEADROOM * requestsPerSecond);
  const last = leave ? ["leave"] : [];
  const [path, args] = tool === "wrk"
    ? [WRK, [
      ...[`-t${CONNECTIONS}`, `-c${CONNECTIONS}`, `-d${FOR_EVER}`, "--timeout", "5s", "-s", here("wrk.lua"), url],
      ...["--", logs, String(Math.max(2, Math.floor(periodMs - OVERHEAD_MS))), ...last],
    ]]
    : [Deno.execPath(), ["run", "-A", "--quiet", here("load_client.ts"), url, logs, String(periodMs), ...last]];
  const child = new Deno.Command(path, {
    args,
    stdin: "null",
    stdout: "piped",
    stderr: "null",
    // Ctrl-C is for the meter, which ends its load itself.
    detached: true,
  }).spawn();
  const output = new Response(child.stdout).text();
  let ended = false;
  const status = child.status.then(() => ended = true);
  return {
    ended: status,
    async stop() {
      if (!ended) child.kill("SIGINT");
      const timer = setTimeout(() => !ended && child.kill("SIGKILL"), 5_000);
      await status;
      clearTimeout(timer);
      const text = await output;
      return tool === "wrk"
        ? parseWrkErrors(text)
        : JSON.parse(text === "" ? `{"refused":0,"reset":0,"unanswered":0}` : text);
    },
  };
}

function filesIn(directory: string): string[] {
  return [...Deno.readDirSync(directory)].flatMap(({ name, isDirectory }) =>
    isDirectory ? filesIn(`${directory}/${name}`) : [`${directory}/${name}`]
  );
}

function bytesIn(directory: string): number {
  return filesIn(directory).reduce((sum, path) => sum + Deno.statSync(path).size, 0);
}
