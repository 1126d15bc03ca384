// Owns: `epochd status --watch`: the status drawn anew on a terminal, and a line for each change elsewhere. Must not: ask more than
// once a second, or after what changed.

import { type Client, connectTo, type History, type PastHandoff } from "../api/client.ts";
import { type ServiceStatus, standingRefusals } from "../core/status.ts";
import type { Census } from "../observe/observed.ts";
import { oneLine, showMs } from "../observe/words.ts";
import type { SupervisorStatus } from "../runtime/control.ts";
import { exitCode } from "./exit_code.ts";
import { reportFailure } from "./failure.ts";
import { type Interrupt, onInterrupt } from "./interrupt.ts";
import type { StatusOptions } from "./status_command.ts";
import { connectionsOf, statusText } from "./status_text.ts";
import { alignedRows } from "./table.ts";
import { type Paint, painter, type Terminal } from "./terminal.ts";

const everyMs = 1_000;
const shownHandoffs = 8;
/** The ledger closes an entry a moment after the status has changed. */
const SETTLES_MS = 3_000;

export async function watchStatus(options: StatusOptions, terminal: Terminal): Promise<number> {
  const client = connectTo(options.socket);
  const first = await client.status({ connections: true });
  if (first.kind !== "ok") return reportFailure(first, terminal, options.json);
  const show = options.json ? jsonLines(terminal) : terminal.interactive ? screen(terminal) : plainLines(terminal);
  const bell = openBell();
  const interrupt = onInterrupt(() => bell.ring());
  const changes = followChanges(client, () => bell.ring());
  try {
    return await watch(client, show, bell, interrupt, options, terminal);
  } finally {
    changes.close();
    interrupt.end();
    show.end();
  }
}

async function watch(
  client: Client,
  show: Show,
  bell: Bell,
  interrupt: Interrupt,
  { json }: StatusOptions,
  terminal: Terminal,
): Promise<number> {
  let history: History = { handoffs: [], configurations: [] };
  let handoffs = "";
  let historyUntilMs = 0;
  for (;;) {
    const answer = await client.status({ connections: true });
    if (answer.kind === "problem") return reportFailure(answer, terminal, json);
    if (answer.kind === "ok") {
      const now = JSON.stringify(
        Object.values(answer.value.services).map((service) => [service.handoffs, service.step]),
      );
      if (now !== handoffs) historyUntilMs = performance.now() + SETTLES_MS;
      handoffs = now;
      if (performance.now() < historyUntilMs) {
        const past = await client.history();
        if (past.kind === "ok") history = past.value;
      }
      show.status(answer.value, history.handoffs.slice(0, shownHandoffs));
    } else if (!terminal.interactive || json) {
      terminal.err("the supervisor has ended\n");
      return exitCode.ok;
    } else show.absent(answer.why);
    if (!interrupt.wasAsked && terminal.isGone !== true) await bell.wait(everyMs);
    if (interrupt.wasAsked || terminal.isGone === true) return exitCode.ok;
  }
}

interface Bell {
  ring(): void;
  /** Until it rings, or the time is over; what rang meanwhile counts. */
  wait(boundMs: number): Promise<void>;
}

function openBell(): Bell {
  let rang = false;
  let wake = () => {};
  return {
    ring() {
      rang = true;
      wake();
    },
    async wait(boundMs) {
      if (!rang) {
        await new Promise<void>((resolve) => {
          const timer = setTimeout(resolve, boundMs);
          wake = () => {
            clearTimeout(timer);
            resolve();
          };
        });
      }
      rang = false;
    },
  };
}

/** Rings at each event, and opens the stream again while there is a supervisor. */
function followChanges(client: Client, ring: () => void): { close(): void } {
  let closed = false;
  let close = () => {};
  void (async () => {
    while (!closed) {
      const events = await client.events();
      if (events.kind === "ok") {
        close = () => events.value.close();
        if (closed) close();
        for await (const _ of events.value.records) ring();
      }
      if (!closed) await new Promise((resolve) => setTimeout(resolve, everyMs));
    }
  })();
  return {
    close() {
      closed = true;
      close();
    },
  };
}

interface Show {
  status(status: SupervisorStatus, handoffs: readonly PastHandoff[]): void;
  absent(why: string): void;
  end(): void;
}

function jsonLines(terminal: Terminal): Show {
  return {
    status: (status) => terminal.out(`${JSON.stringify(status)}\n`),
    absent: () => {},
    end: () => {},
  };
}

/** The alternate screen, without a cursor and without wrapping. */
function screen(terminal: Terminal): Show {
  const paint = painter(terminal.colour);
  terminal.out("\x1b[?1049h\x1b[?25l\x1b[?7l");
  const draw = (text: string) => {
    const rows = consoleRows();
    const lines = text.trimEnd().split("\n").slice(0, rows).map((line) => `${line}\x1b[K`);
    terminal.out(`\x1b[H${lines.join("\r\n")}\x1b[J`);
  };
  return {
    status: (status, handoffs) =>
      draw(`${statusText(status, Date.now(), paint)}${countdowns(status, paint)}${handoffsText(handoffs, paint)}`),
    absent: (why) => draw(`${paint("red", "no answer")}: ${oneLine(why)}\n\nlooking again each second, Ctrl-C ends\n`),
    end: () => terminal.out("\x1b[?7h\x1b[?25h\x1b[?1049l"),
  };
}

function consoleRows(): number {
  try {
    return Math.max(5, Deno.consoleSize().rows);
  } catch {
    return 24;
  }
}

const barCells = 30;

function countdowns({ services }: SupervisorStatus, paint: Paint): string {
  return Object.entries(services).flatMap(([name, { epochs }]) =>
    epochs.filter(({ endsInMs }) => endsInMs !== undefined).map(({ epoch, endsInMs = 0 }) => {
      const wholeMs = endsInMs + (epochs.find(({ role }) => role === "newest")?.liveForMs ?? 0);
      const left = wholeMs === 0 ? 0 : Math.round(barCells * endsInMs / wholeMs);
      const bar = `${"#".repeat(left)}${".".repeat(barCells - left)}`;
      return `\n${name}: epoch ${epoch} drains  ${paint("yellow", bar)}  ends in ${showMs(endsInMs)}\n`;
    })
  ).join("");
}

function handoffsText(handoffs: readonly PastHandoff[], paint: Paint): string {
  if (handoffs.length === 0) return "";
  const rows = handoffs.map((entry) => [
    entry.beganAt.slice(11, 19),
    `${entry.service} ${entry.from} -> ${entry.to}`,
    entry.outcome.replace("_", " "),
    entry.source,
    entry.liveMs === undefined ? "-" : showMs(entry.liveMs),
    entry.drainMs === undefined ? "-" : showMs(entry.drainMs),
    entry.refusal === undefined ? "" : `${entry.refusal.name}: ${oneLine(entry.refusal.detail)}`,
  ]);
  const table = alignedRows([["UTC", "HANDOFF", "OUTCOME", "BY", "LIVE", "DRAIN", ""], ...rows]);
  return `\n${paint("bold", "last handoffs")}\n${table.map((row) => `  ${row}\n`).join("")}`;
}

/** A line where something is different from the line before; times alone are no difference. */
function plainLines(terminal: Terminal): Show {
  const before = new Map<string, string>();
  return {
    status({ services, connections = {} }) {
      for (const [name, service] of Object.entries(services)) {
        const text = summary(service, connections[name]);
        if (before.get(name) === text) continue;
        before.set(name, text);
        const ends = service.epochs.flatMap(({ epoch, endsInMs }) =>
          endsInMs === undefined ? [] : [`, epoch ${epoch} ends in ${showMs(endsInMs)}`]
        );
        terminal.out(`${new Date().toISOString()} ${name}: ${text}${ends.join("")}\n`);
      }
    },
    absent: () => {},
    end: () => {},
  };
}

function summary(service: ServiceStatus, census: Census | undefined): string {
  const { phase, step, ready, note, epochs } = service;
  const refused = standingRefusals(service);
  const each = epochs.map(({ epoch, role }) => {
    const count = census === undefined ? "" : ` (${connectionsOf(role, census)} connections)`;
    return `${role} ${epoch}${count}`;
  });
  return [
    `${phase}${step === undefined ? "" : ` (${step})`}`,
    ready ? "ready" : "not ready",
    ...each,
    ...(note === undefined ? [] : [oneLine(note)]),
    ...(refused.length === 0 ? [] : [`refused ${refused[0]!.refusal.name}`]),
  ].join(", ");
}
