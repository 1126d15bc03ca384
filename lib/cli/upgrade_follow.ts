// Owns: following an upgrade of epochd from one supervisor to the other: the old one is asked as long as it lives, then the new one.
// Must not: ask for it, or touch files.

import { connectTo } from "../api/client.ts";
import { ownSocket, socketPlace } from "../api/socket_path.ts";
import type { SupervisorStatus } from "../runtime/control.ts";
import type { Progress } from "./progress.ts";

export type End =
  | { readonly kind: "done" }
  /** `isAlive`: the new one lives on, with a part of the services or out of sight. */
  | { readonly kind: "failed"; readonly detail: string; readonly isAlive: boolean };

export interface Following {
  /** What clients use: a link, which is the old one's and becomes the new one's. */
  readonly socket: string;
  readonly oldPid: number;
  readonly newPid: number;
  readonly progress: Progress | undefined;
  readonly lookMs?: number;
  /** How long nobody need answer, once the old one is gone. */
  readonly silenceMs?: number;
}

export async function followUpgrade(
  { socket, oldPid, newPid, progress, lookMs = 150, silenceMs = 15_000 }: Following,
): Promise<End> {
  const place = socketPlace(socket);
  const sockets = { old: [ownSocket(place, oldPid, 0), socket], new: [ownSocket(place, newPid, 0), socket] };
  const tell = teller(progress, newPid);
  let silentSinceMs: number | undefined;
  for (;;) {
    const old = await statusAt(sockets.old, oldPid);
    const upgrade = old?.upgrade?.pid === newPid ? old.upgrade : undefined;
    if (old !== undefined && upgrade?.phase === "failed") {
      const next = await statusAt(sockets.new, newPid);
      return { kind: "failed", detail: upgrade.detail ?? "no reason known", isAlive: next !== undefined };
    }
    if (upgrade !== undefined) tell(upgrade.services ?? {}, upgrade.phase === "taken_over");
    if (old === undefined) {
      const next = await statusAt(sockets.new, newPid);
      if (next !== undefined) {
        const services = Object.entries(next.services);
        const isServing = services.every(([, { epochs }]) =>
          epochs.some(({ role, liveForMs }) => role === "newest" && liveForMs !== undefined)
        );
        tell(Object.fromEntries(services.map(([name, { phase }]) => [name, phase])), isServing);
        if (isServing) {
          progress?.step(`the supervisor with pid ${oldPid} has ended`, undefined);
          return { kind: "done" };
        }
      }
      silentSinceMs ??= performance.now();
      if (performance.now() - silentSinceMs > silenceMs) {
        const detail =
          `the old supervisor (pid ${oldPid}) has ended, and the new one (pid ${newPid}) does not say that it serves`;
        return { kind: "failed", detail, isAlive: true };
      }
    } else silentSinceMs = undefined;
    await new Promise((resolve) => setTimeout(resolve, lookMs));
  }
}

/** Of the supervisor with this pid, by the first of these sockets that is its own. */
async function statusAt(sockets: readonly string[], pid: number): Promise<SupervisorStatus | undefined> {
  for (const socket of sockets) {
    const answer = await connectTo(socket).status();
    if (answer.kind === "ok" && answer.value.pid === pid) return answer.value;
  }
  return undefined;
}

function teller(progress: Progress | undefined, pid: number) {
  const told = new Map<string, string>();
  let isTold = false;
  return (services: Readonly<Record<string, string>>, takenOver: boolean) => {
    for (const [name, text] of Object.entries(services)) {
      if (told.get(name) === text || isTold) continue;
      told.set(name, text);
      progress?.step(`service ${name} at pid ${pid}: ${text.replaceAll("_", " ")}`, "it takes over");
    }
    if (!takenOver || isTold) return;
    isTold = true;
    progress?.step(`every service is LIVE at pid ${pid}`, "the old epochs drain");
  };
}
