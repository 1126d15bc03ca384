// Owns: `epochd status`. Must not: change anything.

import { connectTo } from "../api/client.ts";
import { exitCode } from "./exit_code.ts";
import { reportFailure } from "./failure.ts";
import { statusText } from "./status_text.ts";
import { painter, type Terminal } from "./terminal.ts";

export interface StatusOptions {
  readonly socket: string;
  readonly json: boolean;
  readonly watch?: boolean;
}

export async function statusCommand(options: StatusOptions, terminal: Terminal): Promise<number> {
  if (options.watch === true) return await (await import("./status_watch.ts")).watchStatus(options, terminal);
  const answer = await connectTo(options.socket).status();
  if (answer.kind !== "ok") return reportFailure(answer, terminal, options.json);
  terminal.out(
    options.json
      ? `${JSON.stringify(answer.value, undefined, 2)}\n`
      : statusText(answer.value, Date.now(), painter(terminal.colour)),
  );
  return exitCode.ok;
}
