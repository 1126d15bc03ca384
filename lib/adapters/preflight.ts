// Owns: finding out whether a new epoch would run, before it is forked, and what exactly it would run. Must not: fork an epoch, or retry.

import type { AdminAddress, Plan } from "../core/epoch.ts";
import { type Refusal, refusal, type RefusalName } from "../core/refusal.ts";
import type { Preflight, PreflightOutcome, PreflightRequest } from "../runtime/ports.ts";
import type { Executable } from "../runtime/slots_port.ts";
import { type Bootstrap, parseBootstrap } from "./bootstrap.ts";
import { readContent, sha256, statKey } from "./content.ts";
import type { BinaryDigests } from "./digests.ts";
import { argsIdentity, type EpochFlags, flagValue } from "./envoy_args.ts";
import type { EnvoyChecks } from "./envoy_checks.ts";
import { headerProblem } from "./process.ts";
import { showAddress } from "./question.ts";
import type { Snapshots } from "./snapshots.ts";

export interface EnvoyPreflightOptions {
  /** With a slash in it: nothing is searched in PATH. */
  readonly envoyPath: string;
  /** Which one it is now, where it may be another than `envoyPath`; checked, and its own name rather than a link's. */
  readonly executable?: () => Promise<Executable>;
  readonly bootstrapPath: string;
  readonly flags: () => EpochFlags;
  /** `--admin-address`: wins over the bootstrap's. */
  readonly adminAddress?: AdminAddress;
  readonly binaries: BinaryDigests;
  readonly snapshots: Snapshots;
  readonly checks: EnvoyChecks;
  /** Why this user must not join the Envoy that lives on the base id (`SharedMemory.joinObstacle`). */
  readonly joinObstacle?: () => Promise<Refusal | undefined>;
  /** Names the binary's content as another supervisor does; absent where no other one shares the base id. */
  readonly fingerprint?: (path: string) => Promise<string | undefined>;
  /** Why nothing can take over from the Envoy that lives on the base id (`SharedMemory.handoffObstacle`). */
  readonly handoffObstacle?: () => Promise<Refusal | undefined>;
  /** Why an epoch 0 must not start now, asked at depth `first` (`SharedMemory.startObstacle`). */
  readonly obstacle?: (printedLayout: () => Promise<string | undefined>) => Promise<Refusal | undefined>;
}

type Parsed = Extract<Bootstrap, { kind: "parsed" }>;
type Step<T> = { readonly kind: "ok"; readonly value: T } | { readonly kind: "no"; readonly refusal: Refusal };

export class EnvoyPreflight implements Preflight {
  /** Stats of the files that a plan's bootstrap names, when the plan passed last. */
  private readonly passedWith = new Map<string, string>();

  /** The bootstrap that was parsed last. */
  private parsed: { readonly of: string; readonly bootstrap: Bootstrap } | undefined;

  constructor(private readonly options: EnvoyPreflightOptions) {}

  async run(request: PreflightRequest, signal: AbortSignal): Promise<PreflightOutcome> {
    const { bootstrapPath, binaries } = this.options;
    const executable = await this.options.executable?.() ?? { kind: "found", path: this.options.envoyPath };
    if (executable.kind === "refused") return refused(executable.refusal);
    const envoyPath = executable.path;
    const [bootstrap, binary] = await Promise.all([readContent(bootstrapPath), binaries.look(envoyPath)]);
    if (bootstrap.kind === "unusable") {
      const names = {
        missing: "bootstrap_missing",
        unreadable: "bootstrap_unreadable",
        empty: "bootstrap_invalid",
      } as const;
      return refused(refusal(names[bootstrap.why], bootstrap.problem));
    }
    if (binary.kind === "unusable") {
      const names = {
        missing: "binary_missing",
        not_executable: "binary_not_executable",
        unreadable: "binary_not_executable",
      } as const;
      return refused(refusal(names[binary.why], binary.problem));
    }
    const looked = { bootstrapDigest: bootstrap.digest, binaryDigest: binary.digest };
    const no = (name: Refusal): PreflightOutcome => ({ kind: "refused", refusal: name, looked });
    const foreign = headerProblem(envoyPath);
    if (foreign !== undefined) return no(foreign);
    const read = this.readBootstrap(bootstrap);
    if (read.kind === "no") return no(read.refusal);
    const snapshot = await this.options.snapshots.take(bootstrap.digest, bootstrapPath, bootstrap.bytes);
    // A full disk says nothing about this content: not remembered against it.
    if (snapshot.kind === "failed") return refused(refusal("snapshot_failed", snapshot.problem));
    const proof = await this.proofOf(envoyPath, bootstrap.digest, read.value.namedFiles);
    const plan: Plan = {
      ...(proof === undefined ? {} : { proof }),
      key: sha256([bootstrap.digest, binary.digest, argsIdentity(this.options.flags())].join("\n")),
      ...looked,
      bootstrapPath: snapshot.path,
      binaryPath: envoyPath,
      admin: read.value.admin,
      ...(read.value.controlPlaneClusters.length === 0
        ? {}
        : { controlPlaneClusters: read.value.controlPlaneClusters }),
    };
    const files = await statsOf(read.value.namedFiles);
    if (request.joining || request.hotRestartVersion !== undefined) {
      const missing = await this.options.handoffObstacle?.();
      if (missing !== undefined) return refused(missing);
    }
    if (request.joining) {
      const foreign = await this.options.joinObstacle?.();
      if (foreign !== undefined) return refused(foreign);
      if (plan.proof !== undefined && plan.proof === request.proven) return this.passed(plan, files, true);
    }
    if (request.depth === "first") {
      const layout = async () => {
        const printed = await this.options.checks.hotRestartVersion(plan, signal);
        return printed.kind === "printed" ? printed.version : undefined;
      };
      const obstacle = await this.options.obstacle?.(layout);
      if (obstacle !== undefined) return refused(obstacle);
      return this.passed(plan, files, false);
    }
    if (request.provenKeys.includes(plan.key) && (this.passedWith.get(plan.key) ?? files) === files) {
      return this.passed(plan, files, true);
    }
    return await this.check(plan, files, request, signal);
  }

  /** Removes snapshots of other digests; a failure leaves them for the next time. */
  prune(keepDigests: readonly string[]): Promise<void> {
    return this.options.snapshots.prune(keepDigests);
  }

  /** The files that a bootstrap names are another pod's own: with any, only the checks tell. */
  private async proofOf(
    envoyPath: string,
    bootstrapDigest: string,
    namedFiles: readonly string[],
  ): Promise<string | undefined> {
    const { fingerprint, flags } = this.options;
    if (fingerprint === undefined || namedFiles.length > 0 || this.parsed?.bootstrap.kind !== "parsed") {
      return undefined;
    }
    const binary = await fingerprint(envoyPath);
    return binary === undefined ? undefined : sha256([bootstrapDigest, binary, argsIdentity(flags())].join("\n"));
  }

  private async check(
    plan: Plan,
    files: string,
    request: PreflightRequest,
    signal: AbortSignal,
  ): Promise<PreflightOutcome> {
    const { checks, flags } = this.options;
    const looked = { bootstrapDigest: plan.bootstrapDigest, binaryDigest: plan.binaryDigest };
    const validate = () => checks.validate(plan, flags(), files, signal);
    // Users wait for a new pod, and its CPUs have nothing else to do yet.
    const [printed, validated] = await Promise.all([
      checks.hotRestartVersion(plan, signal),
      request.joining ? validate() : undefined,
    ]);
    if (signal.aborted) return refused(refusal("stopping", "preflight was ended before its result"));
    if (printed.kind === "refused") return { kind: "refused", refusal: printed.refusal, looked };
    const wanted = request.hotRestartVersion;
    if (wanted !== undefined && wanted !== "" && printed.version !== wanted) {
      const detail =
        `${plan.binaryPath} prints hot restart version ${printed.version}, the serving epoch has ${wanted}: they can't hand over to each other, a restart that drains first can switch to it (epochd restart --drained)`;
      return { kind: "refused", refusal: refusal("hot_restart_version_differs", detail), looked };
    }
    const verdict = validated ?? await validate();
    if (signal.aborted) return refused(refusal("stopping", "preflight was ended before its result"));
    if (verdict.refusal !== undefined) return { kind: "refused", refusal: verdict.refusal, looked };
    return this.passed(plan, files, verdict.cached);
  }

  private passed(plan: Plan, files: string, cached: boolean): PreflightOutcome {
    this.passedWith.set(plan.key, files);
    return { kind: "passed", plan, cached };
  }

  private readBootstrap(
    bootstrap: { readonly digest: string; readonly bytes: Uint8Array },
  ): Step<Pick<Parsed, "namedFiles" | "controlPlaneClusters"> & { readonly admin: AdminAddress }> {
    const { bootstrapPath, adminAddress, flags } = this.options;
    const no = (name: RefusalName, detail: string) => ({ kind: "no", refusal: refusal(name, detail) } as const);
    const configYaml = flagValue(flags().userArgs, "--config-yaml");
    const of = `${bootstrap.digest} ${configYaml}`;
    // Parsing YAML takes a millisecond for each kilobyte, and holds everything else.
    if (this.parsed?.of !== of) {
      this.parsed = {
        of,
        bootstrap: parseBootstrap(new TextDecoder().decode(bootstrap.bytes), bootstrapPath, configYaml),
      };
    }
    const parsed = this.parsed.bootstrap;
    if (parsed.kind === "malformed") return no("bootstrap_invalid", `read ${bootstrapPath}: ${parsed.problem}`);
    const { namedFiles, controlPlaneClusters } = parsed.kind === "parsed"
      ? parsed
      : { namedFiles: [], controlPlaneClusters: [] };
    const ok = (admin: AdminAddress) => ({ kind: "ok", value: { admin, namedFiles, controlPlaneClusters } } as const);
    if (adminAddress !== undefined) {
      const differs = parsed.kind === "parsed" && parsed.admin.kind === "found"
        ? adminMismatch(parsed.admin.address, adminAddress)
        : undefined;
      // A successor that is asked at another address would be LIVE unseen, and be ended while it serves.
      return differs === undefined ? ok(adminAddress) : no("admin_address_differs", `${bootstrapPath} ${differs}`);
    }
    const why = parsed.kind === "opaque" ? parsed.why : parsed.admin.kind === "missing" ? parsed.admin.why : undefined;
    if (parsed.kind === "parsed" && parsed.admin.kind === "found") {
      return ok(parsed.admin.address);
    }
    return no(
      "admin_address_missing",
      `read the admin address from ${bootstrapPath}: ${why}; give the bootstrap one or use --admin-address`,
    );
  }
}

/** Hosts may differ: an address for all interfaces is reached by any of them. A port that Envoy chooses is no "found" address. */
function adminMismatch(bootstrap: AdminAddress, given: AdminAddress): string | undefined {
  const isSame = bootstrap.kind === "tcp"
    ? given.kind === "tcp" && given.port === bootstrap.port
    : given.kind === "unix" && given.path === bootstrap.path;
  if (isSame) return undefined;
  return `has its admin at ${showAddress(bootstrap)}, --admin-address says ${
    showAddress(given)
  }: expected the same, or none`;
}

function refused(name: Refusal): PreflightOutcome {
  return { kind: "refused", refusal: name };
}

/** The files' state as one text; one that isn't there counts too, since it may come. */
async function statsOf(paths: readonly string[]): Promise<string> {
  const stats = await Promise.all(paths.map(async (path) => {
    try {
      const info = await Deno.stat(path);
      return info.isFile ? `${path} ${statKey(info)}` : `${path} other`;
    } catch {
      return `${path} absent`;
    }
  }));
  return stats.join("\n");
}
