// Owns: what the service manager (sd_notify) is told of this supervisor: a view of its facts, as log and metrics are.
// Must not: open the socket, decide anything, or throw for a manager that is away.

import type { Fact } from "../core/fact.ts";
import type { SupervisorStatus } from "../runtime/control.ts";
import { statusLine } from "./manager_words.ts";
import type { RecordedFact } from "./record.ts";
import type { ShellFact } from "./shell_fact.ts";

export interface ManagerOptions {
  /** The problem, or undefined. */
  readonly send: (text: string) => string | undefined;
  readonly monotonicUsec: () => string;
  readonly status: () => SupervisorStatus;
  /** Calls back when every mailbox has taken what was before it. */
  readonly pulse: (seen: () => void) => void;
  readonly problem: (problem: string) => void;
  readonly pid: number;
  /** False while the supervisor that started this one is the unit's main process. */
  readonly isMain: () => boolean;
  /** Absent: the manager watches for no silence. */
  readonly watchdogMs?: number;
}

/** While a start or a drain goes on. */
const EXTEND_EVERY_MS = 5_000;
const EXTEND_BY_USEC = 20_000_000;
/** How soon a supervisor notices that it has become the main process; far below any watchdog. */
const LOOK_MS = 200;

export class Manager {
  readonly #awaited: Set<string>;
  readonly #timers: ReturnType<typeof setInterval>[] = [];
  #isReady = false;
  #isReloading = false;
  /** SIGHUP was heard, and its reload has not come to its trigger or its refusal. */
  #reloadPending = false;
  #isStopping = false;
  #isHandedOver = false;
  /** This process was told of, or is the one that the manager has started. */
  #isKnown = true;
  #lastRefusal: string | undefined;
  #toldStatus = "";
  #toldProblem = "";
  #isPlanned = false;

  constructor(readonly options: ManagerOptions) {
    this.#awaited = new Set(Object.keys(options.status().services));
    this.#isKnown = options.isMain();
    const { watchdogMs } = options;
    this.#every(EXTEND_EVERY_MS, () => this.#extend());
    if (!this.#isKnown) this.#every(LOOK_MS, () => this.#lookWhoIsMain());
    if (watchdogMs !== undefined) {
      this.#pet();
      this.#every(Math.max(1, watchdogMs / 2), () => this.#pet());
    }
    this.#extend();
    this.#plan();
  }

  readonly observe = ({ service, fact }: RecordedFact): void => {
    this.#noteRefusal(fact);
    switch (fact.kind) {
      case "epoch_live":
        this.#awaited.delete(service);
        break;
      case "handoff_began":
        this.#beginReload();
        break;
      case "trigger_accepted":
      case "trigger_coalesced":
      case "trigger_dropped":
        this.#reloadPending = false;
        break;
      case "stop_asked":
        this.#beginStop();
        break;
    }
    this.#plan();
  };

  shell(fact: ShellFact): void {
    if (fact.kind === "signal_received" && fact.signal === "SIGHUP") {
      this.#beginReload();
      this.#reloadPending = this.#isReloading;
    } else if (fact.kind === "config_refused") {
      this.#lastRefusal = `${fact.refusal}: ${fact.detail}`;
      this.#reloadPending = false;
    } else if (fact.kind === "config_applied") {
      this.#lastRefusal = undefined;
    } else if (fact.kind === "upgrade_handed_over") {
      // From here on the other one speaks; a word of this one's end would be taken for the unit's.
      this.#send(`MAINPID=${fact.pid}`);
      this.#isHandedOver = true;
    } else if (fact.kind === "supervisor_ended") {
      this.#beginStop();
    }
    this.#plan();
  }

  close(): void {
    for (const timer of this.#timers.splice(0)) clearInterval(timer);
  }

  #every(ms: number, act: () => void): void {
    const timer = setInterval(act, ms);
    Deno.unrefTimer(timer as unknown as number);
    this.#timers.push(timer);
  }

  /** After the step: several facts of one are told as one. */
  #plan(): void {
    if (this.#isPlanned) return;
    this.#isPlanned = true;
    queueMicrotask(() => {
      this.#isPlanned = false;
      this.#tell();
    });
  }

  #tell(): void {
    if (!this.#isKnown || this.#isHandedOver) return;
    const status = this.options.status();
    const lines: string[] = [];
    if (!this.#isReady && !this.#isStopping && this.#hasBegun(status)) {
      this.#isReady = true;
      lines.push("READY=1");
    } else if (this.#isReloading && !this.#reloadPending && isSettled(status)) {
      this.#isReloading = false;
      lines.push("READY=1");
    }
    const text = statusLine(status, this.#lastRefusal);
    // All have ended: whoever takes over, or the exit, says more.
    const isOver = Object.values(status.services).every(({ phase }) => phase === "ended");
    if (!isOver && text !== this.#toldStatus) lines.push(`STATUS=${text}`);
    if (lines.length === 0) return;
    if (this.#send(lines.join("\n"))) this.#toldStatus = text;
  }

  /** Every service it began with is LIVE, or has been taken out of the configuration before it was. */
  #hasBegun({ services }: SupervisorStatus): boolean {
    return [...this.#awaited].every((name) => !Object.hasOwn(services, name));
  }

  #noteRefusal(fact: Fact): void {
    if (fact.kind === "handoff_live") this.#lastRefusal = undefined;
    const told = fact.kind === "handoff_failed" || fact.kind === "trigger_dropped" || fact.kind === "preflight_refused";
    if (told && fact.refusal.name !== "unchanged") this.#lastRefusal = `${fact.refusal.name}: ${fact.refusal.detail}`;
  }

  #beginReload(): void {
    if (!this.#isReady || this.#isReloading || this.#isStopping) return;
    this.#isReloading = true;
    this.#send(`RELOADING=1\nMONOTONIC_USEC=${this.options.monotonicUsec()}`);
  }

  #beginStop(): void {
    if (this.#isStopping) return;
    this.#isStopping = true;
    this.#isReloading = false;
    this.#send("STOPPING=1");
    this.#extend();
  }

  #pet(): void {
    this.options.pulse(() => this.#send("WATCHDOG=1"));
  }

  /** A start waits for predecessors and control planes, a stop for streams: each has a bound of its own. */
  #extend(): void {
    if (!this.#isReady || this.#isStopping) this.#send(`EXTEND_TIMEOUT_USEC=${EXTEND_BY_USEC}`);
  }

  /** Where the one before was killed, its last word is said here; managers that hear main processes alone do not listen. */
  #lookWhoIsMain(): void {
    if (this.#isKnown || !this.options.isMain()) return;
    this.#isKnown = true;
    this.#send(`MAINPID=${this.options.pid}`);
    this.#toldStatus = "";
    if (this.#isReady) this.#send("READY=1");
    if (this.options.watchdogMs !== undefined) this.#pet();
    this.#plan();
  }

  #send(text: string): boolean {
    if (!this.#isKnown || this.#isHandedOver) return false;
    const problem = this.options.send(text);
    const isNew = problem !== undefined && problem !== this.#toldProblem;
    this.#toldProblem = problem ?? "";
    if (isNew) this.options.problem(problem);
    return problem === undefined;
  }
}

/** Nobody waits for a turn, and nobody is on the way to LIVE. */
function isSettled({ services }: SupervisorStatus): boolean {
  return Object.values(services).every(({ phase, waiting }) => waiting === undefined && phase !== "replacing");
}

/** WATCHDOG_USEC, where it is meant for this process; undefined for none, and for what is no number. */
export function watchdogMsOf(env: (name: string) => string | undefined, pid: number): number | undefined {
  const meant = env("WATCHDOG_PID");
  if (meant !== undefined && meant !== "" && meant !== String(pid)) return undefined;
  const usec = env("WATCHDOG_USEC") ?? "";
  return /^[1-9]\d{0,15}$/.test(usec) ? Number(usec) / 1_000 : undefined;
}
