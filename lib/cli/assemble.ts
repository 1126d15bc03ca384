// Owns: which adapters a service gets, from its configuration. Must not: start anything, or hold state.

import { dirname } from "node:path";
import { EnvoyAdmin } from "../adapters/admin.ts";
import { CurrentPreflight, type Generation } from "../adapters/current_preflight.ts";
import { BinaryDigests } from "../adapters/digests.ts";
import type { EpochFlags } from "../adapters/envoy_args.ts";
import { EnvoyChecks } from "../adapters/envoy_checks.ts";
import { LaunchRecords, placeOf } from "../adapters/launch_records.ts";
import { Launcher } from "../adapters/launched_process.ts";
import { EnvoyPreflight } from "../adapters/preflight.ts";
import { fingerprint } from "../adapters/fingerprint.ts";
import { EnvoyProcesses } from "../adapters/process.ts";
import { BinarySlots } from "../adapters/slots.ts";
import { SharedPodState } from "../adapters/pod_state.ts";
import { readHotRestartSockets } from "../adapters/hot_restart_sockets.ts";
import { FileReadyMarker } from "../adapters/ready_marker.ts";
import { NativeStandIns } from "../adapters/stand_in.ts";
import { SharedMemory } from "../adapters/shared_memory.ts";
import { Snapshots } from "../adapters/snapshots.ts";
import { ContentWatch } from "../adapters/file_watch.ts";
import { preloadEnv, writeLibrary } from "../death_signal/preload.ts";
import { launcherPath } from "../launch/launcher.ts";
import { standInProgram } from "../stand_in/location.ts";
import type { ServiceConfig } from "../config/service_config.ts";
import type { ShellFact } from "../observe/shell_fact.ts";
import type { ServicePorts } from "../runtime/perform.ts";
import type { Subject } from "../core/event.ts";
import type { Preflight, WatchedContent } from "../runtime/ports.ts";

export interface Assembled {
  readonly ports: ServicePorts;
  readonly marker: FileReadyMarker | undefined;
  /** Absent without `slots_dir`. */
  readonly slots: BinarySlots | undefined;
  /** A preflight by the settings of now, of this executable instead of theirs. */
  preflightOf(executable: string): Preflight;
  /** After it: no executable is held open any more, so that one that is removed takes no room. */
  letGo(): Promise<void>;
  /** A watch by the settings of now. */
  watchOf(subject: Subject): WatchedContent;
  /** A preflight by settings that are only asked about. */
  preflightBy(config: ServiceConfig): Preflight;
  /** From the next preflight and the next watch on. */
  use(config: ServiceConfig): void;
}

/** What this supervisor is to others on the same base id. */
export interface Self {
  readonly instance: string;
  readonly pod: string;
  readonly bootId: string;
  readonly version: string;
}

/** `chosenConcurrency`: where no other pod's epoch says another. */
export function assemble(
  first: ServiceConfig,
  chosenConcurrency: number,
  self: Self,
  tell: (fact: ShellFact) => void,
): Assembled {
  let config = first;
  // Those of another pod's epoch that was joined win.
  let adopted: Parameters<ServicePorts["adopt"]>[0] = {};
  const concurrency = () => adopted.concurrency ?? chosenConcurrency;
  const parentShutdownTimeMs = (by: ServiceConfig) =>
    Math.min(by.parentShutdownTimeMs, adopted.parentShutdownTimeMs ?? Infinity);
  const binaries = new BinaryDigests();
  const segment = new SharedMemory(config.baseId);
  const snapshots = new Snapshots(config.stateDir);
  const checks = new EnvoyChecks();
  const slots = config.slotsDir === undefined ? undefined : new BinarySlots(config.slotsDir, () => ({
    publicKeys: config.binaryPublicKeys,
    maxBytes: config.binaryMaxBytes,
    installed: config.envoyPath,
  }));
  const generation = (by: ServiceConfig, executable?: string): Generation => {
    const flags = (): EpochFlags => ({
      baseId: by.baseId,
      concurrency: concurrency(),
      drainTimeMs: by.drainTimeMs,
      parentShutdownTimeMs: parentShutdownTimeMs(by),
      userArgs: by.envoyArgs,
    });
    const preflight = new EnvoyPreflight({
      envoyPath: executable ?? by.envoyPath,
      ...(slots === undefined || executable !== undefined ? {} : { executable: () => slots.executable(by.envoyPath) }),
      bootstrapPath: by.envoyConfig,
      flags,
      ...(by.adminAddress === undefined ? {} : { adminAddress: by.adminAddress }),
      binaries,
      snapshots,
      checks,
      obstacle: (layout) => segment.startObstacle(layout),
      joinObstacle: () => segment.joinObstacle(),
      handoffObstacle: () => segment.handoffObstacle(),
      ...(by.crossPod ? { fingerprint } : {}),
    });
    return { preflight, flags };
  };
  let library: { readonly path: string | undefined } | undefined;
  const deathSignalLibrary = () => {
    const paths = [...(config.readyMarker === undefined ? [] : [config.readyMarker]), Deno.execPath()];
    library ??= { path: writeLibrary([config.stateDir, ...paths.map(dirname)]) };
    return library.path;
  };
  const preflight = new CurrentPreflight(generation(config));
  const marker = config.readyMarker === undefined
    ? undefined
    : new FileReadyMarker(config.readyMarker, { isPodLocal: config.crossPod });
  const launches = config.onSupervisorDeath === "serve"
    ? launchRecords(config.stateDir, self.bootId, segment)
    : undefined;
  const processes = new EnvoyProcesses({
    flagsOf: (plan) => preflight.flagsOf(plan),
    isStill: (path, digest) => binaries.isStill(path, digest),
    restore: (path) => snapshots.restore(path),
    ...(launches === undefined ? {} : { starter: new Launcher(launcherPath(), launches) }),
    // Where it shares its base id, the death of this supervisor must not be that of another one's Envoy.
    ...(config.crossPod && launches === undefined ? { environment: () => preloadEnv(deathSignalLibrary()) } : {}),
  });
  const admin = new EnvoyAdmin();
  const standIns = new NativeStandIns(config.baseId, standInProgram, () => config.onSupervisorDeath === "serve");
  const pods = config.crossPod
    ? new SharedPodState({
      stateDir: config.stateDir,
      baseId: config.baseId,
      admin,
      sockets: (baseId) => readHotRestartSockets(baseId),
      ...(launches === undefined ? {} : { launches }),
      self: () => ({
        ...self,
        concurrency: concurrency(),
        baseId: config.baseId,
        drainTimeMs: config.drainTimeMs,
        parentShutdownTimeMs: parentShutdownTimeMs(config),
        gracePeriodMs: config.gracePeriodMs,
        uid: Deno.uid() ?? -1,
      }),
    })
    : undefined;
  const adopt: ServicePorts["adopt"] = (taken) => {
    adopted = taken;
    const { concurrency: given = chosenConcurrency } = taken;
    if (given !== chosenConcurrency) {
      tell({ kind: "concurrency_chosen", concurrency: given, why: whyAdopted(chosenConcurrency) });
    }
  };
  return {
    ports: { processes, admin, preflight, segment, standIns, marker, pods, adopt },
    marker,
    slots,
    preflightOf: (executable) => generation(config, executable).preflight,
    letGo: () => binaries.settle(),
    watchOf: (subject) =>
      new ContentWatch({
        pollMs: config.pollMs,
        ...(subject === "binary" ? { binaries } : {}),
        ...(subject === "binary" && slots !== undefined ? { fallback: config.envoyPath } : {}),
      }),
    preflightBy: (asked) => generation(asked).preflight,
    use(next) {
      config = next;
      preflight.use(generation(next));
    },
  };
}

function launchRecords(stateDir: string, bootId: string, segment: SharedMemory): LaunchRecords {
  const initializing = async () => {
    const look = await segment.look();
    return look.kind === "present" && look.initializing === true;
  };
  return new LaunchRecords({ stateDir, place: placeOf(bootId) ?? bootId, initializing });
}

function whyAdopted(asked: number): string {
  return `as the epoch that is joined has it, not ${asked}: only a start without a predecessor can change it`;
}
