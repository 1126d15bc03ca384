// Owns: what is done to a supervisor while clients are held: twenty restarts, upgrades, rolls, a stop. Must not: count or judge.
import { ENVOY_VERSIONS, type EnvoyVersion } from "../../tests/support/envoys.ts";
import type { Program } from "../../tests/support/epochd.ts";
import type { Bounds, Mark } from "./blame.ts";
import { type Crowd, startCrowd } from "./crowd.ts";
import { now, sleep } from "./held.ts";
import { startLoad } from "./load.ts";
import { type Scenario, type ScenarioReport, scenarioReport } from "./meter_report.ts";
import { changeOver, envoysOf, untilLive } from "./observer.ts";
import type { Protocol } from "./protocols.ts";
import { openStage, type Stage } from "./stage.ts";
import { startPod, type Subject, type Supervised } from "./subject.ts";

export interface ScenarioOptions {
  readonly envoy: EnvoyVersion;
  readonly handoffs: number;
  readonly rolls: number;
  readonly bounds: Bounds;
  readonly requestsPerSecond: number;
  readonly program: Program;
  readonly protocols?: readonly Protocol[];
  readonly over: AbortSignal;
  readonly tell: (text: string) => void;
}

/** Of the time that a parent has, and of the drain time of a stop: what is begun in the last moment still ends before it. */
const SESSION_SHARE = 0.8;
const STOP_SHARE = 0.7;
const BEFORE_MS = 1_000;
const AFTER_MS = 1_500;
const LEAVE_LIMIT_MS = 10_000;

export function sessionMsOf({ parentShutdownTimeMs }: Pick<Bounds, "parentShutdownTimeMs">): number {
  return Math.round(SESSION_SHARE * parentShutdownTimeMs);
}

/** Hot restarts in place, by SIGHUP. */
export function restart(subject: Subject, options: ScenarioOptions): Promise<ScenarioReport> {
  return ofOne("restart", subject, options, options.envoy, async (act) => {
    for (let number = 1; number <= options.handoffs; number++) await act.handoff(number, act.hup);
  });
}

/** From the oldest Envoy to the newest and back, by SIGHUP. */
export function upgrade(subject: Subject, options: ScenarioOptions): Promise<ScenarioReport> {
  const there: readonly EnvoyVersion[] = ENVOY_VERSIONS;
  const path = [...there, ...there.toReversed().slice(1)];
  return ofOne("upgrade", subject, options, path[0]!, async (act) => {
    for (const [at, version] of path.entries()) {
      if (at === 0) continue;
      act.stage.install(version);
      await act.handoff(at, act.hup);
    }
  });
}

/** A new supervisor joins, takes over, and the old one is told to go: twice as many supervisors, one service. */
export function roll(subject: Subject, options: ScenarioOptions): Promise<ScenarioReport> {
  const { bounds, program, rolls } = options;
  return measure("roll", subject, options, options.envoy, sessionMsOf(bounds), async (act) => {
    const join = () => act.ends.use(startPod(act.stage, bounds, program));
    let serving = join();
    act.watch(serving);
    await act.begin();
    for (let number = 1; number <= rolls; number++) {
      const next: { pod?: ReturnType<typeof startPod> } = {};
      await act.handoff(number, () => act.watch(next.pod = join()));
      const { pod } = next;
      if (pod === undefined) return;
      // As a DaemonSet with surge: the old pod is told to go when the new one is Ready.
      await pod.log.waitFor("ready_changed", { where: ({ ready }) => ready === true, timeoutMs: 30_000 });
      serving.signal("SIGTERM");
      await serving.exit;
      serving = pod;
    }
  });
}

/** SIGTERM, and everybody may finish what he holds. */
export function stop(subject: Subject, options: ScenarioOptions): Promise<ScenarioReport> {
  const { bounds } = options;
  // The clients end within the drain time here; there is no parent-shutdown.
  const sessionMs = Math.round(STOP_SHARE * bounds.drainTimeMs);
  return measure("stop", subject, options, options.envoy, sessionMs, async (act) => {
    const supervised = act.ends.use(subject.start(act.stage, bounds));
    act.watch(supervised);
    const from = await act.begin();
    const triggeredAtMs = now();
    act.crowd().leave();
    supervised.signal("SIGTERM");
    await Promise.race([supervised.exit, sleep(bounds.drainTimeMs + LEAVE_LIMIT_MS, options.over)]);
    options.over.throwIfAborted();
    await untilGone(act.stage.baseId);
    act.marks.push({ number: 1, kind: "stop", triggeredAtMs, from, goneAtMs: now() });
    await act.crowd().untilLeft(LEAVE_LIMIT_MS);
  });
}

interface Act {
  readonly stage: Stage;
  readonly ends: AsyncDisposableStack;
  readonly marks: Mark[];
  readonly crowd: () => Crowd;
  /** The one whose end would be the reason of a failure. */
  watch(supervised: Supervised): void;
  hup(): void;
  /** Waits for the first Envoy, and starts clients and load. */
  begin(): Promise<string>;
  handoff(number: number, trigger: () => unknown): Promise<void>;
}

function ofOne(
  scenario: Scenario,
  subject: Subject,
  options: ScenarioOptions,
  envoy: EnvoyVersion,
  run: (act: Act) => Promise<void>,
): Promise<ScenarioReport> {
  return measure(scenario, subject, options, envoy, sessionMsOf(options.bounds), async (act) => {
    act.watch(act.ends.use(subject.start(act.stage, options.bounds)));
    await act.begin();
    await run(act);
  });
}

/** The supervisor did not do what was asked of it: the scenario ends, and what was counted so far is reported. */
class Refused extends Error {}

async function measure(
  scenario: Scenario,
  subject: Subject,
  options: ScenarioOptions,
  envoy: EnvoyVersion,
  sessionMs: number,
  run: (act: Act) => Promise<void>,
): Promise<ScenarioReport> {
  const { over, tell, bounds, requestsPerSecond } = options;
  const title = `${scenario}, ${subject.key}`;
  tell(`${title}: starting Envoy ${envoy}`);
  await using stage = await openStage(envoy);
  await using ends = new AsyncDisposableStack();
  // Ended before the supervisor is: clients of a server that was stopped would count losses.
  await using traffic = new AsyncDisposableStack();
  const marks: Mark[] = [];
  let supervised: Supervised | undefined;
  let crowd: Crowd | undefined;
  let load: ReturnType<typeof startLoad> | undefined;
  let serves = "";
  const place = { baseId: stage.baseId, adminPort: stage.adminPort, ...bounds };
  const act: Act = {
    stage,
    ends,
    marks,
    crowd: () => crowd!,
    watch: (one) => void (supervised = one),
    hup: () => supervised?.signal("SIGHUP"),
    async begin() {
      serves = await untilLive(place, over, () => supervised?.ended());
      const { site } = stage;
      const { protocols } = options;
      crowd = traffic.use(startCrowd({ site, sessionMs, ...(protocols !== undefined && { protocols }) }));
      await crowd.untilServed();
      const url = `http://${site.hostname}:${site.http}/direct`;
      load = traffic.use(startLoad({ url, requestsPerSecond, leave: scenario === "stop" }));
      await sleep(BEFORE_MS, over);
      over.throwIfAborted();
      return serves;
    },
    async handoff(number, trigger) {
      const mark = await changeOver(place, number, serves, trigger, over, () => supervised?.ended());
      marks.push(mark);
      const took = mark.liveAtMs === undefined
        ? "not LIVE"
        : `LIVE after ${Math.round(mark.liveAtMs - mark.triggeredAtMs)} ms`;
      tell(`${title}: ${mark.kind} ${number}, ${took}`);
      if (mark.kind === "failed") {
        throw new Refused(`no new Envoy after trigger ${number}: ${supervised?.ended() ?? "the supervisor runs"}`);
      }
      serves = mark.to ?? serves;
      // Of all supervisors the same number of changes in the same time, also of one that does not wait for its parent's end.
      await sleep(mark.triggeredAtMs + bounds.parentShutdownTimeMs - now(), over);
    },
  };
  let problem: string | undefined;
  try {
    await run(act);
    await sleep(AFTER_MS, over);
  } catch (error) {
    over.throwIfAborted();
    if (crowd === undefined || load === undefined || !(error instanceof Refused)) throw error;
    problem = error.message;
  }
  over.throwIfAborted();
  const seen = await load!.stop();
  const counts = await crowd!.stop();
  const { name, key } = subject;
  const measured = { scenario, subject: name, key, envoy, marks, bounds, counts, load: seen };
  return scenarioReport({ ...measured, ...(problem !== undefined && { problem }) });
}

async function untilGone(baseId: number): Promise<void> {
  for (let looks = 0; looks < 100 && envoysOf(baseId).length > 0; looks++) {
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}
