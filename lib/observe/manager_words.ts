// Owns: the STATUS= line: who serves, what is under way, what was refused last. Must not: send it, or hold times that change by themselves.

import type { ServiceStatus } from "../core/status.ts";
import type { SupervisorStatus } from "../runtime/control.ts";
import { oneLine } from "./words.ts";

/** `systemctl status` shows one line. */
const LONGEST = 400;

export function statusLine(status: SupervisorStatus, lastRefusal: string | undefined): string {
  const services = Object.entries(status.services);
  const texts = services.map(([name, service]) => `${services.length > 1 ? `${name}: ` : ""}${serviceText(service)}`);
  const { upgrade } = status;
  const upgrading = upgrade === undefined || upgrade.phase === "failed"
    ? []
    : [`upgrade to epochd ${upgrade.version} (pid ${upgrade.pid}) ${upgrade.phase.replace("_", " ")}`];
  const failed = upgrade?.phase === "failed" ? [`upgrade failed: ${upgrade.detail ?? "no reason known"}`] : [];
  const refused = lastRefusal === undefined ? [] : [`last refused: ${lastRefusal}`];
  return oneLine([...texts, ...upgrading, ...failed, ...refused].join("; ")).slice(0, LONGEST);
}

function serviceText({ phase, step, ready, note, epochs }: ServiceStatus): string {
  const newest = epochs.find(({ role }) => role === "newest");
  const child = epochs.find(({ role }) => role === "child");
  const drains = epochs.filter(({ role }) => role === "predecessor").map(({ epoch }) => `epoch ${epoch} drains`);
  const serves = newest === undefined
    ? `${phase.replaceAll("_", " ")}${step === undefined ? "" : ` (${step.replaceAll("_", " ")})`}`
    : phase === "stopping"
    ? `epoch ${newest.epoch} stops`
    : `epoch ${newest.epoch}${newest.version === undefined ? "" : ` (Envoy ${newest.version})`} serves`;
  const under = phase === "replacing"
    ? [child === undefined ? `handoff under way (${step ?? "begun"})` : `handoff to epoch ${child.epoch} under way`]
    : [];
  const why = !ready && newest !== undefined && phase !== "stopping" ? ["not ready"] : [];
  return [serves, ...under, ...drains, ...why, ...(note === undefined ? [] : [note])].join(", ");
}
