// Owns: `epochd restart`: ask for a new epoch, and with --wait see it through. Must not: decide what may be restarted.

import { type Client, connectTo, type EventStream } from "../api/client.ts";
import { followRequest, type Outcome } from "../api/outcome.ts";
import { oneLine, plural, showMs } from "../observe/words.ts";
import { exitCode } from "./exit_code.ts";
import { reportFailure } from "./failure.ts";
import { followPhases } from "./phases.ts";
import { openProgress } from "./progress.ts";
import { painter, type Terminal } from "./terminal.ts";

export interface RestartOptions {
  readonly socket: string;
  /** Absent: the only one there is. */
  readonly service?: string;
  readonly wait?: "live" | "drained";
  readonly force: boolean;
  /** Without a handoff. */
  readonly drained: boolean;
  /** Only with `drained`: what it would cut. */
  readonly dryRun: boolean;
  readonly json: boolean;
}

export async function restartCommand(options: RestartOptions, terminal: Terminal): Promise<number> {
  if (options.dryRun && !options.drained) {
    terminal.err("error: --dry-run is for --drained, a hot restart ends no connection\n");
    return exitCode.usage;
  }
  const client = connectTo(options.socket);
  const chosen = await chooseService(client, options, terminal);
  if (typeof chosen === "number") return chosen;
  if (options.drained) {
    const refused = await tellPlan(client, chosen.service, options, terminal);
    if (refused !== undefined) return refused;
    if (options.dryRun) return exitCode.ok;
  }
  if (options.wait === undefined) return await ask(client, chosen.service, options, terminal);
  // Subscribed before the request, or its first steps would be missed.
  const events = await client.events();
  if (events.kind !== "ok") return reportFailure(events, terminal, options.json);
  try {
    return await askAndFollow(client, chosen.service, options.wait, options, events.value, terminal);
  } finally {
    events.value.close();
  }
}

/** The one that was named, or the only one there is. */
export async function chooseService(
  client: Client,
  options: { readonly service?: string; readonly json: boolean },
  terminal: Terminal,
): Promise<{ readonly service: string } | number> {
  if (options.service !== undefined) return { service: options.service };
  const status = await client.status();
  if (status.kind !== "ok") return reportFailure(status, terminal, options.json);
  const services = Object.keys(status.value.services);
  if (services.length === 1) return { service: services[0]! };
  terminal.err(`error: several services run, expected --service and one of: ${services.join(", ")}\n`);
  return exitCode.usage;
}

/** Before anything is asked for: who pays for it. */
export async function tellPlan(
  client: Client,
  service: string,
  options: { readonly json: boolean; readonly dryRun?: boolean },
  terminal: Terminal,
): Promise<number | undefined> {
  const plan = await client.planRestart(service);
  if (plan.kind !== "ok") return reportFailure(plan, terminal, options.json);
  if (options.json) {
    if (options.dryRun) terminal.out(`${JSON.stringify(plan.value)}\n`);
    return undefined;
  }
  const { connections, drainTimeMs } = plan.value;
  const held = connections === undefined ? "an unknown number of connections" : plural(connections, "connection");
  const given = drainTimeMs === undefined ? "the drain time" : showMs(drainTimeMs);
  terminal.out(
    `a drained restart of ${service} ends ${held}, given ${given} to leave; until the new Envoy is LIVE nobody is served\n`,
  );
  return undefined;
}

async function ask(client: Client, service: string, options: RestartOptions, terminal: Terminal): Promise<number> {
  const answer = await client.restart(service, { wait: "accepted", force: options.force, drained: options.drained });
  if (answer.kind !== "ok") return reportFailure(answer, terminal, options.json);
  const { request } = answer.value;
  terminal.out(
    options.json ? `${JSON.stringify(answer.value)}\n` : `accepted: service ${service}, request ${request}\n`,
  );
  return exitCode.ok;
}

async function askAndFollow(
  client: Client,
  service: string,
  wait: "live" | "drained",
  options: RestartOptions,
  events: EventStream,
  terminal: Terminal,
): Promise<number> {
  const answer = await client.restart(service, { wait: "accepted", force: options.force, drained: options.drained });
  if (answer.kind !== "ok") return reportFailure(answer, terminal, options.json);
  return await seeThrough(service, answer.value.request, wait, { ...options, events }, terminal);
}

export interface SeeThrough {
  readonly socket: string;
  readonly json: boolean;
  readonly events: EventStream;
  /** Without a handoff: nobody is left that drains. */
  readonly drained?: boolean;
  /** What programs are told besides. */
  readonly also?: Readonly<Record<string, unknown>>;
}

/** Shows a request's steps as they happen, and its outcome; resolves to the exit code. */
export async function seeThrough(
  service: string,
  request: string,
  wait: "live" | "drained",
  options: SeeThrough,
  terminal: Terminal,
): Promise<number> {
  const outcomeOf = followRequest(service, request, wait);
  const phaseOf = followPhases(service, request);
  const progress = options.json ? undefined : openProgress(terminal);
  let outcome: Outcome | undefined;
  for await (const record of options.events.records) {
    const phase = phaseOf(record);
    if (phase !== undefined) progress?.step(phase.done, phase.next);
    outcome = outcomeOf(record);
    if (outcome !== undefined) break;
  }
  progress?.end();
  return report(service, request, outcome, options, terminal);
}

function report(
  service: string,
  request: string,
  outcome: Outcome | undefined,
  options: SeeThrough,
  terminal: Terminal,
): number {
  const paint = painter(terminal.colour);
  if (outcome === undefined) {
    const why = `the supervisor at ${options.socket} ended before request ${request} had an outcome`;
    return reportFailure({ kind: "absent", why }, terminal, options.json);
  }
  if (outcome.kind === "refused") {
    const { name, detail } = outcome.refusal;
    if (options.json) {
      terminal.out(
        `${JSON.stringify({ service, request, ...options.also, outcome: "refused", refusal: name, detail })}\n`,
      );
    }
    terminal.err(`${paint("red", "refused")} (${name}): ${oneLine(detail)}\n`);
    return exitCode.refused;
  }
  const { kind, ...values } = outcome;
  if (options.json) {
    terminal.out(`${JSON.stringify({ service, request, ...options.also, outcome: kind, ...values })}\n`);
  } else if (outcome.kind === "live") {
    const before = `epoch ${outcome.from} ${options.drained === true ? "has ended before it" : "drains"}`;
    const what = `epoch ${outcome.to} is LIVE after ${showMs(outcome.tookMs)}, ${before}`;
    terminal.out(`${paint("green", "done")}: ${what}\n`);
  } else if (outcome.kind === "drained") {
    terminal.out(`${paint("green", "done")}: epoch ${outcome.to} serves, epoch ${outcome.from} has ended\n`);
  }
  return exitCode.ok;
}
