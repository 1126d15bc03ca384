// Owns: the state directory as two supervisors share it: look, publish, lock. Must not: decide who serves.

import { join } from "node:path";
import type { AdminAddress } from "../core/epoch.ts";
import type { Owner, Sighting } from "../core/sighting.ts";
import type { Admin, PodState } from "../runtime/ports.ts";
import { reason } from "./content.ts";
import { FileLock } from "./flock.ts";
import { Heartbeat } from "./heartbeat.ts";
import { OwnerFile } from "./owner_file.ts";
import type { HotRestartSocket } from "./hot_restart_sockets.ts";

/** A free lock is granted in well under a millisecond. */
const PROBE_MS = 50;

export interface SharedPodStateOptions {
  readonly stateDir: string;
  readonly admin: Admin;
  readonly sockets: () => Promise<readonly HotRestartSocket[]>;
  /** What stays the same for the life of this supervisor; epoch, readiness and versions come with each publication. */
  readonly self: () => Omit<Owner, "epoch" | "ready" | "admin" | "envoyVersion">;
  readonly wallMs?: () => number;
}

export class SharedPodState implements PodState {
  readonly #heartbeat: Heartbeat;
  readonly #owner: OwnerFile;
  readonly #handoff: FileLock;
  /** One for all probes: on 2.6.10 each unanswered one would keep a thread. */
  readonly #probe: FileLock;
  readonly #wallMs: () => number;
  #publishing: Promise<unknown> = Promise.resolve();

  constructor(private readonly options: SharedPodStateOptions) {
    this.#heartbeat = new Heartbeat(options.stateDir);
    this.#owner = new OwnerFile(options.stateDir);
    this.#handoff = new FileLock(join(options.stateDir, "handoff.lock"));
    this.#probe = new FileLock(this.#handoff.path);
    this.#wallMs = options.wallMs ?? Date.now;
  }

  async look(admin: AdminAddress | undefined, probeLock: boolean): Promise<Sighting> {
    const { sockets, self } = this.options;
    const [beat, owner, found, handoffUnderWay] = await Promise.all([
      this.#heartbeat.read(),
      this.#owner.read(),
      sockets(),
      probeLock ? this.#isHandoffUnderWay() : undefined,
    ]);
    const slots = [...new Set(found.filter((s) => s.role === "parent" && !s.udp).map((s) => s.slot))].sort();
    const address = owner?.admin ?? admin;
    const answer = address === undefined || slots.length === 0 ? undefined : await this.options.admin.identity(address);
    const { instance, bootId } = self();
    return {
      heartbeat: beat === undefined
        ? { kind: "none" }
        : { kind: "beat", epoch: beat.epoch, ageMs: this.#wallMs() - beat.unixMs },
      ...(owner === undefined ? {} : { owner, sameBoot: owner.bootId === bootId }),
      mine: owner?.instance === instance,
      slots,
      ...(handoffUnderWay === undefined ? {} : { handoffUnderWay }),
      ...(answer?.kind === "answered"
        ? { identity: { epoch: answer.identity.epoch, state: answer.identity.state } }
        : {}),
    };
  }

  publish(told: Pick<Owner, "epoch" | "ready" | "admin" | "envoyVersion">): Promise<string | undefined> {
    const published = this.#publishing.then(async () => {
      const owner = await this.#owner.write({ ...this.options.self(), ...told });
      const beat = await this.#heartbeat.write({ epoch: told.epoch, unixMs: this.#wallMs() });
      return owner ?? beat;
    });
    this.#publishing = published;
    return published;
  }

  async takeHandoffLock(waitMs: number): Promise<{ readonly taken: boolean; readonly problem?: string }> {
    try {
      return { taken: await this.#handoff.take(waitMs) };
    } catch (error) {
      return { taken: false, problem: `take ${this.#handoff.path}: ${reason(error)}` };
    }
  }

  releaseHandoffLock(): void {
    this.#handoff.release();
  }

  async #isHandoffUnderWay(): Promise<boolean> {
    if (this.#handoff.held) return false;
    try {
      return !await this.#probe.take(PROBE_MS);
    } catch {
      return false;
    } finally {
      this.#probe.release();
    }
  }
}
