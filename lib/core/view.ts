// Owns: the status of a service, derived from its state. Must not: hold or change anything.

import type { AdminAddress, Child, Epoch } from "./epoch.ts";
import type { Role } from "./fact.ts";
import type { StandIn } from "./standing.ts";
import type { Phase, State } from "./state.ts";
import type { EpochStatus, ServiceStatus } from "./status.ts";
import { isReady } from "./ready.ts";

/** The status at `nowMs`, a time of the clock that the events had. */
export function view(state: State, nowMs: number): ServiceStatus {
  const { phase, pending } = state;
  const step = stepOf(phase);
  const note = noteOf(state);
  return {
    phase: phase.kind,
    ...(step === undefined ? {} : { step }),
    ready: isReady(state),
    ...(note === undefined ? {} : { note }),
    epochs: epochStatuses(state, nowMs),
    ...standInOf(state, nowMs),
    handoffs: state.handoffs,
    ...(pending === undefined ? {} : { waiting: { sources: pending.sources, forMs: nowMs - pending.sinceMs } }),
    refused: state.refused.map(({ refusal, bootstrapDigest, binaryDigest, atMs }) => ({
      refusal,
      ...(bootstrapDigest === undefined ? {} : { bootstrapDigest }),
      ...(binaryDigest === undefined ? {} : { binaryDigest }),
      agoMs: nowMs - atMs,
    })),
    watch: (["bootstrap", "binary"] as const).flatMap((subject) => {
      const mode = state.watch[subject];
      if (mode === undefined) return [];
      const seen = state.seen[subject];
      const content = seen === undefined ? "not read yet" : seen.kind === "usable" ? seen.digest : seen.problem;
      return [{ subject, mode, content }];
    }),
    ...(phase.kind === "ended" ? { exitCode: phase.exitCode } : {}),
  };
}

function stepOf(phase: Phase): string | undefined {
  switch (phase.kind) {
    case "starting":
    case "replacing":
    case "stopping":
    case "detecting":
      return phase.step.kind;
    case "yielding":
      return phase.mending ?? (phase.vanishedSinceMs === undefined ? "successor_attached" : "successor_vanished");
    case "superseded":
      return phase.markerHeld ? "awaiting_ready" : undefined;
    case "serving":
      return phase.predecessor === undefined ? undefined : "predecessor_drains";
    case "pausing":
      return phase.comeback.cause;
    case "idle":
    case "ended":
      return undefined;
  }
}

function standInOf({ standIn }: State, nowMs: number): Pick<ServiceStatus, "standIn"> {
  if (standIn?.step.kind !== "standing" || standIn.isPrecaution) return {};
  const { epoch, step: { pid, sinceMs } } = standIn;
  return { standIn: { epoch, pid, forMs: nowMs - sinceMs } };
}

function noteOf(state: State): string | undefined {
  const { phase, markerProblem } = state;
  if (phase.kind === "ended") return phase.reason;
  if (phase.kind === "stopping" && phase.after !== undefined) return "drains, then starts afresh";
  if (phase.kind === "serving" || phase.kind === "replacing") {
    if (phase.health.kind === "hung") return "newest epoch does not answer";
    if (phase.health.kind === "admin_lost") return "a failed successor took the admin, requests go on";
  }
  if (phase.kind === "serving" && phase.foreign !== undefined) {
    return `epoch ${phase.foreign.epoch} of another supervisor drains, ready when it is gone`;
  }
  if (state.standIn !== undefined && !state.standIn.isPrecaution) return standInNote(state.standIn);
  if (phase.kind === "yielding") return `epoch ${phase.epoch.number + 1} of another supervisor takes over`;
  if (phase.kind === "superseded") return `epoch ${phase.epoch.number + 1} of another supervisor serves`;
  return markerProblem === undefined ? undefined : `ready marker: ${markerProblem}`;
}

function standInNote({ epoch, step }: StandIn): string {
  const died = `epoch ${epoch} died before its time`;
  if (step.kind === "given_up") return `${died} and has no stand-in: epoch ${epoch + 1} will abort`;
  return `${died}, a stand-in answers epoch ${epoch + 1} in its place`;
}

/** Newest first. */
export function epochsOf(state: State): readonly (readonly [Child | Epoch, Role])[] {
  return [...inPhase(state.phase), ...state.leaving.map(({ epoch }) => [epoch, "predecessor"] as const)];
}

function inPhase(phase: Phase): readonly (readonly [Child | Epoch, Role])[] {
  switch (phase.kind) {
    case "idle":
    case "ended":
      return [];
    case "detecting":
    case "superseded":
      return [];
    case "yielding":
      return [[phase.epoch, "predecessor"], ...drains(phase.predecessor?.epoch)];
    case "serving":
      return [[phase.epoch, "newest"], ...drains(phase.predecessor?.epoch)];
    case "replacing":
      return [
        ...child("child" in phase.step ? phase.step.child : undefined),
        [phase.from, "newest"],
        ...drains(phase.predecessor?.epoch),
      ];
    case "starting":
      return [...child("child" in phase.step ? phase.step.child : undefined), ...drains(phase.comeback.parent?.epoch)];
    case "pausing":
      return drains(phase.comeback.parent?.epoch);
    case "stopping":
      return [
        ...child(phase.child),
        ...(phase.newest === undefined ? [] : [[phase.newest, "newest"] as const]),
        ...drains(phase.predecessor?.epoch),
      ];
  }
}

function child(of: Child | undefined): readonly (readonly [Child, Role])[] {
  return of === undefined ? [] : [[of, "child"]];
}

function drains(of: Epoch | undefined): readonly (readonly [Epoch, Role])[] {
  return of === undefined ? [] : [[of, "predecessor"]];
}

function epochStatuses(state: State, nowMs: number): readonly EpochStatus[] {
  const all = epochsOf(state);
  const serving = all.find(([child, role]) => role === "newest" && "liveAtMs" in child)?.[0];
  const shutdownMs = serving?.plan.parentShutdownTimeMs;
  // It is its successor's flag that counts, from the moment that one was LIVE.
  const endsInMs = shutdownMs === undefined ? undefined : (serving as Epoch).liveAtMs + shutdownMs - nowMs;
  return all.map(([child, role]) => ({
    ...epochStatus(child, role, nowMs),
    ...(role === "predecessor" && endsInMs !== undefined ? { endsInMs: Math.max(0, endsInMs) } : {}),
  }));
}

function epochStatus(child: Child | Epoch, role: Role, nowMs: number): EpochStatus {
  const { plan } = child;
  return {
    epoch: child.number,
    attempt: child.attempt,
    role,
    ...(child.pid === undefined ? {} : { pid: child.pid }),
    ...("version" in child ? { version: shortVersion(child.version), liveForMs: nowMs - child.liveAtMs } : {}),
    bootstrapDigest: plan.bootstrapDigest,
    binaryDigest: plan.binaryDigest,
    admin: adminText(plan.admin),
    ageMs: nowMs - child.spawnedAtMs,
  };
}

/** `<sha>/1.40.0/Clean/RELEASE/BoringSSL` -> `1.40.0`. */
export function shortVersion(version: string): string {
  return version.split("/")[1] ?? version;
}

/** `127.0.0.1:9901`, `[::1]:9901` or `unix:/path`. */
export function adminText(admin: AdminAddress): string {
  if (admin.kind === "unix") return `unix:${admin.path}`;
  return admin.host.includes(":") ? `[${admin.host}]:${admin.port}` : `${admin.host}:${admin.port}`;
}
