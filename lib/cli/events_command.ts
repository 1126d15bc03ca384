// Owns: `epochd events`: what happened, and with --follow what happens. Must not: interpret it.

import { type Client, connectTo } from "../api/client.ts";
import { describe } from "../observe/describe.ts";
import { formatLine } from "../observe/line.ts";
import type { RecordedFact } from "../observe/record.ts";
import { exitCode } from "./exit_code.ts";
import { reportFailure } from "./failure.ts";
import { onInterrupt } from "./interrupt.ts";
import type { Terminal } from "./terminal.ts";

export interface EventsOptions {
  readonly socket: string;
  readonly follow: boolean;
  readonly json: boolean;
  /** Absent: of all. */
  readonly service?: string;
  /** At most so many of the past. */
  readonly last: number;
}

export async function eventsCommand(options: EventsOptions, terminal: Terminal): Promise<number> {
  const client = connectTo(options.socket);
  const status = await client.status();
  if (status.kind !== "ok") return reportFailure(status, terminal, options.json);
  const services = Object.keys(status.value.services);
  if (options.service !== undefined && !services.includes(options.service)) {
    terminal.err(`error: no service ${options.service}, expected one of: ${services.join(", ")}\n`);
    return exitCode.usage;
  }
  const past = await client.events({ afterSeq: 0, follow: false });
  if (past.kind !== "ok") return reportFailure(past, terminal, options.json);
  const held: RecordedFact[] = [];
  for await (const record of past.value.records) held.push(record);
  const shown = held.filter((record) => isWanted(record, options));
  // `slice(-0)` would be all of them.
  for (const record of shown.slice(Math.max(0, shown.length - options.last))) {
    terminal.out(lineOf(record, options, terminal));
  }
  if (!options.follow) return exitCode.ok;
  return await follow(client, status.value.pid, held.at(-1)?.seq ?? 0, options, terminal);
}

async function follow(
  client: Client,
  pid: number,
  first: number,
  options: EventsOptions,
  terminal: Terminal,
): Promise<number> {
  let afterSeq = first;
  let close = () => {};
  const interrupt = onInterrupt(() => close());
  try {
    for (;;) {
      const events = await client.events({ afterSeq });
      if (interrupt.wasAsked) break;
      if (events.kind !== "ok") {
        // What was followed has ended: that is how following ends, and no failure.
        if (events.kind === "absent") return over(terminal);
        return reportFailure(events, terminal, options.json);
      }
      close = () => events.value.close();
      for await (const record of events.value.records) {
        afterSeq = record.seq;
        if (isWanted(record, options)) terminal.out(lineOf(record, options, terminal));
        if (terminal.isGone === true) break;
      }
      close();
      if (interrupt.wasAsked || terminal.isGone === true) break;
      // A reader that was too slow is cut off and goes on; another supervisor is another story.
      const status = await client.status();
      if (status.kind !== "ok" || status.value.pid !== pid) return over(terminal);
      await new Promise((resolve) => setTimeout(resolve, resumeMs));
    }
    return exitCode.ok;
  } finally {
    interrupt.end();
  }
}

/** A supervisor that stops has closed its API before its process ends. */
const resumeMs = 250;

function over(terminal: Terminal): number {
  terminal.err("the supervisor has ended\n");
  return exitCode.ok;
}

function isWanted(record: RecordedFact, { service }: EventsOptions): boolean {
  return service === undefined || record.service === service;
}

/** The same as the supervisor's own log says; for programs with the number of the event. */
function lineOf({ seq, service, wallMs, fact }: RecordedFact, { json }: EventsOptions, { colour }: Terminal): string {
  const described = describe(fact);
  if (!json) return formatLine({ wallMs, event: fact.kind, service, described }, { form: "text", colour });
  const { level, message, fields } = described;
  const time = new Date(wallMs).toISOString();
  return `${JSON.stringify({ seq, time, level, event: fact.kind, service, msg: message, ...fields })}\n`;
}
