// Owns: seeing one Envoy take over from another from outside, the same way under every supervisor. Must not: trust a supervisor's word.
import { serverInfo } from "../../tests/support/admin.ts";
import { argvOf, isAlive, processesWithArgument } from "../../tests/support/procfs.ts";
import type { Mark } from "./blame.ts";
import { now } from "./held.ts";

const LOOK_MS = 25;
const LIVE_LIMIT_MS = 30_000;
/** After parent-shutdown: what the end of a process may take. */
const GONE_LIMIT_MS = 15_000;
const ADMIN_LIMIT_MS = 1_000;

/** Living Envoys of a base id; neither validators nor a supervisor that has the same flag. */
export function envoysOf(baseId: number): number[] {
  return processesWithArgument("--base-id", String(baseId)).filter((pid) => {
    const argv = argvOf(pid);
    return argv.includes("--restart-epoch") && !argv.includes("--mode");
  });
}

export interface Place {
  readonly baseId: number;
  readonly adminPort: number;
}

/** The version that serves, once an Envoy is LIVE. */
export async function untilLive(place: Place, over: AbortSignal, ended: () => string | undefined): Promise<string> {
  const deadlineMs = now() + LIVE_LIMIT_MS;
  while (now() < deadlineMs) {
    over.throwIfAborted();
    const why = ended();
    if (why !== undefined) throw new Error(`the supervisor ended before its Envoy was LIVE: ${why}`);
    const live = await liveAmong(place, envoysOf(place.baseId));
    if (live !== undefined) return live.version;
    await pause();
  }
  throw new Error(
    `no Envoy of base id ${place.baseId} was LIVE within ${LIVE_LIMIT_MS} ms: ${ended() ?? "the supervisor runs"}`,
  );
}

/** From the trigger until the successor is LIVE and every predecessor is gone. */
export async function changeOver(
  place: Place & { readonly parentShutdownTimeMs: number },
  number: number,
  from: string,
  trigger: () => unknown,
  over: AbortSignal,
  ended: () => string | undefined,
): Promise<Mark> {
  const old = envoysOf(place.baseId);
  const triggeredAtMs = now();
  await trigger();
  const seen = { number, triggeredAtMs, from };
  let goneAtMs: number | undefined;
  let live: { readonly version: string } | undefined;
  const look = () => {
    if (goneAtMs === undefined && !old.some(isAlive)) goneAtMs = now();
  };
  while (live === undefined) {
    over.throwIfAborted();
    const isVain = ended() !== undefined && envoysOf(place.baseId).length === 0;
    if (isVain || now() - triggeredAtMs > LIVE_LIMIT_MS) {
      return { ...seen, kind: "failed", ...(goneAtMs && { goneAtMs }) };
    }
    look();
    live = await liveAmong(place, envoysOf(place.baseId).filter((pid) => !old.includes(pid)));
    if (live === undefined) await pause();
  }
  const liveAtMs = now();
  const wasGone = goneAtMs !== undefined;
  while (goneAtMs === undefined && now() - liveAtMs < place.parentShutdownTimeMs + GONE_LIMIT_MS) {
    over.throwIfAborted();
    await pause();
    look();
  }
  const kind = wasGone ? "replaced" : "handoff";
  return { ...seen, kind, liveAtMs, to: live.version, ...(goneAtMs !== undefined && { goneAtMs }) };
}

/** Asked on a fresh connection, and believed only if it is one of these processes that answers. */
async function liveAmong(
  { adminPort }: Place,
  pids: readonly number[],
): Promise<{ readonly version: string } | undefined> {
  if (pids.length === 0) return undefined;
  const epochs = pids.map((pid) => {
    const argv = argvOf(pid);
    return Number(argv[argv.indexOf("--restart-epoch") + 1]);
  });
  try {
    const { state, epoch, version } = await serverInfo({ port: adminPort }, ADMIN_LIMIT_MS);
    return state === "LIVE" && epochs.includes(epoch) ? { version } : undefined;
  } catch {
    // Between two epochs nobody answers admin.
    return undefined;
  }
}

function pause(): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, LOOK_MS));
}
