// Owns: what is measured: epochd, or any other supervisor by its command line. Must not: know what is measured, or how.
import { type Epochd, type Program, runEpochd, startEpochd } from "../../tests/support/epochd.ts";
import { isAlive } from "../../tests/support/procfs.ts";
import { type TempDir, tempDir } from "../../tests/support/tempdir.ts";
import type { Bounds } from "./blame.ts";
import { envoysOf } from "./observer.ts";
import { peerCommand } from "./peer_command.ts";
import type { Stage } from "./stage.ts";

/** A supervisor that runs. Disposing of it ends it and every Envoy of its base id. */
export interface Supervised extends AsyncDisposable {
  signal(signal: Deno.Signal): void;
  readonly exit: Promise<unknown>;
  /** Why it has ended; undefined while it runs. */
  readonly ended: () => string | undefined;
}

export interface Subject {
  readonly name: string;
  /** What its reports are filed under. */
  readonly key: string;
  start(stage: Stage, bounds: Bounds): Supervised;
}

export async function epochdSubject(program: Program): Promise<Subject> {
  const name = (await runEpochd(["--version"], program)).stdout.trim();
  return {
    name,
    key: "epochd",
    start: (stage, bounds) => asSupervised(startOne(stage, bounds, program, stage.directory, ["--no-watch-config"])),
  };
}

/** One of several supervisors that share what pods of a node share. */
export function startPod(stage: Stage, bounds: Bounds, program: Program): Supervised & { readonly log: Epochd["log"] } {
  const directory = tempDir();
  const state = stage.directory.at("state");
  const flags = ["--cross-pod", "--state-dir", state, "--when-superseded", "wait", "--no-watch-config"];
  const epochd = startOne(stage, bounds, program, directory, flags);
  const supervised = asSupervised(epochd);
  return {
    ...supervised,
    log: epochd.log,
    async [Symbol.asyncDispose]() {
      await supervised[Symbol.asyncDispose]();
      await directory[Symbol.asyncDispose]();
    },
  };
}

function startOne(stage: Stage, bounds: Bounds, program: Program, directory: TempDir, flags: string[]): Epochd {
  return startEpochd({
    envoyPath: stage.envoyPath,
    bootstrapPath: stage.bootstrapPath,
    baseId: stage.baseId,
    directory,
    program,
    // As a peer has it, whose command line knows nothing of it.
    concurrency: "default",
    ...bounds,
    extraArguments: flags,
  });
}

function asSupervised(epochd: Epochd): Supervised {
  let why: string | undefined;
  epochd.exit.then(({ code }) => why = `exit code ${code}\n${epochd.log.tail(20)}`);
  return {
    signal: (signal) => epochd.signal(signal),
    exit: epochd.exit,
    ended: () => why,
    [Symbol.asyncDispose]: () => epochd[Symbol.asyncDispose](),
  };
}

/** `command` has placeholders; see peer_command.ts. */
export function peerSubject(command: string): Subject {
  return {
    name: "peer",
    key: "peer",
    start(stage, bounds) {
      const { baseId, envoyPath, bootstrapPath } = stage;
      const { line, environment } = peerCommand(command, { baseId, envoyPath, bootstrapPath, ...bounds });
      const log = stage.directory.at("peer.log");
      // `exec`: the signals are for the supervisor, not for the shell in front of it. A file: nobody may block on a pipe.
      const child = new Deno.Command("/bin/sh", {
        args: ["-c", `exec ${line} >>"$METER_LOG" 2>&1`],
        env: { ...environment, METER_LOG: log },
        stdin: "null",
        stdout: "null",
        stderr: "null",
        detached: true,
      }).spawn();
      let why: string | undefined;
      const exit = child.status.then(({ code, signal }) => {
        const tail = Deno.readTextFileSync(log).trimEnd().split("\n").slice(-10).join("\n");
        why = `${signal ?? `exit code ${code}`}\n${tail}`;
      });
      const signal = (name: Deno.Signal) => {
        if (why === undefined) child.kill(name);
      };
      return {
        signal,
        exit,
        ended: () => why,
        async [Symbol.asyncDispose]() {
          signal("SIGTERM");
          const timer = setTimeout(() => signal("SIGKILL"), 10_000);
          await exit;
          clearTimeout(timer);
          await endEnvoys(stage.baseId);
        },
      };
    },
  };
}

/** A peer may leave its Envoys behind. */
async function endEnvoys(baseId: number): Promise<void> {
  for (let looks = 0; looks < 200; looks++) {
    const left = envoysOf(baseId).filter(isAlive);
    if (left.length === 0) return;
    // They may be ending by the supervisor's own signal.
    if (looks > 40) { for (const pid of left) Deno.kill(pid, "SIGKILL"); }
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}
