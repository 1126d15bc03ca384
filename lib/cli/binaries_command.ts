// Owns: `epochd binaries`: what was pushed, and which of it runs. Must not: change any.

import { connectTo } from "../api/client.ts";
import type { SlotInfo } from "../runtime/binaries.ts";
import { exitCode } from "./exit_code.ts";
import { reportFailure } from "./failure.ts";
import { chooseService } from "./restart_command.ts";
import { alignedRows } from "./table.ts";
import type { Terminal } from "./terminal.ts";

export interface BinariesOptions {
  readonly socket: string;
  readonly service?: string;
  readonly json: boolean;
}

export async function binariesCommand(options: BinariesOptions, terminal: Terminal): Promise<number> {
  const client = connectTo(options.socket);
  const chosen = await chooseService(client, options, terminal);
  if (typeof chosen === "number") return chosen;
  const answer = await client.binaries(chosen.service);
  if (answer.kind !== "ok") return reportFailure(answer, terminal, options.json);
  if (options.json) {
    terminal.out(`${JSON.stringify(answer.value)}\n`);
    return exitCode.ok;
  }
  const { slots, trial, installed } = answer.value;
  const rows = slots.map((slot) => [
    slot.digest.slice(0, 16),
    slot.version ?? "unknown",
    (slot.sizeBytes / 1_000_000).toFixed(1),
    new Date(slot.atMs).toISOString().slice(0, 19).replace("T", " "),
    slot.signed ? "yes" : "no",
    rolesOf(slot, trial?.to).join(", "),
  ]);
  for (const line of alignedRows([["DIGEST", "VERSION", "MB", "CAME (UTC)", "SIGNED", ""], ...rows])) {
    terminal.out(`${line.trimEnd()}\n`);
  }
  const current = slots.some((slot) => slot.current);
  terminal.out(`installed: ${installed}${current ? "" : ", which is current"}\n`);
  return exitCode.ok;
}

function rolesOf({ digest, running, current, previous }: SlotInfo, onTrial: string | undefined): readonly string[] {
  return [
    ...(running ? ["running"] : []),
    ...(current ? ["current"] : []),
    ...(previous ? ["previous"] : []),
    ...(digest === onTrial ? ["on trial"] : []),
  ];
}
