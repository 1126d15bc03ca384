// Owns: where the time of a handoff goes, beside a bare Envoy's start in the same run. Must not: know other scales than one listener.
import { writeBootstrap } from "../../tests/support/bootstrap.ts";
import { envoyPath } from "../../tests/support/envoys.ts";
import { startEpochd } from "../../tests/support/epochd.ts";
import { freePorts } from "../../tests/support/ports.ts";
import { tempDir } from "../../tests/support/tempdir.ts";
import { bareEnvoy } from "../handoffs.ts";
import { atMost, type Figure } from "../report.ts";
import { median, round } from "../sample.ts";
import { envoyWords, PHASES, type Phases, phasesOf } from "./seen.ts";

const ROUNDS = 8;
const OWN_MS = 20;

export async function phaseFigures(tell: (text: string) => void): Promise<Figure[]> {
  await using directory = tempDir();
  const [listenPort, adminPort] = freePorts(2) as [number, number];
  const options = { listenPort, adminPort };
  const bootstrapPath = writeBootstrap(directory.at("envoy.yaml"), options);
  await using bare = await bareEnvoy();
  await using epochd = startEpochd({
    envoyPath: envoyPath(),
    bootstrapPath,
    directory,
    program: "dist",
    drainTimeMs: 1_000,
    parentShutdownTimeMs: 2_000,
    extraArguments: ["--watch-binary"],
  });
  await epochd.waitForEvent("watch_changed", ({ subject }) => subject === "binary");
  const seen = {
    SIGHUP: [] as Phases[],
    edit: [] as Phases[],
    bare: [] as { exec: number; rest: number; ms: number }[],
  };
  for (let number = 1; number <= 2 * ROUNDS; number++) {
    const trigger = number % 2 === 1 ? "SIGHUP" : "edit";
    tell(`phases, handoff ${number} of ${2 * ROUNDS}`);
    if (trigger === "SIGHUP") {
      const beganMs = Date.now();
      const ms = await bare.next();
      const { firstAtMs, loopAtMs } = envoyWords(bare.log().split("\n"));
      seen.bare.push({ exec: firstAtMs - beganMs, rest: loopAtMs - firstAtMs, ms });
    }
    const text = trigger === "edit" ? { ...options, generation: String(number) } : undefined;
    const triggeredMs = Date.now();
    if (text === undefined) epochd.signal("SIGHUP");
    else writeBootstrap(bootstrapPath, text);
    await epochd.waitForEvent("handoff_done", ({ handoff }) => handoff === number);
    const phases = phasesOf(epochd, number, triggeredMs);
    if (phases !== undefined) seen[trigger].push(phases);
  }
  const row = (name: "SIGHUP" | "edit") => [
    name,
    ...PHASES.map((phase) => round(median(seen[name].map((phases) => phases[phase])))),
  ];
  const bareOf = (name: "exec" | "rest" | "ms") => round(median(seen.bare.map((one) => one[name])));
  const own = seen.SIGHUP.map(({ turn, preflight, fork }) => turn + preflight + fork);
  return [
    atMost({
      name: "phases of a handoff, compiled",
      how:
        "what passes between SIGHUP and the fork: epochd's own part; by the times in its log and in Envoy's, medians of " +
        `${ROUNDS} each. Without a parent that bare Envoy was LIVE after ${round(bare.coldStartMs)} ms`,
      unit: "ms",
      value: median(own),
      bound: `<= ${OWN_MS} ms`,
      table: [
        ["trigger, ms", "its turn", "preflight", "fork", "exec", "initialising", "LIVE", "drain", "end"],
        row("SIGHUP"),
        row("edit"),
        ["a bare Envoy", "", "", "", bareOf("exec"), bareOf("rest"), `${bareOf("ms")} in all`, "", ""],
      ],
    }, OWN_MS),
  ];
}
