// Owns: the probe's answer: exit code and one line. Must not: do more than that.

import { runtime, version } from "../observe/version.ts";
import { parseArguments } from "./arguments.ts";
import { judge } from "./judge.ts";
import { help } from "./words.ts";

export interface ProbeAnswer {
  readonly exitCode: 0 | 1 | 2;
  readonly stdout: string;
  readonly stderr: string;
}

export function probe(args: readonly string[], nowMs: number): ProbeAnswer {
  const parsed = parseArguments(args);
  switch (parsed.kind) {
    case "help":
      return { exitCode: 0, stdout: help, stderr: "" };
    case "version":
      return { exitCode: 0, stdout: `epochd-probe ${version} (${runtime})\n`, stderr: "" };
    case "misuse":
      return { exitCode: 2, stdout: "", stderr: `error: ${oneLine(parsed.problem)}\n` };
    case "probe": {
      const why = judge({ path: parsed.path, maxAgeMs: parsed.maxAgeMs, nowMs });
      if (why === undefined) return { exitCode: 0, stdout: "", stderr: "" };
      return { exitCode: 1, stdout: `not ready: ${oneLine(why)}\n`, stderr: "" };
    }
  }
}

/** A path may hold anything; kubelet shows the answer as an event. */
function oneLine(text: string): string {
  return text.replaceAll(/\p{Cc}+/gu, " ");
}
