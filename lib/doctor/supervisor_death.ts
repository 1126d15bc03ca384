// Owns: what the death of epochd itself would mean for Envoy, as it is and not as it was asked for. Must not: end anything.

import { servingProblem, thisPlace } from "../launch/launcher.ts";
import { fail, type Found, ok, unknown } from "./finding.ts";
import { type Patient, readText } from "./patient.ts";

export function checkSupervisorDeath({ root, config, supervisor, serving, inPod }: Patient): Found {
  if (config.onSupervisorDeath === "end") return ok("Envoy ends with epochd (--on-supervisor-death end)");
  if (supervisor === undefined || serving === undefined) {
    const problem = servingProblem({ ...thisPlace(), inPod });
    if (problem !== undefined) return fail(problem, "leave --on-supervisor-death at end here, or see what is expected");
    return ok("Envoy will be started so that it outlives epochd (--on-supervisor-death serve)");
  }
  const parent = Number(/^PPid:\s+(\d+)/m.exec(readText(`${root}/proc/${serving.pid}/status`) ?? "")?.[1] ?? NaN);
  if (Number.isNaN(parent)) return unknown("the parent of Envoy's process can't be seen from here");
  if (parent === supervisor.pid) {
    return fail(
      `epoch ${serving.epoch} is a child of epochd and ends with it`,
      "start epochd anew: --on-supervisor-death serve holds for epochs that are started by it",
    );
  }
  return ok(`epoch ${serving.epoch} is a child of process ${parent} and outlives epochd`);
}
