// Owns: `make soak`: a thousand handoffs under load, and what is left of them. Must not: need a terminal, or anything of the tree once
// it runs.
import { ENVOY_VERSIONS } from "../tests/support/envoys.ts";
import { type Epochd, runEpochd } from "../tests/support/epochd.ts";
import { until, within } from "../tests/support/until.ts";
import { compile } from "../tools/compile.ts";
import { loadAverage, machine } from "./environment.ts";
import { type LoadReport, startLoad } from "./soak/load.ts";
import { readOptions, type SoakOptions, USAGE } from "./soak/options.ts";
import { faults, type Soak, writeSoak } from "./soak/report.ts";
import { takeSample } from "./soak/sampler.ts";
import { openStage } from "./soak/stage.ts";
import type { HandoffRecord, Sample } from "./soak/tally.ts";
import { nextHandoff } from "./soak/triggers.ts";

const SAMPLE_EVERY_MS = 1_000;
/** What is lost when the bench itself is killed. */
const WRITE_EVERY_MS = 60_000;
const TELL_EVERY = 20;

Deno.exit(await main(Deno.args));

async function main(args: readonly string[]): Promise<number> {
  const options = readOptions(args);
  if (options === "help") {
    print(USAGE.trimEnd());
    return 0;
  }
  if ("problem" in options) {
    print(`soak: ${options.problem}`);
    return 2;
  }
  const interrupted = onInterrupt();
  await compile();
  return await run(options, interrupted);
}

async function run(options: SoakOptions, interrupted: Promise<string>): Promise<number> {
  const loadBefore = loadAverage();
  const { output, ...asked } = options;
  const [handoffs, samples]: [HandoffRecord[], Sample[]] = [[], []];
  const warnings: Record<string, number> = {};
  await using stage = await openStage();
  const { epochd } = stage;
  const compiled = (await runEpochd(["--version"], stage.program)).stdout.trim();
  const startedMs = performance.now();
  epochd.log.onEvent(({ event, level }) => {
    if (level === "warn" || level === "error") warnings[event] = (warnings[event] ?? 0) + 1;
  });
  await using load = startLoad(stage.listenPort, options.requestsPerSecond);
  const soakNow = (more: Partial<Soak>): Soak => ({
    options: asked,
    environment: { ...machine(), load: [loadBefore, loadAverage()], compiled },
    envoyVersions: ENVOY_VERSIONS,
    durationMs: Math.round(performance.now() - startedMs),
    load: load.report(),
    handoffs,
    samples,
    warnings,
    ...more,
  });
  const sampler = setInterval(() => {
    const sample = takeSample(epochd, load, { startedMs, handoffs: handoffs.length });
    if (sample !== undefined) samples.push(sample);
  }, SAMPLE_EVERY_MS);

  let partial: string | undefined;
  let writtenMs = performance.now();
  const isEnough = () => handoffs.length >= options.handoffs && load.report().traffic.requests >= options.requests;
  while (partial === undefined && !isEnough()) {
    const next = await Promise.race([nextHandoff(stage, handoffs.length + 1, startedMs), interrupted]);
    if (typeof next === "string") partial = `ended by ${next}`;
    else {
      handoffs.push(next);
      if (next.outcome === "lost") partial = `handoff ${next.number} was lost`;
      if (next.outcome !== "done" || handoffs.length % TELL_EVERY === 0) tell(next, load.report(), options);
    }
    if (performance.now() - writtenMs > WRITE_EVERY_MS) {
      writtenMs = performance.now();
      await writeSoak(output, soakNow({ partial: "still running, or killed" }));
    }
  }
  clearInterval(sampler);
  const report = await load.stop();
  epochd.signal("SIGTERM");
  const { code, signal } = await within("the end of epochd", epochd.exit, 60_000);
  const exit = { code, signal, envoysLeft: await envoysLeft(epochd) };
  const soak = soakNow({ load: report, exit, ...(partial === undefined ? {} : { partial }) });
  await writeSoak(output, soak);
  const found = faults(soak);
  print(
    `${handoffs.length} handoffs, ${report.traffic.requests} requests: ${found.join("; ") || "nothing failed"}` +
      (report.excused === 0 ? "" : `, ${report.excused} not by Envoy or epochd`) +
      (partial === undefined ? "" : ` (partial: ${partial})`) + `; ${output}/soak.md`,
  );
  if (found.length > 0) return 1;
  return partial === undefined ? 0 : 130;
}

/** Envoy needs a moment to follow the SIGTERM that the end of its parent is. */
async function envoysLeft(epochd: Epochd): Promise<number> {
  await until("no Envoy is left", () => epochd.envoyPids().length === 0, { timeoutMs: 10_000 }).catch(() => {});
  return epochd.envoyPids().length;
}

/** The first signal asks for a report of what there is; by a second one the bench ends at once. */
function onInterrupt(): Promise<string> {
  return new Promise((resolve) => {
    let asked = false;
    for (const signal of ["SIGINT", "SIGTERM"] as const) {
      Deno.addSignalListener(signal, () => {
        if (asked) Deno.exit(130);
        asked = true;
        print(`${signal}: writing what there is`);
        resolve(signal);
      });
    }
  });
}

function tell(
  { number, outcome, detail }: HandoffRecord,
  { traffic, ...load }: LoadReport,
  options: SoakOptions,
): void {
  const bad = outcome === "done" ? "" : `, ${outcome}: ${detail}`;
  const excused = load.excused === 0 ? "" : `, ${load.excused} excused`;
  print(
    `handoff ${number} of ${options.handoffs}${bad}; ${traffic.requests} requests, ${load.requestsFailed} failed, ` +
      `${load.streamsBroken} streams broken${excused}, p99 ${traffic.latency.p99Ms} ms`,
  );
}

/** Whoever read it may have gone. */
function print(text: string): void {
  try {
    Deno.stdout.writeSync(new TextEncoder().encode(`${text}\n`));
  } catch {
    // The report is in the files.
  }
}
