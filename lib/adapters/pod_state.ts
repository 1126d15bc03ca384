// Owns: the state directory as two supervisors share it: look, publish, lock. Must not: decide who serves.

import { join } from "node:path";
import type { ChildSignal } from "../core/effect.ts";
import type { AdminAddress } from "../core/epoch.ts";
import type { Owner, Question, Sighting } from "../core/sighting.ts";
import type { Admin, PodState } from "../runtime/ports.ts";
import { reason } from "./content.ts";
import { FileLock } from "./flock.ts";
import { Heartbeat } from "./heartbeat.ts";
import type { LaunchRecords } from "./launch_records.ts";
import { OwnerFile } from "./owner_file.ts";
import type { HotRestartSocket } from "./hot_restart_sockets.ts";

/** A free lock is granted in well under a millisecond. */
const PROBE_MS = 50;
/** What is on its way to the state directory when the lock is let go; a disk that hangs must not hold the lock. */
const PUBLISH_MS = 1_000;

export interface SharedPodStateOptions {
  readonly stateDir: string;
  readonly baseId: number;
  readonly admin: Pick<Admin, "identity">;
  readonly sockets: (baseId: number) => Promise<readonly HotRestartSocket[]>;
  /** What stays the same for the life of this supervisor; epoch, readiness and versions come with each publication. */
  readonly self: () => Omit<Owner, "epoch" | "ready" | "admin" | "envoyVersion" | "proof">;
  /** Where Envoys outlive their supervisor. */
  readonly launches?: LaunchRecords;
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
  #probing: Promise<unknown> = Promise.resolve();
  #releasing: Promise<unknown> = Promise.resolve();

  constructor(private readonly options: SharedPodStateOptions) {
    this.#heartbeat = new Heartbeat(options.stateDir);
    this.#owner = new OwnerFile(options.stateDir);
    this.#handoff = new FileLock(join(options.stateDir, "handoff.lock"));
    this.#probe = new FileLock(this.#handoff.path, { shared: true });
    this.#wallMs = options.wallMs ?? Date.now;
  }

  async look({ admin, askOwner, probeLock }: Question): Promise<Sighting> {
    const { sockets, self, baseId } = this.options;
    const [beat, named, slots, handoffUnderWay] = await Promise.all([
      this.#heartbeat.read(),
      this.#owner.read(),
      sockets(baseId).then(parentSlots),
      probeLock ? this.#isHandoffUnderWay() : undefined,
    ]);
    const { instance, bootId } = self();
    const sameBoot = named?.bootId === bootId;
    const isOther = named !== undefined && named.baseId !== baseId;
    const owner = isOther ? undefined : named;
    const otherLives = isOther && sameBoot && parentSlots(await sockets(named.baseId)).length > 0;
    const asks = admin !== undefined || askOwner === true;
    // Of another boot, it says where something else may listen by now.
    const addresses = [
      ...(owner === undefined || !sameBoot ? [] : [owner.admin]),
      ...(admin === undefined ? [] : [admin]),
    ];
    // After the sockets: see there.
    const launches = await this.options.launches?.look(slots);
    const identity = asks && slots.length > 0 ? await this.#identity(addresses, slots) : undefined;
    return {
      heartbeat: beat === undefined || isOther
        ? { kind: "none" }
        : { kind: "beat", epoch: beat.epoch, ageMs: this.#wallMs() - beat.unixMs },
      ...(owner === undefined ? {} : { owner, sameBoot }),
      mine: owner?.instance === instance,
      slots,
      ...(handoffUnderWay === undefined ? {} : { handoffUnderWay }),
      ...(identity === undefined ? {} : { identity }),
      ...(launches === undefined ? {} : { launches }),
      ...(otherLives ? { otherBase: { baseId: named.baseId, pod: named.pod } } : {}),
    };
  }

  publish(told: Pick<Owner, "epoch" | "ready" | "admin" | "envoyVersion" | "proof">): Promise<string | undefined> {
    const published = this.#publishing.then(async () => {
      let owner: string | undefined;
      const beat = { epoch: told.epoch, unixMs: Math.round(this.#wallMs()) };
      const problem = await this.#heartbeat.write(beat, async () => {
        owner = await this.#owner.write({ ...this.options.self(), ...told });
      });
      return problem ?? owner;
    });
    this.#publishing = published;
    return published;
  }

  async takeHandoffLock(waitMs: number): Promise<{ readonly taken: boolean; readonly problem?: string }> {
    await this.#releasing;
    try {
      return { taken: await this.#handoff.take(waitMs) };
    } catch (error) {
      return { taken: false, problem: `take ${this.#handoff.path}: ${reason(error)}` };
    }
  }

  /** After what was published before: whoever takes the lock next reads of the epoch that was started under it. */
  releaseHandoffLock(): void {
    let timer: ReturnType<typeof setTimeout>;
    const late = new Promise((resolve) => timer = setTimeout(resolve, PUBLISH_MS));
    this.#releasing = Promise.race([this.#publishing, late]).then(() => {
      clearTimeout(timer);
      this.#handoff.release();
    });
  }

  async signalOrphan(
    { pid, signal, unlessLive }: { readonly pid: number; readonly signal: ChildSignal; readonly unlessLive: boolean },
  ): Promise<void> {
    const { sockets, baseId, launches } = this.options;
    await launches?.signal(pid, signal, unlessLive, await sockets(baseId).then(parentSlots));
  }

  /** The first answer that can be the epoch of one of these sockets, else the last one. */
  async #identity(addresses: readonly AdminAddress[], slots: readonly number[]): Promise<Sighting["identity"]> {
    let found: Sighting["identity"];
    const asked = new Set<string>();
    for (const address of addresses) {
      const name = JSON.stringify(address);
      if (asked.has(name)) continue;
      asked.add(name);
      const answer = await this.options.admin.identity(address);
      if (answer.kind !== "answered") continue;
      found = answer.identity;
      if (slots.includes(found.epoch % 3)) return found;
    }
    return found;
  }

  #isHandoffUnderWay(): Promise<boolean> {
    // One after the other: letting go ends every wait for the same lock.
    const probed = this.#probing.then(async () => {
      if (this.#handoff.held) return false;
      try {
        return !await this.#probe.take(PROBE_MS);
      } catch {
        return false;
      } finally {
        this.#probe.release();
      }
    });
    this.#probing = probed;
    return probed;
  }
}

/** Of living Envoys: each has four sockets from its start on (1.38.3 to 1.40.0), a stand-in has one. */
export function parentSlots(sockets: readonly HotRestartSocket[]): number[] {
  const isParent = ({ role, udp }: HotRestartSocket) => role === "parent" && !udp;
  const alone = (slot: number) => !sockets.some((other) => other.slot === slot && !isParent(other));
  return [...new Set(sockets.filter((s) => isParent(s) && !alone(s.slot)).map((s) => s.slot))].sort();
}
