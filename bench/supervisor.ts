// Owns: what the supervisor itself costs: its start, its idling, its end by a dead Envoy.
import { writeBootstrap } from "../tests/support/bootstrap.ts";
import { envoyPath } from "../tests/support/envoys.ts";
import { type Epochd, type Program, startEpochd } from "../tests/support/epochd.ts";
import { freePorts } from "../tests/support/ports.ts";
import { tempDir } from "../tests/support/tempdir.ts";
import { cpuMs, execAtMs, pause } from "./observe.ts";
import { atMost, type Figure } from "./report.ts";
import { median, round, spread } from "./sample.ts";

const SAMPLES = 10;
const IDLE_WINDOW_MS = 4_000;

export async function supervisorFigures(tell: (text: string) => void): Promise<Figure[]> {
  const figures: Figure[] = [];
  figures.push(await start(tell));
  for (const program of ["source", "dist"] as const) figures.push(await death(program, tell));
  figures.push(await idling(tell));
  return figures;
}

async function start(tell: (text: string) => void): Promise<Figure> {
  const took: number[] = [];
  for (let sample = 0; sample <= SAMPLES; sample++) {
    await withEpochd("dist", async (epochd, beganMs) => {
      const ms = await execAtMs(epochd.pid, envoyPath()) - beganMs;
      // The first one reads executables from disk.
      if (sample > 0) took.push(ms);
      await epochd.waitForEvent("epoch_live");
    });
    tell(`start, ${sample} of ${SAMPLES}`);
  }
  return atMost({
    name: "start of epochd run to Envoy's exec, compiled",
    how: "from before the fork of epochd until a child of it executes Envoy, by /proc (looked at every millisecond)",
    unit: "ms",
    value: median(took),
    samples: spread(took),
    bound: "< 150 ms",
  }, 150);
}

async function death(program: Program, tell: (text: string) => void): Promise<Figure> {
  const took: number[] = [];
  for (let sample = 0; sample < SAMPLES; sample++) {
    await withEpochd(program, async (epochd) => {
      await epochd.waitForEvent("ready_changed");
      const [pid] = epochd.envoyPids();
      if (pid === undefined) throw new Error("no Envoy to kill");
      const beganMs = performance.now();
      Deno.kill(pid, "SIGKILL");
      const { code } = await epochd.exit;
      took.push(performance.now() - beganMs);
      if (code !== 1) throw new Error(`exit code ${code}, expected 1`);
    });
    tell(`kill -9 of Envoy, ${sample + 1} of ${SAMPLES}`);
  }
  return atMost({
    name: `kill -9 of Envoy to exit 1${program === "dist" ? ", compiled" : ""}`,
    how: "from before the signal until epochd is reaped",
    unit: "ms",
    value: median(took),
    samples: spread(took),
    bound: "< 100 ms",
  }, 100);
}

async function idling(tell: (text: string) => void): Promise<Figure> {
  const shares: number[] = [];
  await withEpochd("dist", async (epochd) => {
    await epochd.waitForEvent("ready_changed");
    await epochd.waitForEvent("watch_changed", ({ subject }) => subject === "binary");
    // Past what the start still does (reading the binary for its digest, the API).
    await pause(IDLE_WINDOW_MS);
    for (let sample = 0; sample < SAMPLES; sample++) {
      const [beganMs, beganCpuMs] = [performance.now(), cpuMs(epochd.pid)];
      await pause(IDLE_WINDOW_MS);
      shares.push(100 * (cpuMs(epochd.pid) - beganCpuMs) / (performance.now() - beganMs));
      tell(`idling, ${sample + 1} of ${SAMPLES}`);
    }
  });
  return atMost({
    name: "CPU of an idle epochd, compiled",
    how: `all threads by /proc/PID/task/*/schedstat over windows of ${
      IDLE_WINDOW_MS / 1000
    } s; both watches, marker and API on`,
    unit: "% of a core",
    value: median(shares),
    samples: spread(shares),
    bound: "< 0.5 %",
    notes: [`mean ${round(shares.reduce((sum, share) => sum + share, 0) / shares.length, 3)} %`],
  }, 0.5);
}

async function withEpochd(program: Program, act: (epochd: Epochd, beganMs: number) => Promise<void>): Promise<void> {
  await using directory = tempDir();
  const [listenPort, adminPort] = freePorts(2) as [number, number];
  const bootstrapPath = writeBootstrap(directory.at("envoy.yaml"), { listenPort, adminPort });
  const beganMs = performance.now();
  await using epochd = startEpochd({
    envoyPath: envoyPath(),
    bootstrapPath,
    directory,
    program,
    drainTimeMs: 1_000,
    parentShutdownTimeMs: 2_000,
    extraArguments: ["--watch-binary"],
  });
  await act(epochd, beganMs);
}
