// Owns: one real Envoy service for the adapters' tests: its flags, bootstrap, ports and adapters. Must not: supervise.
import { EnvoyAdmin } from "../../../lib/adapters/admin.ts";
import type { EpochFlags } from "../../../lib/adapters/envoy_args.ts";
import { EnvoyProcesses } from "../../../lib/adapters/process.ts";
import { SharedMemory } from "../../../lib/adapters/shared_memory.ts";
import type { AdminAddress, Plan } from "../../../lib/core/epoch.ts";
import type { ChildProcess } from "../../../lib/runtime/ports.ts";
import { freeBaseId, removeSegment } from "../../support/base_ids.ts";
import { type BootstrapOptions, writeBootstrap } from "../../support/bootstrap.ts";
import { envoyPath, type EnvoyVersion } from "../../support/envoys.ts";
import { freePort } from "../../support/ports.ts";
import { type TempDir, tempDir } from "../../support/tempdir.ts";
import { until, within } from "../../support/until.ts";

export interface RealEnvoyOptions extends Partial<BootstrapOptions> {
  readonly flags?: Partial<EpochFlags>;
  readonly adminOnUnix?: boolean;
}

export interface StartOptions {
  readonly plan?: Partial<Plan>;
  readonly sameBinaryAsPid?: number;
}

export class RealEnvoy implements AsyncDisposable {
  readonly dir: TempDir = tempDir();
  readonly baseId = freeBaseId();
  readonly listenPort = freePort();
  readonly admin = new EnvoyAdmin({ timeoutMs: 5000 });
  readonly segment = new SharedMemory(this.baseId, { endingMs: 0 });
  readonly plan: Plan;
  readonly flags: EpochFlags;
  private readonly processes: EnvoyProcesses;
  private readonly children: ChildProcess[] = [];
  isStill = true;

  constructor(version: EnvoyVersion, options: RealEnvoyOptions = {}) {
    const { flags, adminOnUnix, ...rest } = options;
    const address: AdminAddress = adminOnUnix === true
      ? { kind: "unix", path: this.dir.at("admin.sock") }
      : { kind: "tcp", host: "127.0.0.1", port: freePort() };
    const adminOption = address.kind === "unix" ? { adminPath: address.path } : { adminPort: address.port };
    const bootstrapPath = writeBootstrap(this.dir.at("envoy.yaml"), {
      ...adminOption,
      listenPort: this.listenPort,
      ...rest,
    });
    this.flags = {
      baseId: this.baseId,
      concurrency: 1,
      drainTimeMs: 1000,
      parentShutdownTimeMs: 2000,
      userArgs: ["-l", "error"],
      ...flags,
    };
    this.plan = {
      key: "key",
      bootstrapDigest: "bootstrap",
      binaryDigest: "binary",
      bootstrapPath,
      binaryPath: envoyPath(version),
      admin: address,
    };
    this.processes = new EnvoyProcesses({ flagsOf: () => this.flags, isStill: () => this.isStill });
  }

  start(epoch: number, { plan, sameBinaryAsPid }: StartOptions = {}): ChildProcess {
    const request = { epoch, plan: { ...this.plan, ...plan } };
    const spawned = this.processes.spawn(sameBinaryAsPid === undefined ? request : { ...request, sameBinaryAsPid });
    if (spawned.kind === "failed") throw new Error(`${spawned.refusal.name}: ${spawned.refusal.detail}`);
    this.children.push(spawned.process);
    return spawned.process;
  }

  async untilLive(epoch: number): Promise<void> {
    await until(`epoch ${epoch} is LIVE`, async () => {
      const answer = await this.admin.identity(this.plan.admin);
      return answer.kind === "answered" && answer.identity.state === "LIVE" && answer.identity.epoch === epoch;
    });
  }

  async startLive(epoch: number, options: StartOptions = {}): Promise<ChildProcess> {
    const child = this.start(epoch, options);
    const died = child.exit.then((exit) => Promise.reject(new Error(`epoch ${epoch} ended: ${JSON.stringify(exit)}`)));
    await Promise.race([this.untilLive(epoch), died]);
    return child;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    // The newest first: a parent that dies under a child takes the child along, not the other way round.
    for (const child of this.children.toReversed()) {
      child.signal("SIGKILL");
      await within(`the end of Envoy ${child.pid}`, child.exit);
    }
    removeSegment(this.baseId);
    await this.dir[Symbol.asyncDispose]();
  }
}
