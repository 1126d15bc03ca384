// Owns: the command line of the drop meter. Must not: run anything.
import { parseArgs } from "node:util";
import { ENVOY_VERSIONS, type EnvoyVersion, NEWEST_ENVOY } from "../../tests/support/envoys.ts";
import type { Scenario } from "./meter_report.ts";
import { peerProblem, PLACEHOLDERS } from "./peer_command.ts";

export const SCENARIOS: readonly Scenario[] = ["restart", "upgrade", "roll", "stop"];

export interface MeterOptions {
  readonly scenarios: readonly Scenario[];
  readonly envoy: EnvoyVersion;
  readonly peer?: string;
  /** Without epochd beside it. */
  readonly peerOnly: boolean;
  readonly handoffs: number;
  readonly rolls: number;
  readonly requestsPerSecond: number;
  readonly drainTimeMs: number;
  readonly parentShutdownTimeMs: number;
  readonly program: "dist" | "source";
}

export interface CommandLine extends MeterOptions {
  readonly json?: string;
  readonly out?: string;
}

export const DEFAULTS: MeterOptions = {
  scenarios: SCENARIOS,
  envoy: NEWEST_ENVOY,
  peerOnly: false,
  handoffs: 20,
  rolls: 5,
  requestsPerSecond: 2_000,
  drainTimeMs: 3_000,
  parentShutdownTimeMs: 5_000,
  program: "dist",
};

export const USAGE = `epochd-bench [SCENARIO]... [FLAG]...

Holds clients of twelve kinds across every change of a supervised Envoy, and counts what is dropped.

scenarios (default: all): ${SCENARIOS.join(", ")}; a peer has no roll
  --envoy VERSION          ${ENVOY_VERSIONS.join(", ")} (default ${DEFAULTS.envoy}; upgrade takes all of them)
  --handoffs NUMBER        restarts in place (default ${DEFAULTS.handoffs})
  --rolls NUMBER           rolls from supervisor to supervisor (default ${DEFAULTS.rolls})
  --rate NUMBER            requests a second of the load beside the held clients (default ${DEFAULTS.requestsPerSecond})
  --drain SECONDS          Envoy's drain time (default ${DEFAULTS.drainTimeMs / 1000})
  --parent-shutdown SECONDS  when a predecessor ends, more than the drain time (default ${
  DEFAULTS.parentShutdownTimeMs / 1000
})
  --peer COMMAND           measure another supervisor in the same run, one that restarts on SIGHUP: a simple command of the
                           shell with {${PLACEHOLDERS.join("}, {")}}; the same values are in its environment as
                           METER_ENVOY, METER_BOOTSTRAP, ...
  --peer-only              the peer alone, without epochd beside it
  --program dist|source    which epochd (default dist, compiled first)
  --out DIRECTORY          where report.md, report.json and the plots go (default: bench/meter, if all scenarios are asked for)
  --json FILE              the report as JSON, there too
`;

/** An error is one line: flag, value, what is expected. */
export function parseCommandLine(args: readonly string[]): CommandLine | { readonly error: string } | "help" {
  const text = { type: "string" } as const;
  const flags = {
    "envoy": text,
    "handoffs": text,
    "rolls": text,
    "rate": text,
    "drain": text,
    "parent-shutdown": text,
    "peer": text,
    "peer-only": { type: "boolean" },
    "program": text,
    "out": text,
    "json": text,
    "help": { type: "boolean", short: "h" },
  } as const;
  let parsed;
  try {
    parsed = parseArgs({ args: [...args], options: flags, allowPositionals: true, strict: true });
  } catch (error) {
    const name = /'(-[^' ]*)/.exec((error as Error).message)?.[1] ?? args.join(" ");
    const isKnown = Object.hasOwn(flags, name.replace(/^--/, "").split("=")[0]!);
    return { error: isKnown ? `${name}: a value is missing or too much` : `${name}: unknown flag (--help lists them)` };
  }
  const { values, positionals } = parsed;
  if (values.help) return "help";
  const strange = positionals.find((name) => !(SCENARIOS as readonly string[]).includes(name));
  if (strange !== undefined) return { error: `${strange}: unknown scenario, expected ${SCENARIOS.join(", ")}` };
  const { envoy = DEFAULTS.envoy, program = DEFAULTS.program, peer, out, json } = values;
  if (!isVersion(envoy)) return { error: `--envoy ${envoy}: expected ${ENVOY_VERSIONS.join(", ")}` };
  if (program !== "dist" && program !== "source") return { error: `--program ${program}: expected dist or source` };
  const problem = peer === undefined ? undefined : peerProblem(peer);
  if (problem !== undefined) return { error: `--peer '${peer}': ${problem}, known are {${PLACEHOLDERS.join("}, {")}}` };
  const peerOnly = values["peer-only"] ?? false;
  if (peerOnly && peer === undefined) return { error: "--peer-only: expected a --peer beside it" };
  const numbers = {
    handoffs: numberOf("handoffs", values.handoffs, DEFAULTS.handoffs, 1, 10_000),
    rolls: numberOf("rolls", values.rolls, DEFAULTS.rolls, 1, 1_000),
    requestsPerSecond: numberOf("rate", values.rate, DEFAULTS.requestsPerSecond, 50, 5_000),
    drainS: numberOf("drain", values.drain, DEFAULTS.drainTimeMs / 1000, 1, 3_600),
    parentShutdownS: numberOf(
      "parent-shutdown",
      values["parent-shutdown"],
      DEFAULTS.parentShutdownTimeMs / 1000,
      2,
      7_200,
    ),
  };
  const wrong = Object.values(numbers).find((number) => typeof number === "string");
  if (typeof wrong === "string") return { error: wrong };
  const { handoffs, rolls, requestsPerSecond, drainS, parentShutdownS } = numbers as Record<
    keyof typeof numbers,
    number
  >;
  if (parentShutdownS <= drainS) {
    return { error: `--parent-shutdown ${parentShutdownS}: expected more than the drain time, ${drainS}` };
  }
  return {
    scenarios: positionals.length === 0 ? SCENARIOS : SCENARIOS.filter((name) => positionals.includes(name)),
    envoy,
    peerOnly,
    program,
    handoffs,
    rolls,
    requestsPerSecond,
    drainTimeMs: 1000 * drainS,
    parentShutdownTimeMs: 1000 * parentShutdownS,
    ...(peer !== undefined && { peer }),
    ...(out !== undefined && { out }),
    ...(json !== undefined && { json }),
  };
}

function isVersion(text: string): text is EnvoyVersion {
  return (ENVOY_VERSIONS as readonly string[]).includes(text);
}

function numberOf(
  flag: string,
  text: string | undefined,
  otherwise: number,
  least: number,
  most: number,
): number | string {
  if (text === undefined) return otherwise;
  const value = /^\d+$/.test(text) ? Number(text) : NaN;
  return value >= least && value <= most
    ? value
    : `--${flag} ${text}: expected a whole number from ${least} to ${most}`;
}
