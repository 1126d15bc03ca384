// Owns: why this supervisor can't hand over to another executable, from what it runs and where. Must not: look at the world.

import type { ServiceConfig } from "../config/service_config.ts";
import type { ServiceStatus } from "../core/status.ts";
import type { UpgradeRefusal } from "./upgrade_status.ts";

/** Where this process is. */
export interface Surroundings {
  readonly pid: number;
  readonly inPod: boolean;
  /** The name of PID 1 where it is this process's parent. */
  readonly parentInit?: string;
  /** systemd started it as a main process, and gave no NOTIFY_SOCKET. */
  readonly isUnheardMain: boolean;
}

/** They end with their child, and a container with them. */
const containerInits: ReadonlySet<string> = new Set(["tini", "docker-init", "dumb-init", "catatonit", "podman-init"]);

export function upgradeObstacle(
  services: Readonly<Record<string, ServiceConfig>>,
  statuses: Readonly<Record<string, ServiceStatus>>,
  { pid, inPod, parentInit, isUnheardMain }: Surroundings,
): UpgradeRefusal | undefined {
  if (inPod || pid === 1 || (parentInit !== undefined && containerInits.has(parentInit))) {
    const where = inPod ? "in a Kubernetes pod" : pid === 1 ? "as PID 1" : `as the child of ${parentInit}`;
    const detail =
      `epochd runs ${where}: its end would be that of the container, whose restart takes the traffic back; ` +
      "expected a roll to an image with the new epochd, which hands over from pod to pod";
    return { name: "would_restart_container", detail };
  }
  if (isUnheardMain) {
    const detail =
      "systemd ends all of a unit with its main process, and gave no NOTIFY_SOCKET by which another could become it: " +
      "expected Type=notify in the unit, as deploy/systemd/epochd.service has it";
    return { name: "outlives_no_main_process", detail };
  }
  for (const [name, { crossPod, whenSuperseded }] of Object.entries(services)) {
    if (!crossPod) {
      const detail =
        `service ${name} runs without cross_pod (--cross-pod), by which one supervisor hands over to another: ` +
        "set it and restart epochd once";
      return { name: "not_cross_pod", detail };
    }
    if (whenSuperseded === "wait") {
      const detail = `service ${name} has when_superseded: wait, so that this supervisor would stay: expected exit`;
      return { name: "stays_when_superseded", detail };
    }
  }
  for (const [name, { phase, epochs, note }] of Object.entries(statuses)) {
    if (phase === "replacing") {
      return {
        name: "busy",
        detail: `service ${name} is in the middle of a handoff: wait until its new epoch is LIVE`,
      };
    }
    if (phase === "yielding" || phase === "superseded") {
      return { name: "busy", detail: `service ${name}: ${note ?? "another supervisor takes over"}` };
    }
    // A service that was added and never was LIVE has nothing to hand over.
    if (phase === "ended") continue;
    if (phase !== "serving" || !epochs.some(({ role }) => role === "newest")) {
      return { name: "not_serving", detail: `service ${name} is ${phase}, expected it to serve` };
    }
  }
  return undefined;
}
