// Owns: the rules that hold between several fields or several services. Must not: repeat what the schema checks.

import { resolve } from "node:path";
import { formatDuration } from "./duration.ts";
import type { Namer, Problem } from "./problem.ts";
import type { ConfigFields } from "./schema.ts";
import { stateDirOf } from "./service_config.ts";
import type { ServiceFields } from "./service_schema.ts";

const serviceNamePattern = /^[a-z0-9]([a-z0-9_-]{0,61}[a-z0-9])?$/;

export function checkRules(config: ConfigFields, nameOf: Namer): readonly Problem[] {
  const services = Object.entries(config.services);
  const problems: Problem[] = [];
  if (services.length === 0) {
    problems.push({ where: nameOf(["services"]), expected: "no service is described, expected at least one" });
  }
  for (const [name, service] of services) {
    if (!serviceNamePattern.test(name)) {
      problems.push({
        where: nameOf(["services", name]),
        expected: "expected a name of at most 63 lower case letters, digits, - and _",
      });
    }
    problems.push(...checkService(service, (key) => nameOf(["services", name, key])));
  }
  for (const key of ["base_id", "ready_marker", "state_dir", "slots_dir"] as const) {
    problems.push(...checkDistinct(services, key, nameOf));
  }
  return problems;
}

/** What kubelet's grace period needs beyond the parent shutdown time: Envoy's end, the marker's hand-over, a busy node. */
const graceMarginMs = 5_000;

function checkService(service: ServiceFields, nameOf: (key: keyof ServiceFields) => string): readonly Problem[] {
  const problems: Problem[] = [];
  if (service.drain_time >= service.parent_shutdown_time) {
    problems.push({
      where: nameOf("parent_shutdown_time"),
      value: formatDuration(service.parent_shutdown_time),
      expected: `expected more than ${nameOf("drain_time")}, which is ${
        formatDuration(service.drain_time)
      }: a predecessor would end before it has drained`,
    });
  }
  const leastMs = service.parent_shutdown_time + graceMarginMs;
  if (service.grace_period > 0 && service.grace_period <= leastMs) {
    problems.push({
      where: nameOf("grace_period"),
      value: formatDuration(service.grace_period),
      expected: `expected more than ${nameOf("parent_shutdown_time")} and ${formatDuration(graceMarginMs)}, together ${
        formatDuration(leastMs)
      }: kubelet would kill a predecessor that still drains`,
    });
  }
  return problems;
}

function checkDistinct(
  services: readonly (readonly [string, ServiceFields])[],
  key: "base_id" | "ready_marker" | "state_dir" | "slots_dir",
  nameOf: Namer,
): readonly Problem[] {
  const holders = new Map<string | number, string>();
  return services.flatMap(([name, service]) => {
    const value = key === "state_dir" ? stateDirOf(name, service) : service[key];
    if (value === undefined) return [];
    // However it is written.
    const meant = typeof value === "string" ? resolve(value) : value;
    const holder = holders.get(meant);
    if (holder === undefined) {
      holders.set(meant, name);
      return [];
    }
    return [{
      where: nameOf(["services", name, key]),
      value: String(value),
      expected: `expected another one, service ${holder} has it already`,
    }];
  });
}
