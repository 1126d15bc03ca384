// Owns: where epochd-launch lies, and whether an Envoy may outlive this supervisor here. Must not: build it (tools/native_launch.ts).

import { dirname, join } from "node:path";

export const launcherName = "epochd-launch";

/** Inits of containers that end with their one child, and everything with them. */
const ENDING_INITS = ["tini", "docker-init", "podman-init", "catatonit", "dumb-init"];

/** Beside this executable, where `epochd install` puts it; EPOCHD_LAUNCHER names another one. */
export function launcherPath(): string {
  return Deno.env.get("EPOCHD_LAUNCHER") ?? join(dirname(Deno.execPath()), launcherName);
}

export interface Place {
  readonly pid: number;
  readonly parentPid: number;
  readonly inPod: boolean;
  readonly initName: string | undefined;
  readonly launcher: string;
}

export function thisPlace(): Place {
  return {
    pid: Deno.pid,
    parentPid: Deno.ppid,
    inPod: Deno.env.get("KUBERNETES_SERVICE_HOST") !== undefined,
    initName: readLine("/proc/1/comm"),
    launcher: launcherPath(),
  };
}

/** Why `on_supervisor_death: serve` can't be had here; undefined where it can. */
export function servingProblem(place: Place): string | undefined {
  const problem = (why: string) => `--on-supervisor-death serve: ${why}`;
  const end = "expected end, or epochd on a plain node, under its init or systemd";
  if (place.pid === 1) return problem(`epochd is PID 1 here, whose end is everyone's: ${end}`);
  if (place.inPod) return problem(`this is a Kubernetes pod, where the end of a container is everyone's: ${end}`);
  if (place.parentPid === 1 && ENDING_INITS.includes(place.initName ?? "")) {
    return problem(`PID 1 is ${place.initName}, which ends with epochd, and everyone with it: ${end}`);
  }
  try {
    const { isFile, mode } = Deno.statSync(place.launcher);
    if (isFile && ((mode ?? 0) & 0o111) !== 0) return undefined;
  } catch {
    // Said below.
  }
  return problem(
    `${place.launcher} is no executable file: expected ${launcherName} beside epochd, as \`epochd install\` puts it`,
  );
}

function readLine(path: string): string | undefined {
  try {
    return Deno.readTextFileSync(path).trim();
  } catch {
    return undefined;
  }
}
