// Owns: the switches of one service's executable: pushed or rolled back, checked, on trial, proven or undone; one at a time.
// Must not: know files or HTTP, or decide about epochs (the core does).

import type { Plan } from "../core/epoch.ts";
import type { Fact } from "../core/fact.ts";
import { type Refusal, refusal } from "../core/refusal.ts";
import type { ShellFact } from "../observe/shell_fact.ts";
import type { Listed, Switched, SwitchOptions, Upload } from "./binaries.ts";
import type { RestartOptions } from "./control.ts";
import type { Slots, SlotTrial } from "./slots_port.ts";

export interface BinarySwitchOptions {
  readonly service: string;
  readonly slots: Slots;
  /** The plan of the epoch that serves, or served last. */
  readonly serving: () => Plan | undefined;
  /** Whether a hot restart may be asked for now; why not. */
  readonly notNow: () => string | undefined;
  /** Everything a handoff would ask of this executable, and what it says of itself. */
  readonly check: (path: string, options: SwitchOptions) => Promise<{ readonly version: string } | Refusal>;
  readonly trigger: (source: "push" | "rollback", options: RestartOptions) => string | undefined;
  readonly trialMs: () => number;
  readonly tell: (fact: ShellFact) => void;
  /** Calls back once; the result cancels it. */
  readonly after: (afterMs: number, fire: () => void) => () => void;
}

/** `busy`: one is taken in and checked, beside what was on trial. `settling`: links are written. `asked`: its epoch is not LIVE yet. `live`: it is, its time runs. */
type Step =
  | Idle
  | { readonly kind: "busy"; readonly before: Idle | Live }
  | { readonly kind: "settling" }
  | { readonly kind: "asked"; readonly trial: SlotTrial; readonly request: string; readonly isPush: boolean }
  | Live;
type Idle = { readonly kind: "idle" };
type Live = {
  readonly kind: "live";
  readonly trial: SlotTrial;
  readonly cancel: () => void;
  readonly isOver: () => boolean;
};

export class BinarySwitch {
  #step: Step = { kind: "idle" };
  /** Facts come faster than files are written. */
  #turn: Promise<unknown> = Promise.resolve();
  #followNext = false;
  /** Facts of the moment in which a hot restart is asked for, whose name is not known yet. */
  #heard: Fact[] | undefined;
  /** The newest epoch died while a push was taken in: what was going to be switched from is not what serves. */
  #died: string | undefined;

  constructor(private readonly options: BinarySwitchOptions) {}

  async push(upload: Upload, options: SwitchOptions): Promise<Switched> {
    const { force } = options;
    return await this.#alone(async () => {
      const { slots } = this.options;
      if (!force && upload.sha256 !== undefined && await this.#runs(upload.sha256)) {
        return { kind: "unchanged", digest: upload.sha256 };
      }
      const received = await slots.receive(upload);
      if (received.kind === "refused") return received;
      const { digest, path } = received;
      if (!force && await this.#runs(digest)) {
        await received.discard();
        return { kind: "unchanged", digest };
      }
      // Receiving took its time.
      const checked = this.#obstacle() ?? await this.options.check(path, options);
      if ("detail" in checked) {
        await received.discard();
        return refused(checked);
      }
      const wrong = await slots.adopt(received, checked.version);
      if (wrong !== undefined) return refused(wrong);
      return await this.#switchTo(digest, "push", options, checked.version);
    });
  }

  async rollBack(to: string | undefined, options: SwitchOptions): Promise<Switched> {
    const { force } = options;
    return await this.#alone(async () => {
      const { slots } = this.options;
      const target = await this.#target(to);
      if ("detail" in target) return refused(target);
      const { digest } = target;
      const shown = digest === undefined ? {} : { digest };
      if (!force && await this.#runs(digest)) return { kind: "unchanged", ...shown };
      const wrong = digest === undefined ? undefined : await slots.verify(digest);
      if (wrong !== undefined) return refused(wrong);
      const checked = this.#obstacle() ?? await this.options.check(slots.pathOf(digest), options);
      if ("detail" in checked) return refused(checked);
      return await this.#switchTo(digest, "rollback", options, checked.version);
    });
  }

  async list(): Promise<Listed> {
    const { slots, serving } = this.options;
    const step = this.#step.kind === "busy" ? this.#step.before : this.#step;
    const trial = step.kind === "asked" || step.kind === "live" ? step.trial : undefined;
    return {
      kind: "listed",
      list: {
        directory: slots.directory,
        installed: slots.pathOf(undefined),
        ...(trial === undefined ? {} : {
          trial: { ...(trial.digest === undefined ? {} : { to: trial.digest }), live: step.kind === "live" },
        }),
        slots: await slots.list(serving()?.binaryPath),
      },
    };
  }

  /** What the core did about it; in the order in which it happened. */
  hear(fact: Fact): void {
    this.#heard?.push(fact);
    const step = this.#step;
    if (step.kind === "asked" && "requests" in fact && fact.requests.includes(step.request)) {
      if (fact.kind === "handoff_failed" || fact.kind === "trigger_dropped") return this.#undo(fact.refusal.detail);
      if (fact.kind === "handoff_live") return this.#live(step);
    }
    if (fact.kind === "newest_died") this.#newestDied(step, fact);
    if (fact.kind === "epoch_live" && this.#followNext && (step.kind === "idle" || step.kind === "settling")) {
      return this.#follow();
    }
    // Another one that is being taken in comes to nothing by then.
    const onTrial = step.kind === "busy" ? step.before : step;
    const isOrderly = fact.kind === "superseded" || (fact.kind === "ended" && fact.exitCode === 0);
    if (onTrial.kind === "live" && isOrderly) return this.#accept(onTrial);
    if (fact.kind === "ended" && (step.kind === "asked" || step.kind === "live")) this.#undo(fact.reason);
  }

  #newestDied(step: Step, { epoch, answer }: Extract<Fact, { kind: "newest_died" }>): void {
    if (answer === "revival" || answer === "restart") return;
    if (step.kind === "busy") this.#died = `epoch ${epoch} died`;
    // Also after a trial: what died may be what somebody else has put there.
    this.#followNext = answer === "rollback" && step.kind !== "asked";
    if (step.kind === "live") return this.#undo(`epoch ${epoch} died`);
    // What it would go back to has just been gone back from.
    if (answer === "rollback" && step.kind === "asked") {
      const { previous } = step.trial.before;
      const before = previous === undefined ? {} : { current: previous };
      this.#step = { ...step, trial: { ...step.trial, before } };
    }
  }

  /** Resolves when what was begun is on the disk. */
  async close(): Promise<void> {
    if (this.#step.kind === "live") this.#step.cancel();
    await this.#turn;
    if (this.#step.kind !== "busy") this.options.slots.release();
  }

  /** One at a time, in this process and among those that share the directory. */
  async #alone(act: () => Promise<Switched>): Promise<Switched> {
    const { slots, service } = this.options;
    const before = this.#step;
    const busy = (why: string) => refused(refusal("push_busy", `switch the executable of ${service}: ${why}`));
    if (before.kind === "busy" || before.kind === "settling") return busy("another push or rollback is under way");
    if (before.kind === "asked") return busy("the one before is not LIVE yet");
    const notNow = this.options.notNow();
    if (notNow !== undefined) return refused(refusal("push_not_now", `switch the executable of ${service}: ${notNow}`));
    this.#step = { kind: "busy", before };
    this.#died = undefined;
    await this.#turn;
    let done = false;
    try {
      const held = before.kind === "live" ? undefined : await slots.take();
      if (held !== undefined) return busy(held);
      const switched = await act();
      done = switched.kind === "switched";
      if (done && before.kind === "live") before.cancel();
      return switched;
    } finally {
      if (!done) this.#restore(before);
    }
  }

  /** Nothing came of it: what was on trial before is still. */
  #restore(before: Step): void {
    if (this.#step.kind !== "busy") return;
    if (before.kind === "live") {
      // Its time went on: whoever is refused again and again would keep it on trial for ever.
      this.#step = before;
      if (this.#died !== undefined) this.#undo(this.#died);
      else if (before.isOver()) this.#accept(before);
    } else {
      this.#step = { kind: "idle" };
      this.options.slots.release();
      if (this.#died !== undefined) this.#follow();
    }
  }

  async #switchTo(
    digest: string | undefined,
    source: "push" | "rollback",
    { force, drained }: SwitchOptions,
    version: string,
  ): Promise<Switched> {
    const { service, slots, tell, trigger } = this.options;
    const obstacle = this.#obstacle();
    if (obstacle !== undefined) return refused(obstacle);
    const trial = await slots.switchTo(digest);
    if ("detail" in trial) return refused(trial);
    // So did writing.
    const late = this.#obstacle();
    if (late !== undefined) {
      await slots.goBack(trial);
      return refused(late);
    }
    tell({ kind: "binary_switched", service, to: digest ?? slots.pathOf(undefined), version, source });
    const heard: Fact[] = this.#heard = [];
    const request = trigger(source, { force, drained });
    this.#heard = undefined;
    if (request === undefined) {
      await slots.goBack(trial);
      return refused(refusal("push_not_now", `service ${service} is gone`));
    }
    this.#step = { kind: "asked", trial, request, isPush: source === "push" };
    for (const fact of heard) this.hear(fact);
    return { kind: "switched", ...(digest === undefined ? {} : { digest }), version, request };
  }

  #obstacle(): Refusal | undefined {
    const why = this.#died ?? this.options.notNow();
    return why === undefined ? undefined : refusal("push_not_now", `switch the executable: ${why}`);
  }

  /** Linked and serving: one without the other is worth a switch. */
  async #runs(digest: string | undefined): Promise<boolean> {
    const { slots, serving } = this.options;
    return (await slots.links()).current === digest && serving()?.binaryPath === slots.pathOf(digest);
  }

  async #target(to: string | undefined): Promise<{ readonly digest: string | undefined } | Refusal> {
    const { slots } = this.options;
    if (to === "installed") return { digest: undefined };
    if (to === undefined) {
      const { current, previous } = await slots.links();
      if (current === undefined && previous === undefined) {
        return refusal("slot_unknown", "roll the executable back: there is none before this one");
      }
      return { digest: previous };
    }
    const found = (await slots.list(undefined)).map(({ digest }) => digest).filter((digest) => digest.startsWith(to));
    if (found.length === 1) return { digest: found[0]! };
    const what = found.length === 0 ? "no slot has it" : `${found.length} slots begin so`;
    return refusal("slot_unknown", `roll the executable back to ${to}: ${what}`);
  }

  #live({ trial, isPush }: Extract<Step, { kind: "asked" }>): void {
    let isOver = false;
    const cancel = this.options.after(isPush ? this.options.trialMs() : 0, () => {
      isOver = true;
      if (this.#step === live) this.#accept(live);
    });
    const live: Live = { kind: "live", trial, cancel, isOver: () => isOver };
    this.#step = live;
  }

  #accept({ trial, cancel }: Live): void {
    const { service, slots, serving, tell } = this.options;
    cancel();
    this.#do(async () => {
      const problem = await slots.accept();
      if (problem === undefined) {
        tell({ kind: "binary_proven", service, digest: trial.digest ?? slots.pathOf(undefined) });
      }
      const path = serving()?.binaryPath;
      await slots.prune(path === undefined ? [] : [path]);
      return problem;
    });
  }

  #undo(why: string): void {
    const { service, slots, tell } = this.options;
    const step = this.#step;
    if (step.kind !== "asked" && step.kind !== "live") return;
    if (step.kind === "live") step.cancel();
    const { digest, before } = step.trial;
    this.#do(async () => {
      const undone = await slots.goBack(step.trial);
      if (typeof undone === "string") return undone;
      const [from, to] = [digest, before.current].map((one) => one ?? slots.pathOf(undefined)) as [string, string];
      if (undone) tell({ kind: "binary_undone", service, from, to, why });
      return undefined;
    });
  }

  /** The core went back to another executable than the links name: put in its slot by others than a push. */
  #follow(): void {
    const { slots, serving } = this.options;
    const path = serving()?.binaryPath;
    // Not LIVE yet: once it is.
    if (path === undefined) return;
    this.#followNext = false;
    this.#do(async () => await slots.take() ?? await slots.follow(path));
  }

  #do(act: () => Promise<string | undefined>): void {
    const { service, slots, tell } = this.options;
    this.#step = { kind: "settling" };
    const turn = this.#turn.then(act).catch((error) => String(error)).then((problem) => {
      if (typeof problem === "string") tell({ kind: "slots_failed", service, problem });
      // The last of those that wait.
      if (this.#turn !== turn) return;
      this.#step = { kind: "idle" };
      slots.release();
    });
    this.#turn = turn;
  }
}

function refused(why: Refusal): Extract<Switched, { kind: "refused" }> {
  return { kind: "refused", refusal: why };
}
