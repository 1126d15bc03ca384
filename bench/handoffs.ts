// Owns: how long a handoff takes: by a bare Envoy, by epochd on SIGHUP, by epochd on an edit, in turns on one machine.
import { type BootstrapOptions, writeBootstrap } from "../tests/support/bootstrap.ts";
import { freeBaseId, removeSegment } from "../tests/support/base_ids.ts";
import { type BareEnvoy, envoyPath, spawnEnvoy } from "../tests/support/envoys.ts";
import { type Epochd, type Program, startEpochd } from "../tests/support/epochd.ts";
import { freePorts } from "../tests/support/ports.ts";
import { tempDir } from "../tests/support/tempdir.ts";
import { liveAtMs } from "./observe.ts";
import { atMost, type Figure } from "./report.ts";
import { median, round, spread } from "./sample.ts";

const ROUNDS = 12;
const RATIO = 1.15;
const DEBOUNCE_MS = 500;
const TIMES = { drainTimeMs: 1_000, parentShutdownTimeMs: 2_000 };

/** One who can be asked for the next epoch, again and again. */
interface Runner extends AsyncDisposable {
  /** Milliseconds from the trigger until the next epoch is LIVE, seen from outside. */
  next(): Promise<number>;
}

export interface BareRunner extends Runner {
  readonly coldStartMs: number;
  /** Of the newest epoch. */
  log(): string;
}

export async function handoffFigures(tell: (text: string) => void): Promise<Figure[]> {
  await using bare = await bareEnvoy();
  await using hup = await supervised("source", "SIGHUP");
  await using hupCompiled = await supervised("dist", "SIGHUP");
  await using edit = await supervised("source", "edit");
  await using editCompiled = await supervised("dist", "edit");
  const runners = { bare, hup, hupCompiled, edit, editCompiled };
  const took: Record<keyof typeof runners, number[]> = {
    bare: [],
    hup: [],
    hupCompiled: [],
    edit: [],
    editCompiled: [],
  };
  // The first round warms caches and is not counted.
  for (let round = 0; round <= ROUNDS; round++) {
    for (const [name, runner] of Object.entries(runners) as [keyof typeof runners, Runner][]) {
      const ms = await runner.next();
      if (round > 0) took[name].push(ms);
    }
    tell(`handoffs, round ${round} of ${ROUNDS}`);
  }
  const bareMs = median(took.bare);
  const beside = `a bare Envoy's next epoch against a running parent, in turns with it: ${round(bareMs)} ms`;
  const by = (name: "hup" | "hupCompiled") =>
    atMost({
      name: `SIGHUP to LIVE${name === "hup" ? "" : ", compiled"}`,
      how: `from the signal until the admin answers LIVE at N+1, beside ${beside}`,
      unit: "x",
      value: median(took[name]) / bareMs,
      bound: `<= ${RATIO} x a bare epoch`,
      notes: [
        `median ${round(median(took[name]))} ms, from ${round(Math.min(...took[name]))} to ${
          round(Math.max(...took[name]))
        } ms`,
        ...runners[name].parts(),
      ],
    }, RATIO);
  const byEdit = (name: "edit" | "editCompiled") =>
    atMost({
      name: `bootstrap edit to LIVE${name === "edit" ? "" : ", compiled"}`,
      how:
        `from the rename until the admin answers LIVE at N+1, --debounce ${DEBOUNCE_MS}ms, each edit of new content; beside ${beside}`,
      unit: "ms",
      value: median(took[name]),
      samples: spread(took[name]),
      bound: `<= debounce + ${RATIO} x a bare epoch = ${round(DEBOUNCE_MS + RATIO * bareMs)} ms`,
      notes: runners[name].parts(),
    }, DEBOUNCE_MS + RATIO * bareMs);
  return [by("hup"), by("hupCompiled"), byEdit("edit"), byEdit("editCompiled")];
}

/** Epoch after epoch of an Envoy that nobody supervises, each against a running parent. */
export async function bareEnvoy(
  options: Partial<BootstrapOptions> = {},
  times: typeof TIMES = TIMES,
): Promise<BareRunner> {
  const directory = tempDir();
  const baseId = freeBaseId();
  const [listenPort, freeAdminPort] = freePorts(2) as [number, number];
  const adminPort = options.adminPort ?? freeAdminPort;
  const bootstrapPath = writeBootstrap(directory.at("envoy.yaml"), { listenPort, ...options, adminPort });
  const start = (epoch: number) =>
    spawnEnvoy({
      bootstrapPath,
      baseId,
      epoch,
      drainTimeS: times.drainTimeMs / 1000,
      parentShutdownTimeS: times.parentShutdownTimeMs / 1000,
      // As epochd gives them.
      extraArguments: [
        "--log-format",
        `[%Y-%m-%d %T.%e][epoch ${epoch}][%t][%l][%n] [%g:%#] %v`,
        ...(epoch > 0 ? ["--skip-hot-restart-on-no-parent"] : []),
      ],
    });
  const chain: BareEnvoy[] = [start(0)];
  const beganMs = performance.now();
  const coldStartMs = await liveAtMs(adminPort, 0) - beganMs;
  return {
    coldStartMs,
    log: () => chain.at(-1)?.log() ?? "",
    async next() {
      if (chain.length > 1) await chain.at(-2)?.exit;
      const beganMs = performance.now();
      chain.push(start(chain.length));
      return await liveAtMs(adminPort, chain.length - 1) - beganMs;
    },
    async [Symbol.asyncDispose]() {
      for (const envoy of chain.toReversed()) await envoy[Symbol.asyncDispose]();
      removeSegment(baseId);
      await directory[Symbol.asyncDispose]();
    },
  };
}

async function supervised(program: Program, by: "SIGHUP" | "edit"): Promise<Runner & { parts(): string[] }> {
  const directory = tempDir();
  const [listenPort, adminPort] = freePorts(2) as [number, number];
  const options: BootstrapOptions = { listenPort, adminPort };
  const bootstrapPath = writeBootstrap(directory.at("envoy.yaml"), options);
  const extraArguments = ["--debounce", `${DEBOUNCE_MS}ms`, "--watch-binary"];
  const epochd = startEpochd({ envoyPath: envoyPath(), bootstrapPath, directory, program, extraArguments, ...TIMES });
  let epoch = 0;
  await epochd.waitForEvent("epoch_live");
  await epochd.waitForEvent("watch_changed", ({ subject }) => subject === "binary");
  const act = (to: number) => {
    if (by === "SIGHUP") epochd.signal("SIGHUP");
    else writeBootstrap(bootstrapPath, { ...options, generation: String(to) });
  };
  return {
    async next() {
      if (epoch > 0) await epochd.waitForEvent("handoff_done", ({ to }) => to === epoch);
      const beganMs = performance.now();
      act(++epoch);
      return await liveAtMs(adminPort, epoch) - beganMs;
    },
    parts: () => partsOf(epochd),
    async [Symbol.asyncDispose]() {
      await epochd[Symbol.asyncDispose]();
      await directory[Symbol.asyncDispose]();
    },
  };
}

/** Where the time goes, by epochd's own log. */
function partsOf(epochd: Epochd): string[] {
  const medianOf = (event: string) =>
    round(
      median(epochd.log.events.filter((line) => line.event === event).slice(1).map(({ tookMs }) => Number(tookMs))),
    );
  return [
    `by epochd's log: preflight ${medianOf("preflight_passed")} ms, ` +
    `from the fork to LIVE ${medianOf("epoch_live")} ms, the whole handoff ${medianOf("handoff_live")} ms`,
  ];
}
