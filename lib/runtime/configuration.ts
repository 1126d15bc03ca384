// Owns: the configuration that runs, and every way to another one: one at a time, whole or not at all.
// Must not: know HTTP or signals, or how a service takes its settings (the fleet does).

import { type ChangeDone, type ChangeOutcome, refuseChange, type ServiceOutcome } from "../config/change.ts";
import type { ConfigHistory, ConfigSource, HistoryEntry } from "../config/history.ts";
import { actionOf, type ConfigDiff, diffConfigs, isUnchanged, verdictOf } from "../config/lifecycle.ts";
import { type ConfigOrigin, type Loaded, type Sections } from "../config/load.ts";
import type { LogConfig, RunConfig } from "../config/run_config.ts";
import type { WrittenConfig } from "../config/written.ts";
import type { TriggerSource } from "../core/event.ts";
import type { ShellFact } from "../observe/shell_fact.ts";
import { checkChange, preflightChange, type RunningConfig } from "./change_check.ts";
import type { KnownFile } from "./config_file.ts";
import { type ConfigSummary, differences, digestOf, summaryOf } from "./config_summary.ts";
import type { Fleet } from "./fleet.ts";

export interface ChangeOptions {
  /** For history and log: `SIGHUP`, `unix socket`, `key ci`. */
  readonly who: string;
  readonly source: ConfigSource;
  readonly dryRun?: boolean;
  /** Absent: as `api.persist` says. */
  readonly persist?: boolean;
  /** Another digest than that of what runs refuses the change. */
  readonly ifMatch?: (digest: string, services: Readonly<Record<string, string>>) => boolean;
  /** Go on although a control plane is away. */
  readonly force?: boolean;
}

export interface ConfigurationOptions {
  readonly loaded: Extract<Loaded, { kind: "loaded" }>;
  readonly fleet: Fleet;
  readonly history: ConfigHistory;
  readonly tell: (fact: ShellFact) => void;
  /** Levels and forms hold at once. */
  readonly useLog: (log: LogConfig) => void;
  readonly useApi: (config: RunConfig) => void;
  readonly isStopping: () => boolean;
  readonly wallMs?: () => number;
}

/** From the configuration that runs to the sections of the one that is asked for. */
type Ask = (running: RunningConfig) => Promise<Asked> | Asked;
type Asked =
  | { readonly kind: "asked"; readonly sections: Sections; readonly fileDigest?: string; readonly why?: string }
  | Extract<ChangeOutcome, { kind: "refused" }>;

export class Configuration {
  #running: RunningConfig;
  #file: KnownFile | undefined;
  #refusedFile: (NonNullable<ConfigSummary["refused"]> & { readonly digest: string }) | undefined;
  #turn: Promise<unknown> = Promise.resolve();
  readonly #origin: ConfigOrigin;

  constructor(readonly options: ConfigurationOptions, written: WrittenConfig) {
    const { config, origin, sections, fileDigest } = options.loaded;
    this.#origin = origin;
    this.#running = { config, document: sections, written };
    this.#file = fileDigest === undefined ? undefined : { digest: fileDigest, written };
  }

  get running(): RunningConfig {
    return this.#running;
  }

  get digest(): string {
    return digestOf(this.#running.written);
  }

  /** What runs from the start on is the first entry. */
  async begin(): Promise<void> {
    await this.#remember("start", "epochd run", "start");
  }

  summary(): ConfigSummary {
    const { configPath } = this.#origin;
    const { digest: _, ...refused } = this.#refusedFile ?? { digest: "" };
    return {
      digest: this.digest,
      ...(configPath === undefined ? {} : { path: configPath }),
      ...(this.#file === undefined ? {} : differences(this.#running.written, this.#file.written)),
      ...("name" in refused ? { refused } : {}),
    };
  }

  history(): Promise<readonly HistoryEntry[]> {
    return this.options.history.entries();
  }

  /** SIGHUP and POST reload: the file again, and a new epoch for every service, changed or not. */
  reload(options: ChangeOptions): Promise<ChangeOutcome> {
    return this.#change((running) => this.#readFile(running), options, true);
  }

  /** The watched file: only what changed, and only where the content is another one. */
  async fileChanged(digest: string): Promise<ChangeOutcome | undefined> {
    if (digest === this.#refusedFile?.digest) return undefined;
    if (digest === this.#file?.digest) {
      // Edited back to what was taken.
      this.#refusedFile = undefined;
      return undefined;
    }
    return await this.#change((running) => this.#readFile(running), { who: "watched file", source: "file" }, false);
  }

  /** `next` makes the asked document of the one that runs. */
  edit(next: (document: Sections, written: WrittenConfig) => Asked, options: ChangeOptions): Promise<ChangeOutcome> {
    return this.#change(({ document, written }) => next(document, written), options, false);
  }

  /** To an earlier one: by its number or the beginning of its digest; absent: the one before. */
  rollback(to: string | undefined, options: ChangeOptions): Promise<ChangeOutcome> {
    return this.#change(
      async () => {
        const entries = await this.options.history.entries();
        const entry = to === undefined
          ? entries.find(({ digest }) => digest !== this.digest)
          : entries.find(({ id, digest }) => String(id) === to || (to.length >= 8 && digest.startsWith(to)));
        if (entry !== undefined) return { kind: "asked", sections: entry.document, why: `back to ${entry.id}` };
        const known = entries.map(({ id }) => id).join(", ");
        return to === undefined
          ? refuseChange("history_unknown", "there is no configuration before this one")
          : refuseChange("history_unknown", `no configuration ${to} is kept, expected one of: ${known}`);
      },
      options,
      false,
    );
  }

  async #readFile({ document }: RunningConfig): Promise<Asked> {
    const { configPath } = this.#origin;
    if (configPath === undefined) return { kind: "asked", sections: document };
    const read = await (await import("./config_file.ts")).readSections(configPath);
    return read.kind === "refused" ? read : { kind: "asked", sections: read.sections, fileDigest: read.digest };
  }

  #change(ask: Ask, options: ChangeOptions, restartAll: boolean): Promise<ChangeOutcome> {
    const result = this.#turn.then(() => this.#changeNow(ask, options, restartAll));
    this.#turn = result.catch(() => {});
    return result.then((outcome) => {
      if (options.dryRun !== true && outcome.kind === "refused") this.#tellRefused(outcome, options);
      return outcome;
    });
  }

  async #changeNow(ask: Ask, options: ChangeOptions, restartAll: boolean): Promise<ChangeOutcome> {
    const { fleet, isStopping } = this.options;
    if (isStopping()) return refuseChange("stopping", "epochd is stopping, its configuration stays as it is");
    if (options.ifMatch !== undefined && !options.ifMatch(this.digest, this.serviceDigests())) {
      return refuseChange("etag_differs", `another configuration runs by now (${this.digest}): read it again`);
    }
    const given = await ask(this.#running);
    if (given.kind === "refused") return given;
    const byPerson = ["put", "patch", "rollback"].includes(options.source);
    const where = byPerson ? undefined : this.#origin.configPath;
    const checked = checkChange(this.#running, given.sections, this.#origin, where ?? "the request", byPerson);
    if (checked.kind === "refused") return this.#refusedFrom(given.fileDigest, checked);
    const { diff, asked } = checked;
    const leaving = diff.added.find((name) => fleet.stateOf(name) === "leaving");
    if (leaving !== undefined) {
      return refuseChange(
        "service_leaving",
        `service ${leaving} was removed and still drains: add it when it has gone`,
        {
          service: leaving,
        },
      );
    }
    const refusal = await preflightChange(fleet, asked, diff);
    if (refusal !== undefined) return this.#refusedFrom(given.fileDigest, { kind: "refused", refusal });
    if (options.dryRun === true) return await this.#outlook(diff, asked, restartAll);
    const file = byPerson ? await this.#persist(asked, options.persist ?? asked.config.persist) : undefined;
    if (file?.kind === "refused") return file;
    if (given.fileDigest !== undefined) {
      this.#file = { digest: given.fileDigest, written: asked.written };
      this.#refusedFile = undefined;
    }
    this.#tellTaken(this.#done(diff, restartAll, {}, false, asked), options);
    const requests = await this.#apply(asked, file?.document, diff, restartAll, options);
    const why = [...(given.why === undefined ? [] : [given.why]), ...summaryOf(diff)].join(", ");
    if (!isUnchanged(diff)) await this.#remember(options.source, options.who, why);
    return this.#done(diff, restartAll, requests, false);
  }

  /** Of each service alone, for If-Match on one. */
  serviceDigests(): Readonly<Record<string, string>> {
    const { services } = this.#running.written;
    return Object.fromEntries(Object.entries(services).map(([name, fields]) => [name, digestOf(fields)]));
  }

  #refusedFrom(
    digest: string | undefined,
    outcome: Extract<ChangeOutcome, { kind: "refused" }>,
  ): Extract<ChangeOutcome, { kind: "refused" }> {
    const { name, detail } = outcome.refusal;
    // Kept for the status, and so that the same content is not tried again by each event of the watch.
    if (digest !== undefined) this.#refusedFile = { name, detail, wallMs: this.#wallMs(), digest };
    return outcome;
  }

  async #persist(
    asked: RunningConfig,
    wanted: boolean,
  ): Promise<{ readonly kind: "kept"; readonly document?: Sections } | Extract<ChangeOutcome, { kind: "refused" }>> {
    const { configPath } = this.#origin;
    if (!wanted) return { kind: "kept" };
    if (configPath === undefined || this.#file === undefined) {
      const nothing = isUnchanged(diffConfigs(this.#running.written, asked.written));
      if (nothing) return { kind: "kept" };
      return refuseChange(
        "config_no_file",
        "epochd was started without --config, so the change can't be kept: with persist=false it applies until epochd ends",
      );
    }
    const { writeBack } = await import("./config_file.ts");
    const written = await writeBack(configPath, this.#file, asked, this.#origin);
    if (written.kind === "refused") return written;
    if (written.kind === "same") return { kind: "kept" };
    this.#file = written.file;
    return { kind: "kept", document: written.document };
  }

  async #apply(
    asked: RunningConfig,
    document: Sections | undefined,
    diff: ConfigDiff,
    restartAll: boolean,
    options: ChangeOptions,
  ): Promise<Readonly<Record<string, string>>> {
    const { fleet, tell, useLog, useApi } = this.options;
    this.#running = document === undefined ? asked : { ...asked, document };
    const { config } = this.#running;
    useLog(config.log);
    useApi(config);
    for (const name of diff.removed) fleet.remove(name);
    const requests: Record<string, string> = {};
    for (const [name, service] of Object.entries(config.services)) {
      const action = actionOf(diff, name);
      const isDown = fleet.stateOf(name) === "ended" && (restartAll || action !== "none");
      if (action === "add" || isDown) {
        const problem = await fleet.add(name, service);
        if (problem !== undefined) tell({ kind: "service_not_added", name, problem });
        continue;
      }
      if (action !== "none") fleet.use(name, service);
      if (!restartAll && action !== "hot_restart") continue;
      const triggered = fleet.trigger(name, triggerOf(options.source), { force: options.force ?? false });
      if (triggered !== undefined) requests[name] = triggered.request;
    }
    return requests;
  }

  async #outlook(diff: ConfigDiff, asked: RunningConfig, restartAll: boolean): Promise<ChangeDone> {
    const counts = new Map<string, number>();
    const names = [...Object.keys(asked.config.services), ...diff.removed];
    await Promise.all(names.map(async (name) => {
      const action = actionOf(diff, name);
      const ends = action === "hot_restart" || action === "remove" || (restartAll && action !== "add");
      const count = ends ? await this.options.fleet.connections(name) : undefined;
      if (count !== undefined) counts.set(name, count);
    }));
    const { services, ...rest } = this.#done(diff, restartAll, {}, true, asked);
    return {
      ...rest,
      services: Object.fromEntries(
        Object.entries(services).map(([name, outcome]) => {
          const connections = counts.get(name);
          return [name, { ...outcome, ...(connections === undefined ? {} : { connections }) }];
        }),
      ),
    };
  }

  #done(
    diff: ConfigDiff,
    restartAll: boolean,
    requests: Readonly<Record<string, string>>,
    dryRun: boolean,
    { config, written } = this.#running,
  ): ChangeDone {
    const services = [...Object.keys(config.services), ...diff.removed].map((name): [string, ServiceOutcome] => {
      const own = actionOf(diff, name);
      const action = restartAll && (own === "none" || own === "dynamic") ? "hot_restart" : own;
      const request = requests[name];
      return [name, { action, ...(request === undefined ? {} : { request }) }];
    });
    const verdict = verdictOf(diff);
    return {
      kind: "done",
      dryRun,
      verdict: restartAll || verdict === "refused" ? "hot_restart" : verdict,
      changes: diff.changes,
      services: Object.fromEntries(services),
      digest: digestOf(written),
      persisted: this.#file !== undefined && isUnchanged(diffConfigs(written, this.#file.written)),
    };
  }

  #tellRefused({ refusal }: Extract<ChangeOutcome, { kind: "refused" }>, { who, source }: ChangeOptions): void {
    this.options.tell({ kind: "config_refused", source, who, refusal: refusal.name, detail: refusal.detail });
  }

  #tellTaken({ verdict, changes, services, digest }: ChangeDone, { who, source }: ChangeOptions): void {
    if (verdict === "unchanged") return;
    const fields = changes.map(({ field }) => field);
    const by = (action: string) => Object.keys(services).filter((name) => services[name]!.action === action);
    const [added, removed] = [by("add"), by("remove")];
    this.options.tell({ kind: "config_applied", source, who, verdict, fields, added, removed, digest });
  }

  async #remember(source: ConfigSource, who: string, why: string): Promise<void> {
    const { history, tell } = this.options;
    const { document } = this.#running;
    const problem = await history.add({ digest: this.digest, wallMs: this.#wallMs(), who, source, why, document });
    if (problem !== undefined) tell({ kind: "config_history_failed", problem });
  }

  #wallMs(): number {
    return (this.options.wallMs ?? Date.now)();
  }
}

function triggerOf(source: ConfigSource): TriggerSource {
  return source === "signal" ? "signal" : source === "file" ? "config" : "api";
}
