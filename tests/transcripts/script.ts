// Owns: the words of a transcript: input lines to events, steps to text. Must not: read files or compare.

import type { Effect } from "../../lib/core/effect.ts";
import type { Exit, Plan } from "../../lib/core/epoch.ts";
import type { Content, Happening, Inventory, StandInEnd, Subject, TimerName, Vitals } from "../../lib/core/event.ts";
import type { Fact } from "../../lib/core/fact.ts";
import { isReady } from "../../lib/core/ready.ts";
import { refusal, type RefusalName } from "../../lib/core/refusal.ts";
import type { Owner, Sighting } from "../../lib/core/sighting.ts";
import type { Settings } from "../../lib/core/settings.ts";
import type { State } from "../../lib/core/state.ts";
import { view } from "../../lib/core/view.ts";

export function plan(name: string): Plan {
  const [bootstrap = "", binary = "x0"] = name.split("+");
  return {
    key: `${bootstrap}+${binary}`,
    bootstrapDigest: bootstrap,
    binaryDigest: binary,
    bootstrapPath: `/state/${bootstrap}`,
    binaryPath: "/envoy",
    admin: { kind: "tcp", host: "127.0.0.1", port: 9901 },
    // By its name, for the few that want one.
    ...(bootstrap === "xds" ? { controlPlaneClusters: ["xds"] } : {}),
  };
}

/**
 *     passed ATTEMPT PLAN [cached]        refused ATTEMPT NAME [PLAN]
 *     spawned ATTEMPT                     spawn_failed ATTEMPT
 *     exit ATTEMPT CODE|SIGNAL|unknown            repaired ATTEMPT clean|cleared|failed
 *     identity ATTEMPT EPOCH STATE [asked MS ago]
 *     silent ATTEMPT refused|timeout [asked MS ago]
 *     inventory ATTEMPT none | inventory ATTEMPT LISTENERS CLUSTERS [away|connected]
 *     connections ATTEMPT none | connections ATTEMPT ACTIVE TOTAL
 *     vitals ATTEMPT alive|dead [admin|traffic|nowhere]     drained ATTEMPT ok|no
 *     content SUBJECT DIGEST | content SUBJECT unusable PROBLEM...
 *     stands ATTEMPT                      stood ATTEMPT terminated|bound_over|name_taken|failed
 *     lock ATTEMPT taken|held             published ok|PROBLEM...
 *     sighted [slots=SLOT,SLOT] [beat=EPOCH] [owner=EPOCH[:ready]] [answers=EPOCH] [mine] [lock]
 *             [unfinished=EPOCH:AGE_MS[:owned]] [orphans=EPOCH,EPOCH]
 *     hup | request NAME [force|drained] | push NAME [drained] | stop SOURCE | reopen | start | marker ok|PROBLEM...
 */
export function happening(line: string, nowMs: number): Happening {
  const [word = "", ...args] = line.split(" ");
  const attempt = Number(args[0]);
  const rest = (from: number) => args.slice(from).join(" ");
  switch (word) {
    case "start":
      return { kind: "start" };
    case "hup":
      return trigger("signal", [], false);
    case "request":
      return trigger("api", [args[0] ?? ""], args[1] === "force", args[1] === "drained");
    case "push":
      return trigger("push", [args[0] ?? ""], false, args[1] === "drained");
    case "stop":
      return { kind: "stop", source: rest(0) };
    case "reopen":
      return { kind: "reopen_logs" };
    case "passed":
      return { kind: "preflight_passed", attempt, plan: plan(args[1] ?? ""), cached: args[2] === "cached" };
    case "refused": {
      const why = refusal(args[1] as RefusalName, "for a reason");
      if (args[2] === undefined) return { kind: "preflight_refused", attempt, refusal: why };
      const { bootstrapDigest, binaryDigest } = plan(args[2]);
      return { kind: "preflight_refused", attempt, refusal: why, looked: { bootstrapDigest, binaryDigest } };
    }
    case "spawned":
      return { kind: "spawned", attempt, pid: 1000 + attempt };
    case "spawn_failed":
      return { kind: "spawn_failed", attempt, refusal: refusal("spawn_failed", "no memory") };
    case "exit":
      return { kind: "child_exited", attempt, exit: exit(args[1] ?? "0") };
    case "identity": {
      const identity = {
        epoch: Number(args[1]),
        state: args[2] as "LIVE",
        version: "x/1.40.0/Clean/RELEASE/BoringSSL",
        hotRestartVersion: "11.104",
      };
      return { kind: "identity", attempt, askedAtMs: asked(args, nowMs), answer: { kind: "answered", identity } };
    }
    case "silent": {
      const why = args[1] as "refused";
      return { kind: "identity", attempt, askedAtMs: asked(args, nowMs), answer: { kind: "silent", why, detail: why } };
    }
    case "inventory":
      return { kind: "inventory", attempt, inventory: inventory(args) };
    case "connections": {
      const connections = args[1] === "none" ? undefined : { active: Number(args[1]), total: Number(args[2]) };
      return { kind: "connections", attempt, connections };
    }
    case "vitals":
      return {
        kind: "vitals",
        attempt,
        alive: args[1] === "alive",
        detail: `process is ${args[1]}`,
        ...listens(args[2]),
      };
    case "drained":
      return { kind: "drain_answered", attempt, ok: args[1] === "ok", detail: "connection refused" };
    case "repaired": {
      const kind = args[1] as "clean" | "cleared" | "failed";
      const outcome = kind === "failed" ? { kind, detail: "permission denied" } : { kind };
      return { kind: "segment_repaired", attempt, outcome };
    }
    case "stands":
      return { kind: "stand_in_began", attempt, pid: 1000 + attempt };
    case "stood": {
      const how = args[1] as StandInEnd["kind"];
      return {
        kind: "stand_in_ended",
        attempt,
        end: how === "failed" || how === "name_taken" ? { kind: how, problem: "SIGKILL" } : { kind: how },
      };
    }
    case "lock":
      return { kind: "handoff_lock", attempt, taken: args[1] === "taken" };
    case "published":
      return { kind: "published", problem: args[0] === "ok" ? undefined : rest(0) };
    case "sighted":
      return { kind: "sighted", askedAtMs: nowMs, sighting: sighting(args) };
    case "marker":
      return { kind: "marker", problem: args[0] === "ok" ? undefined : rest(0) };
    case "watch":
      return { kind: "watch", subject: args[0] as Subject, mode: args[1] as "polling", why: rest(2) };
    case "content": {
      const content: Content = args[1] === "unusable"
        ? { kind: "unusable", problem: rest(2) }
        : { kind: "usable", digest: args[1] ?? "" };
      return { kind: "content", subject: args[0] as Subject, content, jitter: 0.5 };
    }
    default:
      throw new Error(`no such word in a transcript: ${line}`);
  }
}

function sighting(args: readonly string[]): Sighting {
  const value = (name: string) => args.find((arg) => arg.startsWith(`${name}=`))?.slice(name.length + 1);
  const [beat, owner, answers, slots] = ["beat", "owner", "answers", "slots"].map(value);
  const [epoch, ready] = owner?.split(":") ?? [];
  return {
    heartbeat: beat === undefined ? { kind: "none" } : { kind: "beat", epoch: Number(beat), ageMs: 400 },
    mine: args.includes("mine"),
    slots: slots === undefined ? [] : slots.split(",").map(Number),
    ...(owner === undefined
      ? {}
      : { owner: { ...OWNER, epoch: Number(epoch), ready: ready === "ready" }, sameBoot: true }),
    ...(answers === undefined
      ? {}
      : { identity: { epoch: Number(answers), state: "LIVE", hotRestartVersion: "11.104", concurrency: 2 } }),
    handoffUnderWay: args.includes("lock"),
    ...launches(value("unfinished"), value("orphans")),
  };
}

/** An Envoy of epoch N has pid 2000 + N. */
function launches(unfinished: string | undefined, orphans: string | undefined): Pick<Sighting, "launches"> {
  if (unfinished === undefined && orphans === undefined) return {};
  const [epoch, ageMs, owned] = unfinished?.split(":") ?? [];
  const pidOf = (number: number) => 2_000 + number;
  return {
    launches: {
      ...(unfinished === undefined ? {} : {
        unfinished: {
          epoch: Number(epoch),
          pid: pidOf(Number(epoch)),
          ageMs: Number(ageMs),
          isOrphan: owned === undefined,
        },
      }),
      orphans: orphans?.split(",").filter((one) => one !== "").map((one) => ({
        epoch: Number(one),
        pid: pidOf(Number(one)),
      })) ?? [],
    },
  };
}

const OWNER: Owner = {
  epoch: 0,
  ready: true,
  admin: { kind: "tcp", host: "127.0.0.1", port: 9901 },
  baseId: 7,
  concurrency: 2,
  drainTimeMs: 30_000,
  parentShutdownTimeMs: 45_000,
  gracePeriodMs: 60_000,
  uid: 0,
  bootId: "boot",
  instance: "other",
  pod: "other-pod",
  version: "1",
  envoyVersion: "x/1.40.0/Clean/RELEASE/BoringSSL",
};

function trigger(
  source: "signal" | "api" | "push",
  requests: readonly string[],
  force: boolean,
  drained = false,
): Happening {
  const how = drained ? { force, drained } : { force };
  return { kind: "trigger", trigger: { source, requests, when: "always", ...how, jitter: 0.5 } };
}

function exit(word: string): Exit {
  if (word === "unknown") return { code: "unknown" };
  return /^\d+$/.test(word) ? { code: Number(word) } : { code: word === "SIGKILL" ? 137 : 134, signal: word };
}

/** Where it listens; `admin` stands for both. */
function listens(word: string | undefined): Pick<Vitals, "listens"> {
  return word === undefined ? {} : { listens: { admin: word === "admin", traffic: word !== "nowhere" } };
}

function asked(args: readonly string[], nowMs: number): number {
  const at = args.indexOf("asked");
  return at < 0 ? nowMs : nowMs - Number(args[at + 1]);
}

function inventory(args: readonly string[]): Inventory | undefined {
  if (args[1] === "none") return undefined;
  const counts = { listeners: Number(args[1]), clusters: Number(args[2]) };
  return args[3] === undefined ? counts : { ...counts, controlPlaneConnected: args[3] === "connected" };
}

export const DEFAULTS: Settings = {
  debounceMs: 500,
  debounceMaxMs: 5_000,
  drainTimeMs: 30_000,
  parentShutdownTimeMs: 45_000,
  liveTimeoutMs: 60_000,
  watchdogMs: 3_000,
  markerRefreshMs: 2_000,
  minGapMs: "parent_shutdown_time",
  onCrash: "exit",
  crashBudget: 3,
  crashWindowMs: 600_000,
  onLostAdmin: "handoff",
  onHang: "report",
  preDrainDelayMs: 0,
  controlPlaneWaitMs: 30_000,
  rollbackWithinMs: 0,
  binaryTrialMs: 0,
  retryLimit: 3,
  retryBackoffMs: 5_000,
  jitterMs: 0,
  crossPod: false,
  whenSuperseded: "wait",
  gracePeriodMs: 0,
  onSupervisorDeath: "end",
};

/** `onCrash=restart minGapMs=0` */
export function settings(words: readonly string[]): Settings {
  const changed = words.map((word) => {
    const [name = "", value = ""] = word.split("=");
    if (!(name in DEFAULTS)) throw new Error(`no such setting: ${name}`);
    return [name, /^\d+$/.test(value) ? Number(value) : value === "true" ? true : value];
  });
  return { ...DEFAULTS, ...Object.fromEntries(changed) };
}

/** Where the service is, who lives, and which timers run. */
export function stateLine(state: State, nowMs: number, timers: ReadonlyMap<TimerName, number>): string {
  const { phase, step, epochs, waiting } = view(state, nowMs);
  const who = epochs.map(({ epoch, attempt, role }) => `${role} ${epoch} (${attempt})`).join(", ");
  const running = [...timers.keys()].sort().join(" ");
  return [
    step === undefined ? phase : `${phase} ${step}`,
    isReady(state) ? "Ready" : "not ready",
    who === "" ? "nobody" : who,
    ...(waiting === undefined ? [] : [`waiting: ${waiting.sources.join(" ")}`]),
    `timers: ${running === "" ? "none" : running}`,
  ].join(" | ");
}

/** Cleared timers show in the state line only. */
export function effectLine(effect: Effect): string | undefined {
  switch (effect.kind) {
    case "clear_timer":
      return undefined;
    case "set_timer":
      return `timer ${effect.name} ${effect.afterMs} ms`;
    default:
      return words(effect);
  }
}

export function factLine(fact: Fact): string {
  return words(fact);
}

function words({ kind, ...rest }: Effect | Fact): string {
  const fields = Object.entries(rest).filter(([name]) => name !== "admin").map(([name, value]) => {
    const text = valueText(value);
    return text === "" ? [] : `${name}=${text}`;
  });
  return [kind, ...fields.flat()].join(" ");
}

function valueText(value: unknown): string {
  if (Array.isArray(value)) return value.join(",");
  if (typeof value !== "object" || value === null) return String(value);
  if ("key" in value) return String(value.key);
  if ("detail" in value && "name" in value) return `"${value.name}: ${value.detail}"`;
  if ("signal" in value) return String(value.signal);
  if ("code" in value) return String(value.code);
  return JSON.stringify(value);
}
