// Owns: the shape of a fault scenario, how one is performed, and the row that comes of it. Must not: know any fault.
// A test asserts on the row, the bench prints it: nothing is written twice.

import { Stage } from "./stage.ts";

export type Failure = "refused" | "reset" | "closed_early" | "timeout" | "bad_status" | "broken_stream";

export interface Scenario {
  /** Of issue 4. */
  readonly line: number;
  /** Subject and criterion: the test's name and the case's. */
  readonly name: string;
  /** Failures that the fault itself makes unavoidable (nobody is left to serve). Default: none may fail. */
  readonly mayFail?: readonly Failure[];
  /** Acts and asserts, and tells in a few words what came of it. What it starts goes through the stage. */
  readonly run: (stage: Stage) => Promise<string>;
}

export interface Row {
  readonly line: number;
  readonly name: string;
  readonly requests: number;
  readonly failed: number;
  readonly streamsBroken: number;
  readonly outcome: string;
  readonly durationMs: number;
  /** What was not as it must be, with the logs. */
  readonly error: string | undefined;
}

export const NOBODY_SERVES: readonly Failure[] = ["refused", "reset", "closed_early", "broken_stream"];

/** Never rejects: a scenario that fails is a row with an error. */
export async function perform(scenario: Scenario): Promise<Row> {
  const { line, name, mayFail = [] } = scenario;
  const startMs = performance.now();
  const stage = new Stage();
  const errors: string[] = [];
  const note = (error: unknown) => void errors.push(error instanceof Error ? error.stack ?? error.message : `${error}`);
  let outcome = "FAILED";
  try {
    outcome = await scenario.run(stage);
  } catch (error) {
    note(error);
  }
  const traffic = await stage.stopTraffic();
  for (const [kind, count] of Object.entries(traffic.failuresByKind)) {
    if ((mayFail as readonly string[]).includes(kind)) continue;
    errors.push(`${count} x ${kind}, none may be: ${JSON.stringify(traffic.failures.slice(0, 5))}`);
  }
  try {
    await stage[Symbol.asyncDispose]();
  } catch (error) {
    note(error);
  }
  const { requests, failed, streamsBroken } = traffic;
  return {
    line,
    name,
    requests,
    failed,
    streamsBroken,
    outcome: errors.length === 0 ? outcome : "FAILED",
    durationMs: Math.round(performance.now() - startMs),
    error: errors.length === 0 ? undefined : [...errors, stage.logs()].join("\n"),
  };
}

/** One test for each scenario. */
export function register(scenarios: readonly Scenario[]): void {
  for (const scenario of scenarios) {
    Deno.test(scenario.name, async () => {
      const { error } = await perform(scenario);
      if (error !== undefined) throw new Error(error);
    });
  }
}
