// Owns: one supervisor of the model: the core, its mailbox, its timers, and effects carried out on the node. Must not: judge.

import type { Effect } from "../../../lib/core/effect.ts";
import type { Plan } from "../../../lib/core/epoch.ts";
import type { Happening, TimerName } from "../../../lib/core/event.ts";
import type { Launches } from "../../../lib/core/orphan.ts";
import type { Sighting } from "../../../lib/core/sighting.ts";
import type { Settings } from "../../../lib/core/settings.ts";
import { readyEpoch } from "../../../lib/core/ready.ts";
import { initialState, type State } from "../../../lib/core/state.ts";
import { transition } from "../../../lib/core/transition.ts";
import type { Envoy, Node, StandIn } from "./node.ts";

const PLAN: Plan = {
  key: "b0+x0",
  bootstrapDigest: "b0",
  binaryDigest: "x0",
  bootstrapPath: "/state/b0",
  binaryPath: "/envoy",
  admin: { kind: "tcp", host: "127.0.0.1", port: 9901 },
};

function pidOf({ pod, attempt }: Envoy): number {
  return 1_000 * (pod + 1) + attempt;
}

export class Pod {
  state: State = initialState;
  isKilled = false;
  marker = false;
  /** Its children wait for ever. */
  isStuck = false;
  readonly told: string[] = [];
  readonly #timers = new Map<TimerName, number>();
  readonly #mailbox: Happening[] = [];
  #tickets = 0;
  #isStepping = false;

  constructor(readonly node: Node, readonly index: number, readonly settings: Settings) {
    this.submit({ kind: "start" });
  }

  get #standIns(): readonly StandIn[] {
    return this.node.standIns.filter(({ pod }) => pod === this.index);
  }

  get isOver(): boolean {
    return this.isKilled || this.state.phase.kind === "ended";
  }

  get isReady(): boolean {
    return readyEpoch(this.state) !== undefined && !this.isOver;
  }

  get envoys(): readonly Envoy[] {
    return this.node.living.filter(({ pod }) => pod === this.index);
  }

  submit(happening: Happening): void {
    if (this.isOver) return;
    this.#mailbox.push(happening);
    if (this.#isStepping) return;
    this.#isStepping = true;
    for (let next = this.#mailbox.shift(); next !== undefined; next = this.#mailbox.shift()) this.#step(next);
    this.#isStepping = false;
  }

  /** As the end of a container, or of a supervisor alone where its Envoys outlive it. */
  kill(): void {
    this.isKilled = true;
    const outlives = this.settings.onSupervisorDeath === "serve";
    if (!outlives) { for (const envoy of this.envoys) this.node.signal(envoy, "SIGKILL"); }
    for (const one of this.#standIns) {
      if (outlives && !one.isPrecaution) continue;
      this.node.endStandIn(one, { kind: "failed", problem: "its supervisor died" });
    }
    this.#unlock();
  }

  #step(happening: Happening): void {
    if (this.isOver) return;
    const { state, effects, facts } = transition(
      this.state,
      { ...happening, atMs: this.node.agenda.nowMs },
      this.settings,
    );
    this.state = state;
    for (const { kind, ...rest } of facts) this.told.push(`${this.node.agenda.nowMs} ${kind} ${JSON.stringify(rest)}`);
    for (const effect of effects) this.#perform(effect);
    if (state.phase.kind === "ended") this.#unlock();
  }

  #perform(effect: Effect): void {
    const { node } = this;
    switch (effect.kind) {
      case "preflight":
        return this.#later(1, 250, () => {
          this.submit({ kind: "preflight_passed", attempt: effect.attempt, plan: this.#plan(), cached: false });
        });
      case "spawn": {
        const { attempt, epoch } = effect;
        if (node.lockedBy !== this.index) this.#broke(`epoch ${epoch} is started without the lock`);
        node.spawn(this.index, attempt, epoch, this.isStuck, (exit) => {
          this.#later(0, 20, () => this.submit({ kind: "child_exited", attempt, exit }));
        });
        return this.submit({ kind: "spawned", attempt, pid: 1_000 + attempt });
      }
      case "signal": {
        const envoy = this.#own(effect.attempt);
        if (envoy === undefined || (effect.signal !== "SIGTERM" && effect.signal !== "SIGKILL")) return;
        const child = node.childOf(envoy);
        if (child !== undefined && child.pod !== this.index) {
          this.#broke(`${effect.signal} to epoch ${envoy.number}, to which epoch ${child.number} is attached`);
        }
        return node.signal(envoy, effect.signal);
      }
      case "ask_identity": {
        const { attempt } = effect;
        const askedAtMs = node.agenda.nowMs;
        return this.#later(1, 30, () => {
          const identity = node.identity();
          const answer = identity === undefined
            ? { kind: "silent", why: "refused", detail: "refused" } as const
            : { kind: "answered", identity } as const;
          this.submit({ kind: "identity", attempt, askedAtMs, answer });
        });
      }
      case "ask_inventory":
        return this.#later(1, 30, () => {
          const inventory = node.identity() === undefined ? undefined : { listeners: 1, clusters: 1 };
          this.submit({ kind: "inventory", attempt: effect.attempt, inventory });
        });
      case "ask_connections":
        return this.#later(1, 30, () => {
          this.submit({ kind: "connections", attempt: effect.attempt, connections: { active: 0, total: 1 } });
        });
      case "ask_vitals":
        return this.#later(1, 10, () => {
          const envoy = this.#own(effect.attempt);
          const alive = envoy !== undefined;
          const listens = { admin: alive && node.holdsAdmin(envoy), traffic: alive && envoy.accepts };
          this.submit({ kind: "vitals", attempt: effect.attempt, alive, detail: "vitals", listens });
        });
      case "drain": {
        const envoy = this.#own(effect.attempt);
        const ok = envoy !== undefined && node.holdsAdmin(envoy);
        if (ok && effect.form === "listeners") node.drain(envoy, this.settings.drainTimeMs);
        return this.#later(1, 30, () => {
          this.submit({ kind: "drain_answered", attempt: effect.attempt, ok, detail: "drain" });
        });
      }
      case "repair_segment":
        return this.#later(1, 10, () => {
          if (this.isOver) return;
          const outcome = { kind: node.repair() ? "cleared" : "clean" } as const;
          this.submit({ kind: "segment_repaired", attempt: effect.attempt, outcome });
        });
      case "stand_in":
        return this.#standIn(effect);
      case "end_stand_in":
        return this.#later(0, 5, () => {
          const one = this.#standIns.find(({ attempt }) => attempt === effect.attempt);
          if (one !== undefined) node.endStandIn(one, { kind: "failed", problem: "signal SIGKILL" });
        });
      case "take_handoff_lock":
        return this.#take(effect.attempt, node.agenda.nowMs + effect.waitMs);
      case "release_handoff_lock":
        this.#takes++;
        return this.#unlock();
      case "look":
        return this.#look(effect.probeLock, effect.admin !== undefined || effect.askOwner === true);
      case "publish": {
        const { epoch, ready } = effect;
        return this.#later(1, 15, () => {
          const { beat } = node.files;
          const isSuccessors = beat !== undefined && beat.epoch > epoch && node.files.owner?.pod !== this.index &&
            node.agenda.nowMs - beat.atMs < 2_500;
          if (!this.isOver && !isSuccessors) {
            node.files.owner = { pod: this.index, epoch, ready };
            node.files.beat = { epoch, atMs: node.agenda.nowMs };
          }
          this.submit({ kind: "published", problem: undefined });
        });
      }
      case "signal_orphan":
        return this.#later(0, 10, () => this.#signalOrphan(effect));
      case "write_marker":
        this.marker = true;
        return;
      case "remove_marker":
        this.marker = false;
        return;
      case "set_timer": {
        const ticket = ++this.#tickets;
        const { name } = effect;
        this.#timers.set(name, ticket);
        return node.agenda.at(Math.max(0, Math.ceil(effect.afterMs)), () => {
          if (this.#timers.get(name) !== ticket) return;
          this.#timers.delete(name);
          this.submit({ kind: "timer", name });
        });
      }
      case "clear_timer":
        this.#timers.delete(effect.name);
        return;
      default:
        return;
    }
  }

  #standIn({ attempt, epoch, boundMs, ...rest }: Extract<Effect, { kind: "stand_in" }>): void {
    const ended: StandIn["ended"] = (end) => {
      this.#later(0, 20, () => this.submit({ kind: "stand_in_ended", attempt, end }));
    };
    const one: StandIn = { pod: this.index, attempt, epoch, isPrecaution: rest.isPrecaution === true, ended };
    this.#later(1, 25, () => {
      if (this.isOver) return;
      if (!this.node.standIn(one)) return ended({ kind: "name_taken", problem: "somebody has the name" });
      this.submit({ kind: "stand_in_began", attempt, pid: 1_000 + attempt });
      this.node.agenda.at(boundMs, () => this.node.endStandIn(one, { kind: "bound_over" }));
    });
  }

  #takes = 0;

  /** Tries every 20 ms. A wish that is over is not granted later. */
  #take(attempt: number, untilMs: number): void {
    const { node } = this;
    const take = this.#takes;
    const answer = (taken: boolean) => this.submit({ kind: "handoff_lock", attempt, taken });
    const attemptOnce = () => {
      if (this.isOver) return;
      if (take !== this.#takes) return answer(false);
      if (node.lockedBy === undefined || node.lockedBy === this.index) {
        node.lockedBy = this.index;
        return answer(true);
      }
      if (node.agenda.nowMs >= untilMs) return answer(false);
      node.agenda.at(20, attemptOnce);
    };
    this.#later(0, 3, attemptOnce);
  }

  #unlock(): void {
    if (this.node.lockedBy === this.index) this.node.lockedBy = undefined;
  }

  #look(probeLock: boolean, asks: boolean): void {
    const { node } = this;
    const askedAtMs = node.agenda.nowMs;
    // Read one after the other, as it is in truth.
    this.#later(0, 5, () => {
      const { beat, owner } = node.files;
      const slots = node.slots;
      const isLocked = node.lockedBy !== undefined && node.lockedBy !== this.index;
      this.#later(0, 20, () => {
        const identity = asks && slots.length > 0 ? node.identity() : undefined;
        const sighting: Sighting = {
          heartbeat: beat === undefined
            ? { kind: "none" }
            : { kind: "beat", epoch: beat.epoch, ageMs: node.agenda.nowMs - beat.atMs },
          mine: owner?.pod === this.index,
          slots,
          ...(owner === undefined
            ? {}
            : { owner: { ...this.#owner(owner.pod), epoch: owner.epoch, ready: owner.ready }, sameBoot: true }),
          ...(identity === undefined ? {} : { identity }),
          ...(probeLock ? { handoffUnderWay: isLocked } : {}),
          ...(this.settings.onSupervisorDeath === "serve" ? { launches: this.#launches() } : {}),
        };
        this.submit({ kind: "sighted", askedAtMs, sighting });
      });
    });
  }

  /** By the records that no launch is without. */
  #launches(): Launches {
    const { node } = this;
    const living = node.living.toReversed();
    const isOwned = living.some(({ pod }) => this.#lives(pod));
    const orphans = isOwned ? [] : living.map((envoy) => ({ epoch: envoy.number, pid: pidOf(envoy) }));
    const newest = node.envoys.at(-1);
    if (newest === undefined || newest.state === "dead" || !(newest.isUnbound || node.isInitializing)) {
      return { orphans };
    }
    const ageMs = node.agenda.nowMs - newest.startedAtMs;
    const unfinished = { epoch: newest.number, pid: pidOf(newest), ageMs, isOrphan: !this.#lives(newest.pod) };
    return { unfinished, orphans };
  }

  #signalOrphan({ pid, signal, unlessLive }: Extract<Effect, { kind: "signal_orphan" }>): void {
    const { node } = this;
    const envoy = node.living.find((one) => pidOf(one) === pid);
    if (this.isOver || envoy === undefined || this.#lives(envoy.pod)) return;
    if (unlessLive && this.#launches().unfinished?.pid !== pid) return;
    const child = node.childOf(envoy);
    if (child !== undefined && child.startedAtMs + 20_000 > node.agenda.nowMs) {
      this.#broke(`${signal} to the orphan of epoch ${envoy.number}, to which epoch ${child.number} is attached`);
    }
    if (signal === "SIGTERM" || signal === "SIGKILL") node.signal(envoy, signal);
  }

  #lives(pod: number): boolean {
    return this.node.isAlive(pod);
  }

  #owner(pod: number) {
    const { drainTimeMs, parentShutdownTimeMs, gracePeriodMs } = this.settings;
    const times = { drainTimeMs, parentShutdownTimeMs, gracePeriodMs };
    const names = { instance: `i${pod}`, pod: `pod-${pod}`, bootId: "boot", version: "1", envoyVersion: "x" };
    return { admin: PLAN.admin, baseId: 7, concurrency: 2, uid: 0, ...times, ...names };
  }

  #plan(): Plan {
    const { drainTimeMs, parentShutdownTimeMs } = this.settings;
    return { ...PLAN, drainTimeMs, parentShutdownTimeMs };
  }

  #own(attempt: number): Envoy | undefined {
    return this.envoys.find((envoy) => envoy.attempt === attempt);
  }

  #later(fromMs: number, toMs: number, act: () => void): void {
    this.node.agenda.at(this.node.random.between(fromMs, toMs), act);
  }

  #broke(what: string): void {
    this.node.broken.push(`at ${this.node.agenda.nowMs}: pod ${this.index}: ${what}`);
  }
}
