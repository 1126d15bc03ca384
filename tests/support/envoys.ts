// Owns: where the real Envoys of the toolchain are, and running a bare one (no epochd) for benches and for tests of
// the support code. Must not clean up after Envoys that it did not start.
//
// Envoy asks the kernel for SIGTERM when the *thread* that spawned it ends: a bare Envoy lives no longer than the test
// file (or worker) that called spawnEnvoy.
import { serverInfo } from "./admin.ts";
import type { Target } from "./http_client.ts";
import { until, within } from "./until.ts";

export const ENVOY_VERSIONS = ["1.38.3", "1.39.3", "1.40.0"] as const;
export type EnvoyVersion = typeof ENVOY_VERSIONS[number];
export const NEWEST_ENVOY: EnvoyVersion = "1.40.0";

export function toolsDir(): string {
  return Deno.env.get("TOOLS_DIR") ?? decodeURIComponent(new URL("../../.tools", import.meta.url).pathname);
}

export function envoyPath(version: EnvoyVersion = NEWEST_ENVOY): string {
  const path = `${toolsDir()}/envoy/${version}/envoy`;
  try {
    Deno.statSync(path);
  } catch {
    throw new Error(`no Envoy ${version} at ${path}: run "make setup" (or set TOOLS_DIR to a folder that has it)`);
  }
  return path;
}

export interface EnvoyOptions {
  readonly version?: EnvoyVersion;
  /** Instead of `version`. */
  readonly envoyPath?: string;
  readonly bootstrapPath: string;
  readonly baseId: number;
  readonly epoch?: number;
  readonly concurrency?: number;
  readonly drainTimeS?: number;
  readonly parentShutdownTimeS?: number;
  readonly extraArguments?: readonly string[];
  readonly environment?: Readonly<Record<string, string>>;
}

export interface BareEnvoy extends AsyncDisposable {
  readonly pid: number;
  readonly epoch: number;
  readonly exit: Promise<Deno.CommandStatus>;
  /** What it wrote to stderr, the last megabyte. */
  log(): string;
  kill(signal?: Deno.Signal): void;
  /** Waits until the admin answers LIVE at this epoch; fails at once when the process ends. */
  untilLive(admin: Target): Promise<void>;
}

export function spawnEnvoy(options: EnvoyOptions): BareEnvoy {
  const epoch = options.epoch ?? 0;
  const child = new Deno.Command(options.envoyPath ?? envoyPath(options.version), {
    args: [
      ...["-c", options.bootstrapPath, "--base-id", String(options.baseId), "--restart-epoch", String(epoch)],
      ...["--concurrency", String(options.concurrency ?? 1)],
      ...["--drain-time-s", String(options.drainTimeS ?? 2)],
      ...["--parent-shutdown-time-s", String(options.parentShutdownTimeS ?? 4)],
      ...(options.extraArguments ?? []),
    ],
    env: { RESTART_EPOCH: String(epoch), ...options.environment },
    stdin: "null",
    stdout: "null",
    stderr: "piped",
  }).spawn();

  let log = "";
  // Always drained: a full pipe would wedge the admin of every Envoy that shares the segment's log mutex.
  const drained = (async () => {
    for await (const text of child.stderr.pipeThrough(new TextDecoderStream())) log = (log + text).slice(-1_000_000);
  })();
  let status: Deno.CommandStatus | undefined;
  const exit = child.status.then((ended) => (status = ended));
  const kill = (signal: Deno.Signal = "SIGTERM") => {
    if (status === undefined) child.kill(signal);
  };
  return {
    pid: child.pid,
    epoch,
    exit,
    log: () => log,
    kill,
    async untilLive(admin) {
      await until(`Envoy epoch ${epoch} is LIVE`, async () => {
        if (status !== undefined) return "ended";
        const info = await serverInfo(admin);
        return info.state === "LIVE" && info.epoch === epoch;
      });
      if (status !== undefined) throw new Error(`Envoy epoch ${epoch} ended with ${JSON.stringify(status)}:\n${log}`);
    },
    async [Symbol.asyncDispose]() {
      kill("SIGKILL");
      await within(`the end of Envoy ${child.pid}`, exit);
      await drained;
    },
  };
}
