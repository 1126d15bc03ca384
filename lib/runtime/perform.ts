// Owns: carrying out effects; every outcome comes back as an event. Must not: wait, decide, or let an exception out.

import type { Effect } from "../core/effect.ts";
import type { Happening } from "../core/event.ts";
import { refusal } from "../core/refusal.ts";
import type {
  Admin,
  ChildProcess,
  Clock,
  PodState,
  Preflight,
  PreflightOutcome,
  Processes,
  ReadyMarker,
  Segment,
  StandIn,
  StandIns,
} from "./ports.ts";
import type { Timers } from "./timers.ts";

export interface ServicePorts {
  readonly processes: Processes;
  readonly admin: Admin;
  readonly preflight: Preflight;
  readonly segment: Segment;
  readonly standIns: StandIns;
  /** Absent where no marker is asked for. */
  readonly marker: ReadyMarker | undefined;
  /** Absent where the base id is not shared with another pod. */
  readonly pods: PodState | undefined;
  /** Takes over what must be equal in every epoch of this base id. */
  readonly adopt: (adopted: { readonly concurrency?: number; readonly parentShutdownTimeMs?: number }) => void;
}

export class Performer {
  readonly #children = new Map<number, ChildProcess>();
  readonly #preflights = new Map<number, AbortController>();
  readonly #standIns = new Map<number, StandIn>();

  constructor(
    readonly ports: ServicePorts,
    readonly clock: Clock,
    readonly timers: Timers,
    readonly submit: (happening: Happening) => void,
    /** A rejection of a port is a bug: ports answer with values. */
    readonly bug: (where: string, error: unknown) => void,
  ) {}

  perform(effect: Effect): void {
    switch (effect.kind) {
      case "preflight":
        return this.#preflight(effect);
      case "cancel_preflight":
        this.#preflights.get(effect.attempt)?.abort();
        return;
      case "spawn":
        return this.#spawn(effect);
      case "signal":
        this.#children.get(effect.attempt)?.signal(effect.signal);
        return;
      case "ask_identity": {
        const { attempt } = effect;
        const askedAtMs = this.clock.nowMs();
        return this.#answer(
          effect.kind,
          this.ports.admin.identity(effect.admin),
          (answer) => ({ kind: "identity", attempt, askedAtMs, answer }),
        );
      }
      case "ask_inventory": {
        const { attempt } = effect;
        return this.#answer(
          effect.kind,
          this.ports.admin.inventory(effect.admin, effect.controlPlaneClusters),
          (inventory) => ({ kind: "inventory", attempt, inventory }),
        );
      }
      case "ask_connections": {
        const { attempt } = effect;
        return this.#answer(
          effect.kind,
          this.ports.admin.connections(effect.admin),
          (connections) => ({ kind: "connections", attempt, connections }),
        );
      }
      case "ask_vitals": {
        const { attempt, epoch, admin } = effect;
        const pid = this.#children.get(attempt)?.pid;
        if (pid === undefined) return;
        return this.#answer(
          effect.kind,
          this.ports.segment.vitals(pid, epoch, admin),
          (vitals) => ({ kind: "vitals", attempt, ...vitals }),
        );
      }
      case "drain": {
        const { attempt } = effect;
        return this.#answer(
          effect.kind,
          this.ports.admin.drain(effect.admin, effect.form),
          ({ ok, detail }) => ({ kind: "drain_answered", attempt, ok, detail }),
        );
      }
      case "repair_segment": {
        const { attempt } = effect;
        return this.#answer(
          effect.kind,
          this.ports.segment.repair(),
          (outcome) => ({ kind: "segment_repaired", attempt, outcome }),
        );
      }
      case "stand_in":
        return this.#standIn(effect);
      case "end_stand_in":
        return this.#standIns.get(effect.attempt)?.stop();
      case "adopt":
        return this.ports.adopt(effect);
      case "take_handoff_lock":
      case "release_handoff_lock":
      case "look":
      case "publish":
      case "signal_orphan":
        return this.#amongPods(effect);
      case "write_marker":
        if (this.ports.marker === undefined) return;
        return this.#answer(
          effect.kind,
          this.ports.marker.write(effect.epoch),
          (problem) => ({ kind: "marker", problem }),
        );
      case "remove_marker":
        if (this.ports.marker === undefined) return;
        return this.#answer(effect.kind, this.ports.marker.remove(), (problem) => ({ kind: "marker", problem }));
      case "prune_snapshots":
        this.ports.preflight.prune(effect.keepDigests).catch((error) => this.bug(effect.kind, error));
        return;
      case "keep_binary":
        return this.#keepBinary(effect);
      case "set_timer":
        return this.timers.set(effect.name, effect.afterMs);
      case "clear_timer":
        return this.timers.clear(effect.name);
    }
  }

  #amongPods(
    effect: Extract<
      Effect,
      { kind: "take_handoff_lock" | "release_handoff_lock" | "look" | "publish" | "signal_orphan" }
    >,
  ): void {
    const { pods } = this.ports;
    if (pods === undefined) return;
    switch (effect.kind) {
      case "release_handoff_lock":
        return pods.releaseHandoffLock();
      case "signal_orphan":
        pods.signalOrphan(effect).catch((error) => this.bug(effect.kind, error));
        return;
      case "take_handoff_lock": {
        const { attempt, waitMs } = effect;
        return this.#answer(effect.kind, pods.takeHandoffLock(waitMs), ({ taken, problem }) => ({
          kind: "handoff_lock",
          attempt,
          taken,
          ...(problem === undefined ? {} : { problem }),
        }));
      }
      case "publish": {
        const { kind, ...told } = effect;
        return this.#answer(kind, pods.publish(told), (problem) => ({ kind: "published", problem }));
      }
      case "look": {
        const askedAtMs = this.clock.nowMs();
        const { kind, ...question } = effect;
        return this.#answer(kind, pods.look(question), (sighting) => ({ kind: "sighted", askedAtMs, sighting }));
      }
    }
  }

  /** Living children, for the last resort at the end of the supervisor. */
  get living(): readonly ChildProcess[] {
    return [...this.#children.values()];
  }

  #answer<T>(where: string, promise: Promise<T>, happening: (value: T) => Happening): void {
    promise.then((value) => this.submit(happening(value)), (error) => this.bug(where, error));
  }

  #keepBinary({ attempt, digest, path, keepDigests }: Extract<Effect, { kind: "keep_binary" }>): void {
    const pid = this.#children.get(attempt)?.pid;
    if (pid === undefined) return;
    const problem = this.ports.processes.keepBinary({ digest, path, pid }, keepDigests);
    if (problem !== undefined) this.submit({ kind: "binary_not_kept", attempt, problem });
  }

  #preflight(effect: Extract<Effect, { kind: "preflight" }>): void {
    const { attempt, depth, provenKeys, hotRestartVersion, joining, proven } = effect;
    const abort = new AbortController();
    this.#preflights.set(attempt, abort);
    const request = {
      depth,
      provenKeys,
      joining: joining === true,
      ...(proven === undefined ? {} : { proven }),
      ...(hotRestartVersion === undefined ? {} : { hotRestartVersion }),
    };
    this.ports.preflight.run(request, abort.signal)
      .catch((error): PreflightOutcome => {
        this.bug(effect.kind, error);
        const detail = `preflight could not be carried out: ${error instanceof Error ? error.message : error}`;
        return { kind: "refused", refusal: refusal("snapshot_failed", detail) } satisfies PreflightOutcome;
      })
      .then((outcome) => {
        this.#preflights.delete(attempt);
        if (outcome.kind === "passed") {
          return this.submit({ kind: "preflight_passed", attempt, plan: outcome.plan, cached: outcome.cached });
        }
        const { refusal, looked } = outcome;
        this.submit({ kind: "preflight_refused", attempt, refusal, ...(looked === undefined ? {} : { looked }) });
      });
  }

  #standIn({ attempt, ...asked }: Extract<Effect, { kind: "stand_in" }>): void {
    const standIn = this.ports.standIns.begin(asked);
    this.#standIns.set(attempt, standIn);
    const told = standIn.began.then((pid) => {
      if (pid !== undefined) this.submit({ kind: "stand_in_began", attempt, pid });
    });
    // In this order, however short it stood.
    Promise.all([standIn.end, told]).then(([end]) => {
      this.#standIns.delete(attempt);
      this.submit({ kind: "stand_in_ended", attempt, end });
    }).catch((error) => this.bug("stand_in", error));
  }

  #spawn(effect: Extract<Effect, { kind: "spawn" }>): void {
    const { attempt, epoch, plan, sameBinaryAsPid } = effect;
    const request = { epoch, plan, ...(sameBinaryAsPid === undefined ? {} : { sameBinaryAsPid }) };
    const spawned = this.ports.processes.spawn(request);
    if (spawned.kind === "failed") return this.submit({ kind: "spawn_failed", attempt, refusal: spawned.refusal });
    const { process } = spawned;
    this.#children.set(attempt, process);
    this.submit({ kind: "spawned", attempt, pid: process.pid });
    process.exit.then((exit) => {
      this.#children.delete(attempt);
      this.submit({ kind: "child_exited", attempt, exit });
    });
  }
}
