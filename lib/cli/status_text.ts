// Owns: a supervisor's status as people read it. Must not: ask for it or write it.

import { shown } from "../config/shown_value.ts";
import type { Role } from "../core/fact.ts";
import { type ServiceStatus, standingRefusals } from "../core/status.ts";
import type { Census } from "../observe/observed.ts";
import { envoyVersion, oneLine, plural, shortDigest, showMs } from "../observe/words.ts";
import type { ConfigSummary } from "../runtime/config_summary.ts";
import type { SupervisorStatus } from "../runtime/control.ts";
import { alignedRows } from "./table.ts";
import type { Paint } from "./terminal.ts";

export function statusText(status: SupervisorStatus, nowMs: number, paint: Paint): string {
  const up = showMs(Math.max(0, nowMs - status.startedAtMs));
  const head = `epochd ${status.version}, pid ${status.pid}, up ${up}${status.stopping ? ", stopping" : ""}`;
  const services = Object.entries(status.services).map(([name, service]) =>
    serviceText(name, service, paint, status.connections?.[name])
  );
  const config = configText(status.config, paint);
  return `${[paint("bold", head), ...(config === "" ? [] : [config]), ...services].join("\n\n")}\n`;
}

/** Nothing where running and file say the same. */
function configText(config: ConfigSummary | undefined, paint: Paint): string {
  const differences =
    config?.differences?.map(({ field, running, file }) =>
      `  ${field} runs as ${shown(running)}, the file says ${shown(file)}`
    ) ?? [];
  const { path = "epochd.yaml", refused } = config ?? {};
  return [
    ...(differences.length === 0 ? [] : [paint("yellow", `${path} differs from what runs`), ...differences]),
    ...(refused === undefined
      ? []
      : [paint("yellow", `${path} was not taken (${refused.name})`), `  ${oneLine(refused.detail)}`]),
  ].join("\n");
}

function serviceText(name: string, service: ServiceStatus, paint: Paint, census?: Census): string {
  const ready = service.ready ? paint("green", "ready") : paint("red", "not ready");
  const phase = service.step === undefined ? service.phase : `${service.phase} (${service.step})`;
  const lines = [`${paint("bold", name)}: ${phase}, ${ready}, ${plural(service.handoffs, "handoff")}`];
  if (service.note !== undefined) lines.push(`  ${paint("yellow", oneLine(service.note))}`);
  if (service.outlivesSupervisor) lines.push("  its Envoys outlive epochd (--on-supervisor-death serve)");
  if (service.exitCode !== undefined) lines.push(`  ended with exit code ${service.exitCode}`);
  if (service.epochs.length > 0) lines.push(...epochRows(service, census).map((row) => `  ${row}`));
  if (service.waiting !== undefined) {
    const { sources, forMs } = service.waiting;
    lines.push(`  waiting for ${showMs(forMs)}: a trigger by ${sources.join(", ")}`);
  }
  for (const { refusal, agoMs, bootstrapDigest, binaryDigest } of standingRefusals(service)) {
    const of = [
      ...(bootstrapDigest === undefined ? [] : [`bootstrap ${shortDigest(bootstrapDigest)}`]),
      ...(binaryDigest === undefined ? [] : [`executable ${shortDigest(binaryDigest)}`]),
    ];
    const what = `${refusal.name}${of.length === 0 ? "" : ` (${of.join(", ")})`}`;
    lines.push(`  refused ${showMs(agoMs)} ago: ${paint("yellow", what)}: ${oneLine(refusal.detail)}`);
  }
  for (const { subject, mode, content } of service.watch) {
    lines.push(`  watching the ${subject === "binary" ? "executable" : subject} by ${mode}: ${digestOrText(content)}`);
  }
  return lines.join("\n");
}

/** A watch shows the digest of what it sees, or why it can't be used. */
function digestOrText(content: string): string {
  return /^[0-9a-f]{64}$/.test(content) ? shortDigest(content) : oneLine(content);
}

function epochRows(service: ServiceStatus, census: Census | undefined): readonly string[] {
  const drains = service.epochs.some(({ endsInMs }) => endsInMs !== undefined);
  const head = [
    "EPOCH",
    "ROLE",
    "PID",
    "ENVOY",
    "AGE",
    ...(census === undefined ? [] : ["CONNECTIONS"]),
    ...(drains ? ["ENDS IN"] : []),
    "BOOTSTRAP",
    "EXECUTABLE",
    "ADMIN",
  ];
  const rows = service.epochs.map((epoch) => [
    String(epoch.epoch),
    epoch.role,
    String(epoch.pid ?? "-"),
    epoch.version === undefined ? "-" : envoyVersion(epoch.version),
    showMs(epoch.ageMs),
    ...(census === undefined ? [] : [connectionsOf(epoch.role, census)]),
    ...(drains ? [epoch.endsInMs === undefined ? "-" : showMs(epoch.endsInMs)] : []),
    shortDigest(epoch.bootstrapDigest),
    shortDigest(epoch.binaryDigest),
    oneLine(epoch.admin),
  ]);
  return alignedRows([head, ...rows]);
}

/** Envoy tells those of all epochs together, and the predecessor's part of them. */
export function connectionsOf(role: Role, { active, draining }: Census): string {
  if (role === "newest") return String(Math.max(0, active - (draining ?? 0)));
  return role === "predecessor" && draining !== undefined ? String(draining) : "-";
}
