// Owns: what an upgrade of epochd gets of this process: its fleet, its configuration, its API's sockets. Must not: decide.

import { SystemClock } from "../adapters/clock.ts";
import { checkEpochd } from "../adapters/epochd_file.ts";
import { startSuccessor, surroundings } from "../adapters/successor.ts";
import { connectTo } from "../api/client.ts";
import { ownSocket, socketPlace } from "../api/socket_path.ts";
import { isInPod } from "../config/service_config.ts";
import type { ShellFact } from "../observe/shell_fact.ts";
import type { Binaries } from "../runtime/binaries.ts";
import type { Configuration } from "../runtime/configuration.ts";
import type { Fleet } from "../runtime/fleet.ts";
import type { Supervisor } from "../runtime/supervisor.ts";
import { Upgrade } from "../runtime/upgrade.ts";
import type { UpgradeRefusal } from "../runtime/upgrade_status.ts";

/** One that hangs must not hold up the next look for long. */
const ASK_MS = 2_000;

export function wireUpgrade(
  supervisor: Supervisor,
  fleet: Fleet,
  binaries: Binaries,
  configuration: Configuration,
  tell: (fact: ShellFact) => void,
): Upgrade {
  const running = () => configuration.running.config;
  return new Upgrade({
    clock: new SystemClock(),
    tell,
    status: () => supervisor.status(),
    services: () => running().services,
    surroundings: () => surroundings(isInPod()),
    rehearse: async () =>
      await onTrial(binaries, Object.keys(running().services)) ?? await rehearse(fleet, configuration),
    check: checkEpochd,
    runningExecutable,
    start: (executable) => startSuccessor(executable),
    ask: async (pid) => {
      const answer = await connectTo(ownSocket(socketPlace(running().apiSocket), pid, 0), ASK_MS).status();
      return answer.kind === "ok" && answer.value.pid === pid ? answer.value.services : undefined;
    },
  });
}

/** Whoever starts in the middle of a trial takes it for one that was cut short, and undoes it. */
async function onTrial(binaries: Binaries, services: readonly string[]): Promise<UpgradeRefusal | undefined> {
  for (const service of services) {
    const listed = await binaries.list(service);
    if (listed?.kind !== "listed" || listed.list.trial === undefined) continue;
    const detail = `service ${service} has an executable on trial: wait until it has proved itself (epochd binaries)`;
    return { name: "busy", detail };
  }
  return undefined;
}

/** What the new supervisor would read and check first, while refusing it still costs nothing. */
async function rehearse(fleet: Fleet, configuration: Configuration): Promise<UpgradeRefusal | undefined> {
  const outcome = await configuration.reload({ who: "upgrade", source: "reload", dryRun: true });
  if (outcome.kind === "refused") {
    const { name, detail } = outcome.refusal;
    return {
      name: "configuration_refused",
      detail: `the new epochd would read a configuration that is refused (${name}): ${detail}`,
    };
  }
  for (const [name, config] of Object.entries(configuration.running.config.services)) {
    if (fleet.stateOf(name) !== "running") continue;
    const refusal = await fleet.preflight(name, config);
    if (refusal !== undefined) {
      return {
        name: "preflight_refused",
        detail: `service ${name} would not start (${refusal.name}): ${refusal.detail}`,
      };
    }
  }
  return undefined;
}

function runningExecutable(): string {
  if (!Deno.build.standalone) return "";
  try {
    return Deno.readLinkSync("/proc/self/exe");
  } catch {
    return Deno.execPath();
  }
}
