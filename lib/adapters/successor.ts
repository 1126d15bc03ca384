// Owns: the process of a supervisor that takes over from this one, and where this one runs. Must not: judge either.

import { existsSync } from "node:fs";
import { dirname, join } from "node:path";
import { installedPath } from "../install/succession.ts";
import { launcherName } from "../launch/launcher.ts";
import type { Surroundings } from "../runtime/upgrade_obstacle.ts";
import type { Successor } from "../runtime/upgrade.ts";
import { reason } from "./content.ts";

/**
 * Tells the new supervisor, and by inheritance its Envoys, whom it takes over from: `PID:START`. The pid alone may be another process'
 * later, whose upgrade must not take these Envoys for its own.
 */
const PREDECESSOR = "EPOCHD_SUCCEEDS";

/**
 * Between the two stands a shell that waits: systemd stops a main process in peace only where that is its own child (else it kills it at
 * once, seen on 252), which the new one becomes by the shell's end, while this one still lives to name it.
 */
const MIDDLE = '"$@" & wait "$!"';
const FIND_MS = 5_000;
const FIND_EVERY_MS = 2;

export async function startSuccessor(
  executable: string,
  inPlaceOf = Deno.pid,
): Promise<Successor | { readonly problem: string }> {
  const itself = `${inPlaceOf}:${statOf(inPlaceOf)?.startedAt ?? 0}`;
  const env: Record<string, string> = { ...Deno.env.toObject(), [PREDECESSOR]: itself };
  // It names the process that systemd has started: to the new one it would say that nobody watches it.
  delete env.WATCHDOG_PID;
  // The copy that it is started from is moved to its place later, and what was beside it is gone then.
  const launcher = join(dirname(installedPath(executable)), launcherName);
  if (existsSync(launcher)) env.EPOCHD_LAUNCHER = launcher;
  let middle: Deno.ChildProcess;
  try {
    middle = new Deno.Command("/bin/sh", {
      args: ["-c", MIDDLE, "sh", executable, ...Deno.args],
      env,
      clearEnv: true,
      // A session of its own: Ctrl-C and the end of this one's terminal are not its business.
      detached: true,
      stdin: "null",
      stdout: "inherit",
      stderr: "inherit",
    }).spawn();
  } catch (error) {
    return { problem: reason(error) };
  }
  let hasEnded = false;
  const exit = middle.status.then(({ code }) => {
    hasEnded = true;
    // As a shell tells of a child that was ended by a signal.
    return code > 128 ? { code, signal: signalName(code - 128) } : { code };
  });
  const pid = await childOf(middle.pid, () => hasEnded);
  if (pid === undefined) {
    return { problem: hasEnded ? `it ended at once with ${(await exit).code}` : "it is not there" };
  }
  return {
    pid,
    exit,
    signal(name) {
      if (!hasEnded) kill(pid, name);
    },
    endOrphans: () => endWith(`${PREDECESSOR}=${itself}`, pid),
    async release() {
      kill(middle.pid, "SIGKILL");
      await middle.status;
    },
  };
}

async function childOf(parent: number, isOver: () => boolean): Promise<number | undefined> {
  for (const beganMs = performance.now(); performance.now() - beganMs < FIND_MS && !isOver();) {
    for (const { name } of Deno.readDirSync("/proc")) {
      if (/^\d+$/.test(name) && statOf(Number(name))?.parent === parent) return Number(name);
    }
    await new Promise((resolve) => setTimeout(resolve, FIND_EVERY_MS));
  }
  return undefined;
}

function statOf(pid: number): { readonly parent: number; readonly startedAt: string } | undefined {
  try {
    // Behind the name, in which anything may stand: state, parent, ..., the start as the 22nd field of all.
    const fields = Deno.readTextFileSync(`/proc/${pid}/stat`).replace(/^.*\) /s, "").split(" ");
    return fields[0] === "Z" ? undefined : { parent: Number(fields[1]), startedAt: fields[19]! };
  } catch {
    return undefined;
  }
}

function kill(pid: number, signal: Deno.Signal): void {
  try {
    Deno.kill(pid, signal);
  } catch {
    // It has just ended.
  }
}

function signalName(number: number): string {
  return ({ 1: "SIGHUP", 6: "SIGABRT", 9: "SIGKILL", 11: "SIGSEGV", 15: "SIGTERM" })[number] ?? `signal ${number}`;
}

/** Its Envoys have inherited the variable. */
function endWith(variable: string, successor: number): void {
  for (const { name } of Deno.readDirSync("/proc")) {
    if (!/^\d+$/.test(name) || Number(name) === Deno.pid || Number(name) === successor) continue;
    try {
      if (Deno.readTextFileSync(`/proc/${name}/environ`).split("\0").includes(variable)) {
        Deno.kill(Number(name), "SIGKILL");
      }
    } catch {
      // Another user's, or gone.
    }
  }
}

/** Whether the supervisor that this process takes over from lives; undefined where it was started by nobody of its kind. */
export function predecessor(): (() => boolean) | undefined {
  const [, pid, startedAt] = /^([1-9]\d{0,9}):(\d+)$/.exec(Deno.env.get(PREDECESSOR) ?? "") ?? [];
  if (pid === undefined || Number(pid) === Deno.pid) return undefined;
  const lives = () => statOf(Number(pid))?.startedAt === startedAt;
  return lives() ? lives : undefined;
}

export async function surroundings(inPod: boolean): Promise<Surroundings> {
  const parentInit = Deno.ppid === 1 ? (await Deno.readTextFile("/proc/1/comm").catch(() => "")).trim() : undefined;
  const isMain = Deno.env.get("SYSTEMD_EXEC_PID") === String(Deno.pid);
  return {
    pid: Deno.pid,
    inPod,
    ...(parentInit === undefined ? {} : { parentInit }),
    isUnheardMain: isMain && (Deno.env.get("NOTIFY_SOCKET") ?? "") === "",
  };
}
