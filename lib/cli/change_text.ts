// Owns: what became of a configuration, as people read it. Must not: ask for it, or decide the exit code.

import type { Changed } from "../api/client.ts";
import { shown } from "../config/shown_value.ts";
import { plural, showMs } from "../observe/words.ts";
import { painter, type Terminal } from "./terminal.ts";

/** What a service may carry beside its action, when its new epoch was waited for. */
interface Waited {
  readonly outcome?: string;
  readonly from?: number;
  readonly to?: number;
  readonly tookMs?: number;
}

const actions = {
  none: "as it is",
  dynamic: "takes it at once",
  hot_restart: "gets a new epoch",
  add: "is started",
  remove: "drains and ends",
} as const;

export function changeText(changed: Changed, terminal: Terminal): string {
  const paint = painter(terminal.colour);
  const { dryRun, verdict, changes, services, persisted } = changed;
  const fields = changes.map(({ field, running, asked, lifecycle }) =>
    `  ${field}: ${shown(running)} -> ${shown(asked)} (${lifecycle})`
  );
  const named = Object.entries(services).filter(([, { action }]) => action !== "none").map(([name, service]) => {
    const { outcome, from, to, tookMs } = service as Waited;
    const connections = service.connections === undefined ? "" : `, ${plural(service.connections, "connection")} open`;
    const epochs = outcome === undefined
      ? ""
      : `: epoch ${to} serves${tookMs === undefined ? "" : ` after ${showMs(tookMs)}`}${
        outcome === "drained" ? `, epoch ${from} has ended` : ""
      }`;
    return `  ${name} ${actions[service.action]}${connections}${epochs}`;
  });
  if (verdict === "unchanged") return `${paint("green", "nothing to do")}: this is what runs\n`;
  const head = dryRun
    ? `${paint("yellow", "would be taken")} (${verdict.replace("_", " ")}), nothing was changed`
    : `${paint("green", "taken")} (${verdict.replace("_", " ")})${persisted ? "" : ", not in epochd.yaml"}`;
  return `${[head, ...fields, ...named].join("\n")}\n`;
}
