// Owns: a model of hot-restarting Envoys as ENVOY-FACTS measured them: segment, sockets, admin, drain, termination.
// Must not: know the supervisor.

import type { Exit, Identity, Plan } from "../../lib/core/epoch.ts";
import type { ChildSignal } from "../../lib/core/effect.ts";
import type { Agenda } from "./agenda.ts";
import type { Random } from "./random.ts";
import type { StandIns } from "./stand_ins.ts";

/** A message that nobody takes is tried ten times, once a second; then Envoy aborts. */
const VAIN_TRIES = 10;
const FLUSH_MS = 5_000;

/** How an Envoy with a content behaves once it was started. */
export type Behaviour =
  | "good"
  | "slow"
  | "refused"
  | "unreadable"
  | "not_spawned"
  | "dies_early"
  | "dies_late"
  | "stuck"
  | "dies_after_live";

export type EndCause = "protocol" | "core" | "outside" | "orphaned" | "content" | "refused_to_start";

export interface Envoy {
  readonly attempt: number;
  readonly epoch: number;
  readonly plan: Plan;
  readonly pid: number;
  readonly behaviour: Behaviour;
  state: "booting" | "initialising" | "live" | "dead";
  parent: Envoy | undefined;
  /** Its parent is dead and was not told to end by it: it goes on talking to that one's socket. */
  orphanOf: number | undefined;
  /** Its successor was LIVE: the listeners are closed. */
  draining: boolean;
  drainsSinceMs: number | undefined;
  wasLive: boolean;
  frozen: "no" | "stopped" | "dead_locked";
  /** The first time. */
  frozeAtMs: number | undefined;
  thawedAtMs: number | undefined;
  /** What it would do were it not frozen. */
  readonly postponed: (() => void)[];
  cause: EndCause | undefined;
  endedAtMs: number | undefined;
}

export class Envoys {
  readonly all: Envoy[] = [];
  /** Who set INITIALIZING; `undefined` where the flag is clear. */
  initialising: Envoy | undefined;
  segmentExists = false;
  adminHolder: Envoy | undefined;

  constructor(
    readonly agenda: Agenda,
    readonly random: Random,
    readonly parentShutdownTimeMs: number,
    readonly onExit: (envoy: Envoy, exit: Exit) => void,
    readonly broke: (rule: string, detail: string) => void,
    readonly standIns: StandIns,
  ) {}

  get living(): readonly Envoy[] {
    return this.all.filter((envoy) => envoy.state !== "dead");
  }

  get isPoisoned(): boolean {
    return this.initialising?.state === "dead";
  }

  find(attempt: number): Envoy | undefined {
    return this.all.find((envoy) => envoy.attempt === attempt);
  }

  /** A living one with the next number: attached, or about to attach. */
  successorOf(envoy: Envoy): Envoy | undefined {
    return this.living.find((other) => other.attempt > envoy.attempt && other.epoch === envoy.epoch + 1);
  }

  start(attempt: number, epoch: number, plan: Plan, behaviour: Behaviour): Envoy {
    const envoy: Envoy = {
      attempt,
      epoch,
      plan,
      behaviour,
      pid: 1000 + attempt,
      state: "booting",
      parent: undefined,
      orphanOf: undefined,
      draining: false,
      drainsSinceMs: undefined,
      wasLive: false,
      frozen: "no",
      frozeAtMs: undefined,
      thawedAtMs: undefined,
      postponed: [],
      cause: undefined,
      endedAtMs: undefined,
    };
    this.all.push(envoy);
    this.#later(envoy, this.random.between(1, 40), () => this.#boot(envoy));
    return envoy;
  }

  identity(): Identity | "refused" | "timeout" {
    const holder = this.adminHolder;
    if (holder === undefined || holder.state === "dead") return "refused";
    if (holder.frozen !== "no") return "timeout";
    const state = holder.state === "live" ? (holder.draining ? "DRAINING" : "LIVE") : "INITIALIZING";
    return { epoch: holder.epoch, state, version: "x/1.40.0/Clean/RELEASE/BoringSSL", hotRestartVersion: "11.104" };
  }

  signal(envoy: Envoy, signal: ChildSignal, cause: EndCause): void {
    if (envoy.state === "dead" || signal === "SIGUSR1") return;
    if (signal === "SIGCONT") return envoy.frozen === "stopped" ? this.thaw(envoy) : undefined;
    if (signal === "SIGKILL") {
      return this.agenda.at(this.random.between(0, 4), () => this.end(envoy, { code: 137, signal: "SIGKILL" }, cause));
    }
    this.#later(envoy, this.random.between(5, 900), () => {
      const { parent, orphanOf } = envoy;
      if (orphanOf !== undefined) {
        return this.#reach(envoy, () => {
          this.standIns.terminate(orphanOf);
          this.end(envoy, { code: 0 }, cause);
        });
      }
      this.end(envoy, { code: 0 }, cause);
      // An orderly end of a child tells its parent to end, also before it is LIVE (1.38.3 to 1.40.0).
      if (parent !== undefined && parent.state !== "dead") {
        this.#later(parent, 0, () => this.end(parent, { code: 0 }, cause));
      }
    });
  }

  freeze(envoy: Envoy, how: "stopped" | "dead_locked"): void {
    if (envoy.state === "dead" || envoy.frozen !== "no") return;
    envoy.frozen = how;
    envoy.frozeAtMs ??= this.agenda.nowMs;
  }

  thaw(envoy: Envoy): void {
    if (envoy.frozen === "no") return;
    envoy.frozen = "no";
    envoy.thawedAtMs = this.agenda.nowMs;
    for (const act of envoy.postponed.splice(0)) this.#later(envoy, 1, act);
  }

  end(envoy: Envoy, exit: Exit, cause: EndCause): void {
    if (envoy.state === "dead") return;
    envoy.state = "dead";
    envoy.cause = cause;
    envoy.endedAtMs = this.agenda.nowMs;
    if (this.adminHolder === envoy) this.adminHolder = undefined;
    const child = this.living.find((other) => other.parent === envoy);
    if (child !== undefined) {
      child.parent = undefined;
      if (cause !== "protocol") {
        child.orphanOf = envoy.epoch;
        if (child.state === "live") this.#talk(child);
      }
    }
    this.onExit(envoy, exit);
  }

  /** Clears INITIALIZING, as the supervisor's repair does. */
  repair(): boolean {
    const child = this.living.find(({ state }) => state !== "live");
    if (child !== undefined) this.broke("repair_beside_child", `epoch ${child.epoch} (${child.attempt}) is starting`);
    const wasSet = this.initialising !== undefined;
    this.initialising = undefined;
    return wasSet;
  }

  /** Statistics at every flush, until the orphan has told its parent's place to terminate. */
  #talk(orphan: Envoy): void {
    this.#later(orphan, this.random.between(0, FLUSH_MS), () => {
      if (orphan.orphanOf !== undefined) this.#reach(orphan, () => this.#talk(orphan));
    });
  }

  /** Whoever answers in its dead parent's place, or nobody (errno 111). */
  #reach(orphan: Envoy, go: () => void, tries = 0): void {
    if (orphan.orphanOf === undefined || this.standIns.isUp(orphan.orphanOf)) return go();
    if (tries >= VAIN_TRIES) return this.end(orphan, { code: 134, signal: "SIGABRT" }, "orphaned");
    this.#later(orphan, 1_000, () => this.#reach(orphan, go, tries + 1));
  }

  #later(envoy: Envoy, afterMs: number, act: () => void): void {
    this.agenda.at(afterMs, () => {
      if (envoy.state === "dead") return;
      if (envoy.frozen !== "no") envoy.postponed.push(act);
      else act();
    });
  }

  #boot(envoy: Envoy): void {
    const { random } = this;
    const others = this.living.filter((other) => other !== envoy);
    if (envoy.epoch === 0) {
      if (others.length > 0) this.broke("epoch_0_beside", `epoch ${others[0]?.epoch} lives`);
      this.segmentExists = true;
    } else {
      if (!this.segmentExists) return this.end(envoy, { code: 134 }, "refused_to_start");
      if (this.initialising !== undefined) return this.end(envoy, { code: 1 }, "refused_to_start");
    }
    this.initialising = envoy;
    envoy.state = "initialising";
    if (this.standIns.holds(envoy.epoch % 3)) this.broke("stand_in_in_the_way", `of epoch ${envoy.epoch}`);
    const collides = others.some(({ epoch, state }) => state !== "booting" && epoch % 3 === envoy.epoch % 3);
    if (collides) return this.end(envoy, { code: 1 }, "refused_to_start");
    const parent = others.find(({ epoch, state }) => epoch === envoy.epoch - 1 && state === "live");
    if (parent !== undefined) this.#attach(envoy, parent);
    else if (this.standIns.isUp(envoy.epoch - 1)) envoy.orphanOf = envoy.epoch - 1;
    if (envoy.behaviour === "dies_early") {
      return this.#later(envoy, random.between(0, 80), () => this.end(envoy, { code: 1 }, "content"));
    }
    this.#later(envoy, random.between(5, 60), () => this.#askParent(envoy, () => this.#takeAdmin(envoy)));
  }

  #attach(envoy: Envoy, parent: Envoy): void {
    envoy.parent = parent;
    const grandparent = parent.parent;
    // Two generations at most: the parent ends its own at once, whatever connections that one holds.
    if (grandparent !== undefined) this.#terminate(parent, grandparent, this.random.between(0, 400));
    else this.#terminatePlace(parent);
  }

  /** A frozen parent answers when it is awake again. */
  #askParent(envoy: Envoy, go: () => void): void {
    const { parent } = envoy;
    if (envoy.orphanOf !== undefined) return this.#reach(envoy, go);
    if (parent === undefined || parent.frozen === "no") return go();
    parent.postponed.push(() => this.#later(envoy, 1, go));
  }

  #takeAdmin(envoy: Envoy): void {
    const { random } = this;
    if (this.adminHolder === envoy.parent) this.adminHolder = undefined;
    // For a moment nobody answers.
    this.#later(envoy, random.between(1, 40), () => {
      this.adminHolder = envoy;
      if (envoy.behaviour === "dies_late") {
        return this.#later(envoy, random.between(0, 400), () => this.end(envoy, { code: 1 }, "content"));
      }
      if (envoy.behaviour === "stuck") return;
      const delayMs = envoy.behaviour === "slow" ? random.between(500, 4_000) : random.between(20, 200);
      this.#later(envoy, delayMs, () => this.#askParent(envoy, () => this.#live(envoy)));
    });
  }

  #live(envoy: Envoy): void {
    envoy.state = "live";
    envoy.wasLive = true;
    if (this.initialising === envoy) this.initialising = undefined;
    const { parent } = envoy;
    if (parent !== undefined) {
      parent.draining = true;
      parent.drainsSinceMs ??= this.agenda.nowMs;
      this.#later(envoy, this.parentShutdownTimeMs, () => {
        if (envoy.parent === parent) this.#terminate(envoy, parent, this.random.between(0, 300));
      });
    }
    if (envoy.orphanOf !== undefined) this.#talk(envoy);
    this.#later(envoy, this.parentShutdownTimeMs, () => this.#terminatePlace(envoy));
    if (envoy.behaviour === "dies_after_live") {
      this.#later(
        envoy,
        this.random.between(0, 2_500),
        () => this.end(envoy, { code: 139, signal: "SIGSEGV" }, "content"),
      );
    }
  }

  /** Says so to whoever has the place of its dead parent, and talks to it no more. */
  #terminatePlace(orphan: Envoy): void {
    const { orphanOf } = orphan;
    if (orphanOf === undefined) return;
    this.#reach(orphan, () => {
      if (orphan.orphanOf === undefined) return;
      orphan.orphanOf = undefined;
      this.standIns.terminate(orphanOf);
    });
  }

  #terminate(by: Envoy, parent: Envoy, afterMs: number): void {
    by.parent = undefined;
    this.#later(parent, afterMs, () => this.end(parent, { code: 0 }, "protocol"));
  }
}
