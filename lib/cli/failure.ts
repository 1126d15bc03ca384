// Owns: how a command says that the supervisor said no, or that there is none. Must not: exit.

import type { Answer } from "../api/client.ts";
import { oneLine } from "../observe/words.ts";
import { exitCode } from "./exit_code.ts";
import type { Terminal } from "./terminal.ts";

type Failed = Exclude<Answer<never>, { kind: "ok" }>;

/** The exit code that belongs to it. With `json`, programs find the same on stdout. */
export function reportFailure(failed: Failed, terminal: Terminal, json: boolean): number {
  const problem = failed.kind === "absent"
    ? { type: "urn:epochd:problem:supervisor_absent", title: "supervisor absent", detail: failed.why }
    : failed.problem;
  if (json) terminal.out(`${JSON.stringify(problem)}\n`);
  const text = failed.kind === "absent"
    ? `${failed.why}; is \`epochd run\` at work, with the same --api-socket or EPOCHD_API_SOCKET?`
    : `refused (${failed.problem.refusal ?? failed.problem.title}): ${failed.problem.detail}`;
  terminal.err(`error: ${oneLine(text)}\n`);
  return exitCode.refused;
}
