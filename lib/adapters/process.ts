// Owns: starting Envoy processes, signalling them and telling how they ended. Must not: decide, or read what they print.
// Use from the main isolate only: Envoy sets PR_SET_PDEATHSIG and ends with the thread that spawned it.

import type { ChildSignal } from "../core/effect.ts";
import type { Exit, Plan } from "../core/epoch.ts";
import { type Refusal, refusal } from "../core/refusal.ts";
import type { ChildProcess, Processes, Spawned, SpawnRequest } from "../runtime/ports.ts";
import { reason } from "./content.ts";
import { ELF_HEADER_BYTES, elfSize, foreignHeader } from "./elf.ts";
import { KeptBinaries } from "./kept_binaries.ts";
import { epochArgs, epochEnv, type EpochFlags } from "./envoy_args.ts";

export interface EnvoyProcessesOptions {
  readonly flagsOf: (plan: Plan) => EpochFlags;
  /** Whether the file is still, by its stat, the one that had this digest. */
  readonly isStill: (path: string, digest: string) => boolean;
  /** The bootstrap may have been removed since it was checked. */
  readonly restore?: (bootstrapPath: string) => void;
  /** More of the environment, asked for at each spawn. */
  readonly environment?: () => Readonly<Record<string, string>>;
  /** Who makes the process. Default: this one, whose child it is. */
  readonly starter?: Starter;
}

export class EnvoyProcesses implements Processes {
  private readonly kept: KeptBinaries;

  constructor(private readonly options: EnvoyProcessesOptions) {
    this.kept = new KeptBinaries(options.isStill);
  }

  spawn(request: SpawnRequest): Spawned {
    const { epoch, plan } = request;
    const path = this.executable(request);
    const foreign = headerProblem(path);
    if (foreign !== undefined) return { kind: "failed", refusal: foreign };
    this.options.restore?.(plan.bootstrapPath);
    const args = epochArgs(this.options.flagsOf(plan), epoch, plan.bootstrapPath);
    const env = { ...epochEnv(epoch), ...this.options.environment?.() };
    try {
      const { starter = ownChildren } = this.options;
      return { kind: "spawned", process: starter.start(path, args, env, epoch) };
    } catch (error) {
      return { kind: "failed", refusal: execRefusal(path, error) };
    }
  }

  keepBinary(
    { digest, path, pid }: { readonly digest: string; readonly path: string; readonly pid: number },
    keepDigests: readonly string[],
  ): string | undefined {
    this.kept.prune(keepDigests);
    return this.kept.keep(digest, path, pid);
  }

  /**
   * The file; where that is no longer the one (replaced or unlinked), what was kept of it or the living process' own image (verified
   * 1.38 to 1.40).
   */
  private executable({ plan, sameBinaryAsPid }: SpawnRequest): string {
    if (this.options.isStill(plan.binaryPath, plan.binaryDigest)) return plan.binaryPath;
    const kept = this.kept.find(plan.binaryDigest);
    if (kept !== undefined) return kept;
    return sameBinaryAsPid === undefined ? plan.binaryPath : `/proc/${sameBinaryAsPid}/exe`;
  }
}

/** How a program and its arguments become a process. Throws as Deno.Command does. */
export interface Starter {
  start(path: string, args: readonly string[], env: Readonly<Record<string, string>>, epoch: number): ChildProcess;
}

const ownChildren: Starter = {
  start(path, args, env) {
    const child = new Deno.Command(path, {
      args: [...args],
      env: { ...env },
      // Its own session: Ctrl-C goes to epochd alone, and Envoy (1.38 to 1.40) ends at once by SIGINT.
      detached: true,
      stdin: "null",
      stdout: "inherit",
      stderr: "inherit",
    }).spawn();
    return new EnvoyProcess(child);
  },
};

class EnvoyProcess implements ChildProcess {
  readonly pid: number;
  readonly exit: Promise<Exit>;
  private ended = false;

  constructor(private readonly child: Deno.ChildProcess) {
    this.pid = child.pid;
    this.exit = child.status.then(
      ({ code, signal }) => signal === null ? { code } : { code, signal },
      () => ({ code: 255 }),
    ).then((exit) => {
      this.ended = true;
      return exit;
    });
  }

  signal(signal: ChildSignal): boolean {
    if (this.ended) return false;
    try {
      this.child.kill(signal);
      return true;
    } catch {
      return false;
    }
  }
}

/** Why this binary can't be executed, in the words of a refusal; undefined when the kernel may try. */
export function headerProblem(path: string): Refusal | undefined {
  try {
    using file = Deno.openSync(path);
    const header = new Uint8Array(ELF_HEADER_BYTES);
    const read = file.readSync(header) ?? 0;
    const why = foreignHeader(header.subarray(0, read), Deno.build.arch);
    if (why !== undefined) return refusal("binary_wrong_architecture", `run ${path}: ${why}`);
    const [whole, size] = [elfSize(header.subarray(0, read)), file.statSync().size];
    if (size >= whole) return undefined;
    return refusal("binary_not_executable", `run ${path}: is cut short: ${size} of at least ${whole} bytes`);
  } catch (error) {
    // Executable and unreadable (mode 0111) is fine for exec; a missing file is exec's to tell.
    if (error instanceof Deno.errors.PermissionDenied) return undefined;
    return execRefusal(path, error);
  }
}

export function execRefusal(path: string, error: unknown): Refusal {
  const text = error instanceof Error ? error.message : String(error);
  const errno = Number(/os error (\d+)/.exec(text)?.[1] ?? 0);
  const why = reason(error);
  if (errno === 2 && path.startsWith("/proc/")) {
    return refusal("spawn_failed", `run ${path}: the process whose binary it is has ended`);
  }
  if (errno === 2) {
    // ENOENT for a file that is there: its ELF interpreter isn't.
    return exists(path)
      ? refusal("spawn_failed", `run ${path}: the loader or interpreter that it names is missing`)
      : refusal("binary_missing", `run ${path}: no such file`);
  }
  if (errno === 20) return refusal("binary_missing", `run ${path}: a part of the path is not a directory`);
  if (errno === 13 || errno === 21) return refusal("binary_not_executable", `run ${path}: ${why}`);
  if (errno === 8) return refusal("binary_wrong_architecture", `run ${path}: ${why}`);
  return refusal("spawn_failed", `run ${path}: ${why}`);
}

function exists(path: string): boolean {
  try {
    Deno.statSync(path);
    return true;
  } catch {
    return false;
  }
}
