// Owns: whether what is on disk now would pass the checks of a handoff: executable, hot restart version, bootstrap, admin address.
// Must not: start an epoch, or leave anything behind.

import { slotsOf } from "../adapters/slots.ts";
import { BinaryDigests } from "../adapters/digests.ts";
import { EnvoyChecks } from "../adapters/envoy_checks.ts";
import { EnvoyPreflight } from "../adapters/preflight.ts";
import { Snapshots } from "../adapters/snapshots.ts";
import { countUsableCpus } from "../adapters/cpus.ts";
import { shortDigest } from "../observe/words.ts";
import type { RefusalName } from "../core/refusal.ts";
import { fail, type Finding, type Found, ok, unknown } from "./finding.ts";
import type { Patient } from "./patient.ts";

export async function checkPreflight({ config, serving, root }: Patient): Promise<readonly Finding[]> {
  const directory = await Deno.makeTempDir({ prefix: "epochd-doctor-" });
  const slots = slotsOf(config);
  try {
    const preflight = new EnvoyPreflight({
      envoyPath: config.envoyPath,
      ...(slots === undefined ? {} : { executable: () => slots.executable() }),
      bootstrapPath: config.envoyConfig,
      flags: () => ({
        baseId: config.baseId,
        concurrency: config.concurrency ?? serving?.identity?.concurrency ?? countUsableCpus(root),
        drainTimeMs: config.drainTimeMs,
        parentShutdownTimeMs: config.parentShutdownTimeMs,
        userArgs: config.envoyArgs,
      }),
      ...(config.adminAddress === undefined ? {} : { adminAddress: config.adminAddress }),
      binaries: new BinaryDigests(),
      snapshots: new Snapshots(directory),
      checks: new EnvoyChecks(),
    });
    const wanted = serving?.identity?.hotRestartVersion;
    const outcome = await preflight.run({
      depth: "full",
      provenKeys: [],
      joining: false,
      ...(wanted === undefined ? {} : { hotRestartVersion: wanted }),
    }, new AbortController().signal);
    if (outcome.kind === "passed") return passed(outcome.plan.bootstrapDigest, outcome.plan.binaryPath, wanted);
    const { name, detail } = outcome.refusal;
    const { check, todo } = aboutRefusal(name);
    return [{ check, ...fail(detail.replaceAll(directory, "the copy"), todo) }];
  } finally {
    await Deno.remove(directory, { recursive: true }).catch(() => {});
  }
}

function passed(bootstrapDigest: string, envoyPath: string, wanted: string | undefined): readonly Finding[] {
  const version: Found = wanted === undefined
    ? unknown(`${envoyPath} runs and has hot restart; no serving Envoy is known whose version it must have`)
    : ok(`${envoyPath} prints ${wanted}, as the serving epoch has it`);
  return [
    { check: "hot_restart_version", ...version },
    { check: "preflight", ...ok(`bootstrap ${shortDigest(bootstrapDigest)} passes, its admin can be asked`) },
  ];
}

function aboutRefusal(name: RefusalName): { readonly check: string; readonly todo: string } {
  switch (name) {
    case "hot_restart_version_differs":
      return {
        check: "hot_restart_version",
        todo:
          "this executable can't take over: stop and start the service with it, or install one of the same hot restart version",
      };
    case "admin_address_missing":
      return {
        check: "admin",
        todo: "give the bootstrap an admin with a fixed address: epochd tells epochs apart by it",
      };
    case "binary_hangs":
    case "binary_missing":
    case "binary_not_executable":
    case "binary_wrong_architecture":
    case "spawn_failed":
      return { check: "preflight", todo: "install an Envoy that runs here, or correct --envoy-path" };
    default:
      return {
        check: "preflight",
        todo: "mend the bootstrap: the next handoff to it is refused, the serving epoch stays",
      };
  }
}
