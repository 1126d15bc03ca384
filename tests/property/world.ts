// Owns: one run of the core in a simulated world: performs effects, feeds outcomes back, keeps the trace.
// Must not: judge; the tests have the predicates. `broken` holds what only the world can see.

import type { Effect } from "../../lib/core/effect.ts";
import type { Plan } from "../../lib/core/epoch.ts";
import type { Event, Happening, Subject, TimerName, TriggerSource } from "../../lib/core/event.ts";
import type { Fact } from "../../lib/core/fact.ts";
import type { Settings } from "../../lib/core/settings.ts";
import { initialState, type State } from "../../lib/core/state.ts";
import { transition } from "../../lib/core/transition.ts";
import { PREDECESSOR_MARGIN_MS } from "../../lib/core/bounds.ts";
import { refusal } from "../../lib/core/refusal.ts";
import { Agenda } from "./agenda.ts";
import { QUESTION_MS } from "./bounds.ts";
import { type Behaviour, type Envoy, Envoys } from "./envoys.ts";
import { Random } from "./random.ts";
import { StandIns } from "./stand_ins.ts";

/** One step, as it was taken. */
export interface Taken {
  readonly event: Event;
  readonly before: State;
  readonly after: State;
  readonly effects: readonly Effect[];
  readonly facts: readonly Fact[];
  /** Names of timers that run after it. */
  readonly timers: ReadonlySet<TimerName>;
  /** Questions that nobody has answered yet, after it. */
  readonly questions: number;
  /** Living Envoys when it was taken, by attempt. */
  readonly living: ReadonlySet<number>;
  /** Of those, the ones that accept connections. */
  readonly accepting: ReadonlySet<number>;
}

export interface Broken {
  readonly rule: string;
  readonly detail: string;
  readonly atMs: number;
}

function accepts({ state, frozen, draining }: Envoy): boolean {
  return state === "live" && frozen === "no" && !draining;
}

export class World {
  readonly agenda = new Agenda();
  readonly envoys: Envoys;
  readonly standIns: StandIns;
  readonly trace: Taken[] = [];
  readonly broken: Broken[] = [];
  state: State = initialState;
  markerWorks = true;
  repairWorks = true;
  controlPlane: "none" | "connected" | "away" = "none";
  connections = 0;
  readonly #random: Random;
  /** Where /proc can't be read, nobody knows who listens. */
  readonly #seesSockets: boolean;
  readonly #timers = new Map<TimerName, number>();
  readonly #contents: Record<Subject, { digest: string; behaviour: Behaviour; usable: boolean }> = {
    bootstrap: { digest: "b0", behaviour: "good", usable: true },
    binary: { digest: "x0", behaviour: "good", usable: true },
  };
  readonly #behaviours = new Map<string, Behaviour>([["b0", "good"], ["x0", "good"]]);
  readonly #snapshots = new Set<string>();
  readonly #cancelled = new Set<number>();
  readonly #mailbox: Happening[] = [];
  #tickets = 0;
  #questions = 0;
  #isStepping = false;

  constructor(readonly settings: Settings, seed: number, readonly keepsTrace = true) {
    this.#random = new Random(seed);
    this.#seesSockets = this.#random.chance(0.8);
    this.standIns = new StandIns(
      this.agenda,
      this.#random,
      (slot) => this.envoys.living.some(({ epoch, state }) => state !== "booting" && epoch % 3 === slot),
      (attempt) => this.submit({ kind: "stand_in_began", attempt, pid: 1000 + attempt }),
      (attempt, end) => this.submit({ kind: "stand_in_ended", attempt, end }),
    );
    this.envoys = new Envoys(
      this.agenda,
      this.#random,
      settings.parentShutdownTimeMs,
      ({ attempt }, exit) => this.#later(0, 20, () => this.submit({ kind: "child_exited", attempt, exit })),
      (rule, detail) => this.#broke(rule, detail),
      this.standIns,
    );
    this.#report("bootstrap");
    this.#report("binary");
    this.submit({ kind: "start" });
  }

  get hasEnded(): boolean {
    return this.state.phase.kind === "ended";
  }

  get nowMs(): number {
    return this.agenda.nowMs;
  }

  runFor(ms: number): void {
    const untilMs = this.agenda.nowMs + ms;
    while (this.agenda.next(untilMs)) { /* one at a time */ }
  }

  submit(happening: Happening): void {
    this.#mailbox.push(happening);
    if (this.#isStepping) return;
    this.#isStepping = true;
    for (let next = this.#mailbox.shift(); next !== undefined; next = this.#mailbox.shift()) this.#step(next);
    this.#isStepping = false;
  }

  trigger(source: TriggerSource, requests: readonly string[] = [], force = false, drained = false): void {
    const how = drained ? { force, drained } : { force };
    this.submit({ kind: "trigger", trigger: { source, requests, when: "always", ...how, jitter: 0 } });
  }

  edit(subject: Subject, digest: string, behaviour: Behaviour): void {
    this.#contents[subject] = { digest, behaviour, usable: true };
    this.#behaviours.set(digest, behaviour);
    this.#report(subject);
  }

  spoil(subject: Subject): void {
    this.#contents[subject] = { ...this.#contents[subject], usable: false };
    this.#report(subject);
  }

  stop(): void {
    this.submit({ kind: "stop", source: "SIGTERM" });
  }

  #step(happening: Happening): void {
    if (this.hasEnded) return;
    const event = { ...happening, atMs: this.agenda.nowMs };
    const before = this.state;
    const { state, effects, facts } = transition(before, event, this.settings);
    this.state = state;
    for (const effect of effects) this.#perform(effect);
    if (!this.keepsTrace) return;
    const living = this.envoys.living;
    this.trace.push({
      event,
      before,
      after: state,
      effects,
      facts,
      timers: new Set(this.#timers.keys()),
      questions: this.#questions,
      living: new Set(living.map(({ attempt }) => attempt)),
      accepting: new Set(living.filter(accepts).map(({ attempt }) => attempt)),
    });
  }

  #perform(effect: Effect): void {
    switch (effect.kind) {
      case "preflight":
        return this.#preflight(effect.attempt, effect.depth);
      case "cancel_preflight":
        this.#cancelled.add(effect.attempt);
        return;
      case "spawn":
        return this.#spawn(effect.attempt, effect.epoch, effect.plan);
      case "signal": {
        const envoy = this.envoys.find(effect.attempt);
        if (envoy === undefined) return this.#broke("signal_to_nobody", `attempt ${effect.attempt}`);
        this.#watchSignal(envoy, effect.signal);
        return this.envoys.signal(envoy, effect.signal, "core");
      }
      case "ask_identity": {
        const { attempt } = effect;
        const askedAtMs = this.nowMs;
        return this.#ask(() => this.envoys.identity(), (answer) => ({
          kind: "identity",
          attempt,
          askedAtMs,
          answer: typeof answer === "string"
            ? { kind: "silent", why: answer, detail: answer }
            : { kind: "answered", identity: answer },
        }));
      }
      case "ask_inventory": {
        const { attempt } = effect;
        const connected = this.controlPlane === "none" ? {} : { controlPlaneConnected: this.controlPlane !== "away" };
        return this.#ask(() => this.envoys.identity(), (answer) => ({
          kind: "inventory",
          attempt,
          inventory: typeof answer === "string" ? undefined : { ...connected, listeners: 1, clusters: 2 },
        }));
      }
      case "ask_connections": {
        const { attempt } = effect;
        return this.#ask(() => this.envoys.identity(), (answer) => ({
          kind: "connections",
          attempt,
          connections: typeof answer === "string" ? undefined : { active: this.connections, total: 10 },
        }));
      }
      case "ask_vitals": {
        const { attempt } = effect;
        const envoy = this.envoys.find(attempt);
        return this.#question(1, 10, () => {
          const alive = envoy !== undefined && envoy.state !== "dead" && envoy.frozen !== "stopped";
          const traffic = alive && envoy.state === "live" && !envoy.draining;
          const listens = { admin: this.envoys.adminHolder === envoy, traffic };
          this.submit({ kind: "vitals", attempt, alive, detail: "vitals", ...(this.#seesSockets ? { listens } : {}) });
        });
      }
      case "drain": {
        const { attempt } = effect;
        return this.#ask(() => this.envoys.identity(), (answer) => ({
          kind: "drain_answered",
          attempt,
          ok: typeof answer !== "string",
          detail: "drain",
        }));
      }
      case "repair_segment": {
        const { attempt } = effect;
        return this.#question(1, 25, () => {
          if (!this.repairWorks) {
            return this.submit({ kind: "segment_repaired", attempt, outcome: { kind: "failed", detail: "EACCES" } });
          }
          const outcome = { kind: this.envoys.repair() ? "cleared" : "clean" } as const;
          this.submit({ kind: "segment_repaired", attempt, outcome });
        });
      }
      case "stand_in":
        if (this.envoys.living.some(({ epoch }) => epoch === effect.epoch)) {
          this.#broke("stands_beside", `epoch ${effect.epoch} lives`);
        }
        return this.standIns.begin(effect.attempt, effect.epoch, effect.boundMs);
      case "end_stand_in":
        return this.standIns.kill(effect.attempt);
      case "write_marker":
      case "remove_marker":
        return this.#question(0, 10, () => {
          this.submit({ kind: "marker", problem: this.markerWorks ? undefined : "ENOSPC" });
        });
      case "prune_snapshots":
        for (const digest of this.#snapshots) if (!effect.keepDigests.includes(digest)) this.#snapshots.delete(digest);
        return;
      case "keep_binary":
        return;
      case "set_timer": {
        const ticket = ++this.#tickets;
        const { name } = effect;
        this.#timers.set(name, ticket);
        return this.agenda.at(Math.max(0, Math.ceil(effect.afterMs)), () => {
          if (this.#timers.get(name) !== ticket) return;
          this.#timers.delete(name);
          this.submit({ kind: "timer", name });
        });
      }
      case "clear_timer":
        this.#timers.delete(effect.name);
        return;
    }
  }

  #preflight(attempt: number, depth: "first" | "full"): void {
    const random = this.#random;
    // Read at some moment on the way; what is edited after that comes as an event of its own.
    this.#question(1, 150, () => {
      const { bootstrap, binary } = this.#contents;
      this.#question(1, 250, () => {
        // Now and then the answer was on its way already.
        if (this.#cancelled.has(attempt) && random.chance(0.7)) return;
        const looked = { bootstrapDigest: bootstrap.digest, binaryDigest: binary.digest };
        const behaviours = [bootstrap.behaviour, binary.behaviour];
        if (!bootstrap.usable || !binary.usable || behaviours.includes("unreadable")) {
          const why = refusal("bootstrap_unreadable", "it is a directory");
          return this.submit({ kind: "preflight_refused", attempt, refusal: why });
        }
        if (depth === "full" && behaviours.includes("refused")) {
          const why = refusal("bootstrap_invalid", "no such field: 'foo'");
          return this.submit({ kind: "preflight_refused", attempt, refusal: why, looked });
        }
        this.#snapshots.add(bootstrap.digest);
        const plan: Plan = {
          ...looked,
          key: `${bootstrap.digest}+${binary.digest}`,
          bootstrapPath: `/state/${bootstrap.digest}`,
          binaryPath: "/envoy",
          admin: { kind: "tcp", host: "127.0.0.1", port: 9901 },
        };
        this.submit({ kind: "preflight_passed", attempt, plan, cached: random.chance(0.5) });
      });
    });
  }

  #spawn(attempt: number, epoch: number, plan: Plan): void {
    if (!this.#snapshots.has(plan.bootstrapDigest)) this.#broke("snapshot_gone", plan.bootstrapDigest);
    const [bootstrap, binary] = [plan.bootstrapDigest, plan.binaryDigest].map((d) => this.#behaviours.get(d) ?? "good");
    const behaviour = (bootstrap === "good" ? binary : bootstrap) ?? "good";
    if (behaviour === "not_spawned") {
      return this.submit({ kind: "spawn_failed", attempt, refusal: refusal("spawn_failed", "ENOEXEC") });
    }
    const other = this.envoys.living.find(({ state }) => state !== "live");
    if (other !== undefined) this.#broke("two_children", `epoch ${other.epoch} is starting, ${epoch} is spawned`);
    // What preflight would have refused, the first start finds out the hard way.
    const runs = behaviour === "refused" || behaviour === "unreadable" ? "dies_early" : behaviour;
    const envoy = this.envoys.start(attempt, epoch, plan, runs);
    this.submit({ kind: "spawned", attempt, pid: envoy.pid });
  }

  #watchSignal(envoy: Envoy, signal: string): void {
    const successor = this.envoys.successorOf(envoy);
    if (envoy.state === "dead" || successor === undefined || signal === "SIGCONT") return;
    const boundMs = this.settings.parentShutdownTimeMs + PREDECESSOR_MARGIN_MS;
    const isOverdue = envoy.drainsSinceMs !== undefined && this.nowMs - envoy.drainsSinceMs >= boundMs;
    if (signal === "SIGKILL" && isOverdue) return;
    this.#broke("signalled_with_successor", `${signal} to epoch ${envoy.epoch}, ${successor.epoch} lives`);
  }

  #ask<T>(look: () => T | "timeout", happening: (answer: T | "timeout") => Happening): void {
    this.#question(1, 30, () => {
      const answer = look();
      const restMs = answer === "timeout"
        ? QUESTION_MS
        : this.#random.chance(0.03)
        ? this.#random.between(100, 900)
        : 0;
      this.#question(restMs, restMs, () => this.submit(happening(answer)));
    });
  }

  #question(fromMs: number, toMs: number, answer: () => void): void {
    this.#questions++;
    this.#later(fromMs, toMs, () => {
      this.#questions--;
      answer();
    });
  }

  #later(fromMs: number, toMs: number, act: () => void): void {
    this.agenda.at(this.#random.between(fromMs, toMs), act);
  }

  #report(subject: Subject): void {
    this.#later(0, 60, () => {
      const { digest, usable } = this.#contents[subject];
      const content = usable ? { kind: "usable" as const, digest } : { kind: "unusable" as const, problem: "ENOENT" };
      this.submit({ kind: "content", subject, content, jitter: this.#random.next() });
    });
  }

  #broke(rule: string, detail: string): void {
    this.broken.push({ rule, detail, atMs: this.nowMs });
  }
}
