// Owns: which checks there are and in which order they are told. Must not: check itself, or print.

import { checkBaseId, checkNetworkNamespace } from "./base_id.ts";
import { checkBootstrap } from "./bootstrap.ts";
import { checkDescriptors, checkMarker, checkStateDir, checkWatch } from "./files.ts";
import { type Finding, type Found, unknown, warn } from "./finding.ts";
import { checkMemory } from "./memory.ts";
import type { Patient } from "./patient.ts";
import { checkPreflight } from "./preflight.ts";
import { checkSegment, checkShmDir } from "./shared_memory.ts";
import { checkStandIn } from "./stand_in.ts";
import { checkSupervisorDeath } from "./supervisor_death.ts";
import { checkTiming } from "./timing.ts";
import { checkThreads, checkWorkers } from "./workers.ts";

type Check = (patient: Patient) => Found | readonly Found[] | Promise<Found | readonly Found[]>;

const checks: Readonly<Record<string, Check>> = {
  shared_memory: checkShmDir,
  segment: checkSegment,
  base_id: checkBaseId,
  network_namespace: checkNetworkNamespace,
  admin: checkAdmin,
  supervisor_death: checkSupervisorDeath,
  stand_in: () => checkStandIn(),
  timing: checkTiming,
  workers: checkWorkers,
  threads: checkThreads,
  memory: checkMemory,
  descriptors: checkDescriptors,
  watch: checkWatch,
  state_dir: checkStateDir,
  ready_marker: checkMarker,
};

/** A check that can't be carried out costs its own answer alone. */
export async function examine(patient: Patient): Promise<readonly Finding[]> {
  const findings: Finding[] = [];
  for (const [check, look] of Object.entries(checks)) {
    const found = await guarded(async () => [await look(patient)].flat());
    findings.push(...found.map((one) => ({ check, ...one })));
  }
  findings.push(...await guarded(() => checkBootstrap(patient), "bootstrap"));
  findings.push(...await guarded(() => checkPreflight(patient), "preflight"));
  return findings;
}

async function guarded<T extends Found>(look: () => Promise<readonly T[]>, check?: string): Promise<readonly T[]> {
  try {
    return await look();
  } catch (error) {
    const found = unknown(`could not be looked at: ${error instanceof Error ? error.message : error}`);
    return [(check === undefined ? found : { check, ...found }) as T];
  }
}

function checkAdmin({ serving }: Patient): Found {
  if (serving === undefined) return unknown("no serving Envoy is known that could be asked");
  const { identity, epoch } = serving;
  if (identity === undefined) {
    return warn(
      `admin of epoch ${epoch} does not answer here`,
      "see `epochd status`: an epoch without admin serves, and is replaced",
    );
  }
  return identity.epoch === epoch
    ? { verdict: "ok", found: `admin answers as epoch ${epoch}, ${identity.state}` }
    : warn(`admin answers as epoch ${identity.epoch}, epoch ${epoch} serves`, "look again when the handoff is over");
}
