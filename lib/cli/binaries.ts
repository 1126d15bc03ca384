// Owns: the switches of every service's executable, wired to its slots, its checks and its facts. Must not: decide any.

import { runBounded } from "../adapters/bounded_run.ts";
import { headerProblem } from "../adapters/process.ts";
import { type Refusal, refusal } from "../core/refusal.ts";
import { envoyVersion } from "../observe/words.ts";
import { BinarySwitch } from "../runtime/binary_switch.ts";
import type { Binaries, Switched, SwitchOptions, Upload } from "../runtime/binaries.ts";
import type { Supervisor } from "../runtime/supervisor.ts";
import type { ShellFact } from "../observe/shell_fact.ts";
import type { Service } from "../runtime/service.ts";
import type { Assembled } from "./assemble.ts";

export interface Switchable {
  readonly service: Service;
  readonly assembled: Assembled;
  readonly trialMs: () => number;
}

const versionTimeoutMs = 5_000;

export class ServiceBinaries implements Binaries {
  readonly #switches = new Map<string, { readonly change: BinarySwitch; readonly unsubscribe: () => void }>();

  constructor(readonly supervisor: Supervisor, readonly tell: (fact: ShellFact) => void) {}

  /** Before anything of the service happens: its facts are listened to. */
  add(name: string, { service, assembled, trialMs }: Switchable): void {
    const { slots } = assembled;
    if (slots === undefined) return;
    const { supervisor, tell } = this;
    const change = new BinarySwitch({
      service: name,
      slots,
      serving: () => service.newest?.plan,
      notNow: () => {
        const { phase, note } = service.status();
        if (phase === "serving" || phase === "replacing") return undefined;
        return `it is ${phase}${note === undefined ? "" : `, ${note}`}: expected an epoch that serves`;
      },
      check: (path, options) => checkExecutable(service, assembled, path, options),
      trigger: (source, options) => supervisor.trigger(name, source, options)?.request,
      trialMs,
      tell,
      after: (afterMs, fire) => supervisor.options.clock.after(afterMs, fire),
    });
    const unsubscribe = supervisor.subscribe(({ service: subject, fact }) => {
      if (subject === name) change.hear(fact);
    });
    this.#switches.set(name, { change, unsubscribe });
  }

  /** Its last facts are heard first. */
  async remove(name: string): Promise<void> {
    const found = this.#switches.get(name);
    if (found === undefined) return;
    this.#switches.delete(name);
    found.unsubscribe();
    await found.change.close();
  }

  async close(): Promise<void> {
    await Promise.all([...this.#switches.keys()].map((name) => this.remove(name)));
  }

  async push(name: string, upload: Upload, options: SwitchOptions): Promise<Switched | undefined> {
    return await this.#with(name, (change) => change.push(upload, options));
  }

  async rollBack(name: string, to: string | undefined, options: SwitchOptions): Promise<Switched | undefined> {
    return await this.#with(name, (change) => change.rollBack(to, options));
  }

  async list(name: string) {
    return await this.#with(name, (change) => change.list());
  }

  async #with<T>(
    name: string,
    act: (change: BinarySwitch) => Promise<T>,
  ): Promise<T | { readonly kind: "refused"; readonly refusal: Refusal } | undefined> {
    const found = this.#switches.get(name);
    if (found !== undefined) return await act(found.change);
    if (!Object.hasOwn(this.supervisor.status().services, name)) return undefined;
    const detail = `service ${name} has no slots_dir: start it with --slots-dir DIR to push executables to it`;
    return { kind: "refused", refusal: refusal("slots_off", detail) };
  }
}

/** What a handoff would ask of it, in the order in which the least is run first. */
async function checkExecutable(
  service: Service,
  assembled: Assembled,
  path: string,
  { drained, gone }: SwitchOptions,
): Promise<{ readonly version: string } | Refusal> {
  const foreign = headerProblem(path);
  if (foreign !== undefined) return foreign;
  const ran = await runBounded(path, ["--version"], { timeoutMs: versionTimeoutMs, signal: gone });
  const version = ran.kind === "ended" && ran.code === 0 ? /version: (\S+)/.exec(ran.stdout)?.[1] : undefined;
  if (version === undefined) {
    const why = ran.kind === "timeout"
      ? `did not end within ${versionTimeoutMs} ms`
      : ran.kind === "ended"
      ? `ended with ${ran.code} and named no version; is it Envoy?`
      : ran.kind === "aborted"
      ? "ended before its answer"
      : String(ran.error);
    return refusal(ran.kind === "timeout" ? "binary_hangs" : "spawn_failed", `run ${path} --version: ${why}`);
  }
  // Without a handoff nothing has to fit.
  const hotRestartVersion = drained ? undefined : service.newest?.hotRestartVersion;
  const outcome = await assembled.preflightOf(path).run({
    depth: "full",
    provenKeys: [],
    joining: false,
    ...(hotRestartVersion === undefined ? {} : { hotRestartVersion }),
  }, gone);
  await assembled.letGo();
  return outcome.kind === "refused" ? outcome.refusal : { version: envoyVersion(version) };
}
