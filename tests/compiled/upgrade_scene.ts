// Owns: the stage of an upgrade of epochd itself: an installed executable, another version of it, the supervisors that came of it.
// Must not: judge.

import { join } from "node:path";
import { compile, distDir } from "../../tools/compile.ts";
import { type BootstrapOptions, writeBootstrap } from "../support/bootstrap.ts";
import { envoyPath } from "../support/envoys.ts";
import { type CommandResult, type Epochd, type EpochdOptions, startEpochd } from "../support/epochd.ts";
import { freePorts } from "../support/ports.ts";
import { isAlive, processesWithArgument } from "../support/procfs.ts";
import { type TempDir, tempDir } from "../support/tempdir.ts";
import { startTraffic, type Traffic, type TrafficOptions } from "../support/traffic.ts";
import { until } from "../support/until.ts";
import { startUpstream } from "../support/upstream.ts";

export const OTHER_VERSION = "0.1.9";
const LIBRARY = "libgcc_s.so.1";

/** The same program that says that it is another version: the text has the same length, so that nothing moves. */
export async function otherVersion(to: string): Promise<string> {
  const bytes = await Deno.readFile(join(distDir, "epochd"));
  const [from, replacement] = ['version = "0.1.0"', `version = "${OTHER_VERSION}"`].map((text) =>
    new TextEncoder().encode(text)
  );
  const at = new TextDecoder("latin1").decode(bytes).indexOf(new TextDecoder().decode(from));
  if (at < 0) throw new Error("the version stands nowhere in the executable");
  bytes.set(replacement!, at);
  await Deno.writeFile(to, bytes, { mode: 0o755 });
  return to;
}

export interface UpgradeScene extends AsyncDisposable {
  readonly directory: TempDir;
  readonly installed: string;
  readonly previous: string;
  /** Another version, elsewhere. */
  readonly other: string;
  readonly bootstrapPath: string;
  start(options?: Partial<EpochdOptions>): Promise<Epochd>;
  traffic(options?: Partial<TrafficOptions>): Traffic;
  upgrade(to: string, ...args: string[]): Promise<CommandResult>;
  /** Supervisors of this scene that live. */
  supervisors(): number[];
  /** SIGTERM to all of them, and their end. */
  stop(): Promise<void>;
}

/** What is in the installed directory before an upgrade. */
export const INSTALLED: readonly string[] = ["epochd", "epochd-launch", LIBRARY];

export async function upgradeScene(changes: Partial<BootstrapOptions> = {}): Promise<UpgradeScene> {
  await compile();
  const directory = tempDir();
  const [installed, other] = [directory.at("bin/epochd"), directory.at("new/epochd")];
  for (const dir of ["bin", "new"]) {
    await Deno.mkdir(directory.at(dir));
    await Deno.copyFile(join(distDir, LIBRARY), directory.at(dir, LIBRARY));
  }
  for (const name of ["epochd", "epochd-launch"]) await Deno.copyFile(join(distDir, name), directory.at("bin", name));
  await otherVersion(other);
  const [listenPort, adminPort, upstreamPort] = freePorts(3) as [number, number, number];
  const upstream = startUpstream(upstreamPort);
  const bootstrapPath = writeBootstrap(directory.at("envoy.yaml"), { listenPort, adminPort, upstreamPort, ...changes });
  const started: Epochd[] = [];
  const flowing: Traffic[] = [];
  const apiSocket = directory.at("run/api.sock");
  const supervisors = () => processesWithArgument("--api-socket", apiSocket).filter(isRunning);
  const stop = async () => {
    for (const pid of supervisors()) Deno.kill(pid, "SIGTERM");
    await until("every supervisor has ended", () => supervisors().length === 0, { timeoutMs: 30_000 });
  };
  return {
    directory,
    installed,
    previous: `${installed}.previous`,
    other,
    bootstrapPath,
    supervisors,
    stop,
    async start(options = {}) {
      const epochd = startEpochd({
        program: [installed],
        envoyPath: envoyPath(),
        bootstrapPath,
        directory,
        extraArguments: ["--cross-pod"],
        ...options,
      });
      started.push(epochd);
      await epochd.waitForEvent("ready_changed", ({ ready }) => ready === true);
      await epochd.waitForEvent("api_listening");
      return epochd;
    },
    traffic(options = {}) {
      const traffic = startTraffic({ port: listenPort, ...options });
      flowing.push(traffic);
      return traffic;
    },
    async upgrade(to, ...args) {
      const { code, stdout, stderr } = await new Deno.Command(installed, {
        args: ["upgrade", "--to", to, "--api-socket", apiSocket, ...args],
        stdin: "null",
      }).output();
      const decoder = new TextDecoder();
      return { code, stdout: decoder.decode(stdout), stderr: decoder.decode(stderr) };
    },
    async [Symbol.asyncDispose]() {
      for (const traffic of flowing) await traffic.stop();
      await stop().catch(() => {
        for (const pid of supervisors()) Deno.kill(pid, "SIGKILL");
      });
      for (const epochd of started) await epochd[Symbol.asyncDispose]();
      await upstream[Symbol.asyncDispose]();
      await directory[Symbol.asyncDispose]();
    },
  };
}

/** Commands have the same argument, and so has the shell above a supervisor that comes up. */
function isRunning(pid: number): boolean {
  if (!isAlive(pid)) return false;
  try {
    const args = Deno.readTextFileSync(`/proc/${pid}/cmdline`).split("\0");
    return args.includes("run") && args[0] !== "/bin/sh";
  } catch {
    return false;
  }
}
