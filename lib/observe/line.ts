// Owns: the two forms of a log line. Must not: write or filter.

import type { Described } from "./describe.ts";
import { oneLine } from "./words.ts";

export interface LineOptions {
  readonly form: "json" | "text";
  readonly colour: boolean;
}

export interface Line {
  readonly wallMs: number;
  readonly event: string;
  readonly service?: string;
  readonly described: Described;
}

const levelWidth = 5;
const colours = { debug: "\x1b[2m", info: "\x1b[36m", warn: "\x1b[33m", error: "\x1b[31m" } as const;
const reset = "\x1b[0m";

/** With its line end; whatever the values hold, it is one line. */
export function formatLine(line: Line, { form, colour }: LineOptions): string {
  const { level, message, fields } = line.described;
  const time = new Date(line.wallMs).toISOString();
  if (form === "json") {
    return `${
      JSON.stringify({
        time,
        level,
        event: line.event,
        ...(line.service === undefined ? {} : { service: line.service }),
        msg: message,
        ...fields,
      })
    }\n`;
  }
  const name = level.toUpperCase().padEnd(levelWidth);
  const shown = colour ? `${colours[level]}${name}${reset}` : name;
  const service = line.service === undefined ? "" : `${line.service}: `;
  return `${time.slice(11, 23)} ${shown} ${service}${oneLine(message)}\n`;
}
