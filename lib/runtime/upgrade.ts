// Owns: the change of epochd itself: check, start the new supervisor, see it take over, and say when it did not.
// Must not: hand over any service (the protocol between supervisors does), or touch an installed file (the command does).

import type { ServiceConfig } from "../config/service_config.ts";
import type { ServiceStatus } from "../core/status.ts";
import type { ShellFact } from "../observe/shell_fact.ts";
import type { Clock } from "./ports.ts";
import type { SupervisorStatus } from "./control.ts";
import { type Surroundings, upgradeObstacle } from "./upgrade_obstacle.ts";
import {
  refuseUpgrade,
  type UpgradeControl,
  type UpgradeOutcome,
  type UpgradeRefusal,
  type UpgradeStatus,
} from "./upgrade_status.ts";

export interface Successor {
  readonly pid: number;
  readonly exit: Promise<{ readonly code: number; readonly signal?: string }>;
  signal(signal: "SIGTERM" | "SIGKILL"): void;
  /** SIGKILL to what it has started and has outlived it. */
  endOrphans(): void;
  /** Its parent is the service manager from then on; `exit` tells nothing more. */
  release(): Promise<void>;
}

export interface UpgradePorts {
  readonly clock: Clock;
  readonly tell: (fact: ShellFact) => void;
  readonly status: () => SupervisorStatus;
  readonly services: () => Readonly<Record<string, ServiceConfig>>;
  readonly surroundings: () => Promise<Surroundings>;
  /** Whether the configuration that the new one will read is one that this one would take. */
  readonly rehearse: () => Promise<UpgradeRefusal | undefined>;
  readonly check: (executable: string) => Promise<
    { readonly kind: "usable"; readonly version: string } | {
      readonly kind: "refused";
      readonly refusal: UpgradeRefusal;
    }
  >;
  readonly runningExecutable: () => string;
  readonly start: (executable: string) => Promise<Successor | { readonly problem: string }>;
  /** What the new one says of its services; undefined while it does not answer. */
  readonly ask: (pid: number) => Promise<Readonly<Record<string, ServiceStatus>> | undefined>;
}

const LOOK_MS = 200;
/** Beside what its services may take. */
const MARGIN_MS = 30_000;
/** From SIGTERM to SIGKILL. */
const END_MS = 15_000;

export class Upgrade implements UpgradeControl {
  #status: UpgradeStatus | undefined;
  #successor: Successor | undefined;
  /** Has a part of the services, beside this one; another upgrade brings them together. */
  #beside: Successor | undefined;
  #isBusy = false;
  #isStopping = false;

  constructor(readonly ports: UpgradePorts) {}

  get runningExecutable(): string {
    return this.ports.runningExecutable();
  }

  get status(): UpgradeStatus | undefined {
    return this.#status;
  }

  async begin(executable: string, who: string, dryRun: boolean): Promise<UpgradeOutcome> {
    const { tell } = this.ports;
    if (this.#isBusy || this.#successor !== undefined) {
      const what = this.#status === undefined || this.#status.phase === "failed"
        ? "is being checked"
        : `to epochd ${this.#status.version} (pid ${this.#status.pid}) is under way`;
      return refuseUpgrade("busy", `another upgrade ${what}: wait for its end`);
    }
    this.#isBusy = true;
    try {
      const outcome = await this.#begin(executable, dryRun);
      if (outcome.kind === "refused") {
        tell({
          kind: "upgrade_refused",
          executable,
          who,
          refusal: outcome.refusal.name,
          detail: outcome.refusal.detail,
        });
      } else if (outcome.kind === "started") {
        tell({ kind: "upgrade_began", executable, who, version: outcome.version, pid: outcome.pid });
      }
      return outcome;
    } finally {
      this.#isBusy = false;
    }
  }

  /** SIGTERM while the other one comes up or drains us: the two stop together, or it would live on unasked. */
  stop(): void {
    this.#isStopping = true;
    this.#successor?.signal("SIGTERM");
    this.#beside?.signal("SIGTERM");
  }

  /** At the very end: who goes on, if anybody does; it is waited for where it was told to stop. */
  async conclude(isSucceeded: boolean): Promise<void> {
    const successor = this.#successor;
    if (this.#isStopping) return void await Promise.all([successor?.exit, this.#beside?.exit]);
    if (successor === undefined) return;
    if (!isSucceeded) return successor.signal("SIGTERM");
    this.#successor = undefined;
    await successor.release();
    this.ports.tell({ kind: "upgrade_handed_over", pid: successor.pid });
  }

  async #begin(executable: string, dryRun: boolean): Promise<UpgradeOutcome> {
    const { check, rehearse, start } = this.ports;
    const before = await this.#obstacle() ?? await rehearse();
    if (before !== undefined) return { kind: "refused", refusal: before };
    const checked = await check(executable);
    if (checked.kind === "refused") return checked;
    const { version } = checked;
    if (dryRun) return { kind: "possible", executable, version };
    // Much may have happened meanwhile.
    const obstacle = await this.#obstacle();
    if (obstacle !== undefined) return { kind: "refused", refusal: obstacle };
    const started = await start(executable);
    if ("problem" in started) return refuseUpgrade("spawn_failed", `run ${executable}: ${started.problem}`);
    const { pid } = started;
    this.#successor = started;
    this.#status = { phase: "starting", executable, version, pid };
    void this.#follow(started);
    return { kind: "started", executable, version, pid };
  }

  async #obstacle(): Promise<UpgradeRefusal | undefined> {
    const { status, services, surroundings } = this.ports;
    const around = await surroundings();
    const now = status();
    if (now.stopping || this.#isStopping) return { name: "stopping", detail: "epochd is stopping" };
    return upgradeObstacle(services(), now.services, around);
  }

  async #follow(successor: Successor): Promise<void> {
    const { clock, ask, tell } = this.ports;
    const boundMs = this.#boundMs();
    const beganAtMs = clock.nowMs();
    let exit: { readonly code: number; readonly signal?: string } | undefined;
    const ended = successor.exit.then((how) => {
      exit = how;
      // An Envoy that had not yet asked for its supervisor's death would go on alone, take over, and have nobody.
      const isBefore = this.#successor === successor && this.#status?.phase === "starting";
      if (isBefore && !this.#outlives()) successor.endOrphans();
    });
    for (;;) {
      await Promise.race([ended, new Promise<void>((resolve) => void clock.after(LOOK_MS, resolve))]);
      if (this.#successor !== successor) return;
      if (exit !== undefined) return this.#fail(`it ended ${howOf(exit)}`);
      const services = await ask(successor.pid);
      if (services !== undefined) this.#note(services);
      if (services !== undefined && this.#status?.phase === "starting") {
        const verdict = verdictOf(services);
        if (verdict.kind === "serves") {
          this.#status = { ...this.#status, phase: "taken_over" };
          tell({ kind: "upgrade_taken_over", pid: successor.pid, version: this.#status.version });
        } else if (verdict.kind === "partly") {
          // What it has is served: ending it would cost more than the two side by side.
          this.#beside = successor;
          return this.#fail(`${verdict.detail}; it serves the others on: mend that and upgrade once more`);
        }
      }
      if (this.#status?.phase !== "starting" || this.#isStopping) continue;
      if (clock.nowMs() - beganAtMs < boundMs) continue;
      await this.#end(successor, () => exit !== undefined);
      return this.#fail(`not all of its services were LIVE within ${Math.round(boundMs / 1000)} s, and it was ended`);
    }
  }

  async #end(successor: Successor, hasEnded: () => boolean): Promise<void> {
    successor.signal("SIGTERM");
    const late = new Promise<void>((resolve) => void this.ports.clock.after(END_MS, resolve));
    await Promise.race([successor.exit, late]);
    if (!hasEnded()) successor.signal("SIGKILL");
  }

  #fail(detail: string): void {
    this.#successor = undefined;
    if (this.#status === undefined) return;
    const { pid, version } = this.#status;
    this.#status = { ...this.#status, phase: "failed", detail };
    this.ports.tell({ kind: "upgrade_failed", pid, version, problem: detail });
  }

  #note(services: Readonly<Record<string, ServiceStatus>>): void {
    if (this.#status === undefined) return;
    const texts = Object.entries(services).map((
      [name, { phase, step }],
    ) => [name, step ? `${phase} (${step})` : phase]);
    this.#status = { ...this.#status, services: Object.fromEntries(texts) };
  }

  /** Then an orphan may serve already, and the core knows what to do with one. */
  #outlives(): boolean {
    return Object.values(this.ports.services()).some(({ onSupervisorDeath }) => onSupervisorDeath === "serve");
  }

  #boundMs(): number {
    const all = Object.values(this.ports.services());
    return MARGIN_MS + Math.max(
      ...all.map(({ liveTimeoutMs, parentShutdownTimeMs, controlPlaneWaitMs }) =>
        liveTimeoutMs + parentShutdownTimeMs + controlPlaneWaitMs
      ),
    );
  }
}

type Verdict =
  | { readonly kind: "serves" }
  | { readonly kind: "comes" }
  | { readonly kind: "partly"; readonly detail: string };

function verdictOf(services: Readonly<Record<string, ServiceStatus>>): Verdict {
  const all = Object.entries(services);
  const serves = ({ epochs }: ServiceStatus) =>
    epochs.some(({ role, liveForMs }) => role === "newest" && liveForMs !== undefined);
  if (all.every(([, service]) => serves(service))) return { kind: "serves" };
  const failed = all.filter(([, { phase }]) => phase === "ended");
  const others = all.filter(([, { phase }]) => phase !== "ended");
  // Where none is left it ends by itself.
  if (failed.length === 0 || others.length === 0 || !others.every(([, service]) => serves(service))) {
    return { kind: "comes" };
  }
  const texts = failed.map(([name, { note }]) => `service ${name} was not taken over (${note ?? "no reason known"})`);
  return { kind: "partly", detail: texts.join(", ") };
}

const reasons: Readonly<Record<number, string>> = {
  1: "its newest epoch died",
  2: "usage or configuration",
  3: "its first start failed the checks",
  4: "no epoch was LIVE in time",
  127: "a library is missing",
};

function howOf({ code, signal }: { readonly code: number; readonly signal?: string }): string {
  if (signal !== undefined) return `by ${signal}`;
  const why = reasons[code];
  return `with exit code ${code}${why === undefined ? "" : ` (${why})`}, its log says more`;
}
