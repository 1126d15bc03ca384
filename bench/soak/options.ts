// Owns: the command line of the soak. Must not: start anything.
import { parseArgs } from "node:util";
import { join, resolve } from "node:path";

export interface SoakOptions {
  readonly handoffs: number;
  /** Handoffs go on until these have been sent as well. */
  readonly requests: number;
  readonly requestsPerSecond: number;
  /** Where soak.json, soak.md and soak.svg go. */
  readonly output: string;
}

export const USAGE = `soak [--handoffs NUMBER] [--requests NUMBER] [--rate NUMBER] [--output DIRECTORY]

  --handoffs NUMBER    handoffs to make (1000)
  --requests NUMBER    requests to send; handoffs go on until then (1000 for each handoff)
  --rate NUMBER        requests a second (500)
  --output DIRECTORY   where soak.json, soak.md and soak.svg go (bench/)
`;

/** The first thing that is wrong, or what was asked for. */
export function readOptions(args: readonly string[]): SoakOptions | "help" | { readonly problem: string } {
  const known = {
    handoffs: { type: "string" },
    requests: { type: "string" },
    rate: { type: "string" },
    output: { type: "string" },
    help: { type: "boolean" },
  } as const;
  let values: { [name in keyof typeof known]?: string | boolean };
  try {
    ({ values } = parseArgs({ args: [...args], options: known }));
  } catch (error) {
    return { problem: (error as Error).message.split("\n")[0]! };
  }
  if (values.help === true) return "help";
  const problems: string[] = [];
  const number = (name: "handoffs" | "requests" | "rate", otherwise: number, most: number): number => {
    const text = values[name];
    if (text === undefined) return otherwise;
    const value = /^\d{1,9}$/.test(String(text)) ? Number(text) : NaN;
    if (!(value >= 1 && value <= most)) {
      problems.push(`--${name} is ${JSON.stringify(text)}, expected a whole number from 1 to ${most}`);
    }
    return value;
  };
  const handoffs = number("handoffs", 1_000, 1_000_000);
  const options = {
    handoffs,
    requests: number("requests", 1_000 * handoffs, 999_999_999),
    requestsPerSecond: number("rate", 500, 5_000),
    output: values.output === undefined ? join(import.meta.dirname!, "..") : resolve(String(values.output)),
  };
  return problems[0] === undefined ? options : { problem: problems[0] };
}
