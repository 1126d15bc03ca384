// Owns: what a load generator has written down, read: its answers one by one, and what it says of errors. Must not: run one.
import type { Answer } from "./timeline.ts";

export interface LoadLog {
  readonly answers: readonly Answer[];
  readonly wrong: readonly { readonly sentAtMs: number; readonly atMs: number; readonly status: number }[];
  readonly toldToGo: number;
}

/** Lines `begin (us)  status  duration (us)  told to go`; one that was cut in the middle is not counted. */
export function parseLog(text: string): LoadLog {
  const answers: Answer[] = [];
  const wrong: { sentAtMs: number; atMs: number; status: number }[] = [];
  let toldToGo = 0;
  for (const line of text.split("\n")) {
    const fields = line.split("\t").map(Number);
    if (fields.length !== 4 || fields.some(Number.isNaN)) continue;
    const [sentUs, status, tookUs, told] = fields as [number, number, number, number];
    const [sentAtMs, tookMs] = [sentUs / 1000, tookUs / 1000];
    const atMs = sentAtMs + tookMs;
    if (status === 200) answers.push({ atMs, tookMs });
    else wrong.push({ sentAtMs, atMs, status });
    toldToGo += told;
  }
  return { answers, wrong, toldToGo };
}

export interface LoadErrors {
  readonly refused: number;
  readonly reset: number;
  readonly unanswered: number;
}

/** wrk's last words. A connection that could not be made is told as `connect` or, where that is seen late, as `write`. */
export function parseWrkErrors(text: string): LoadErrors {
  const match = /Socket errors: connect (\d+), read (\d+), write (\d+), timeout (\d+)/.exec(text);
  const [connect = 0, read = 0, write = 0, timeout = 0] = (match ?? []).slice(1).map(Number);
  return { refused: connect + write, reset: read, unanswered: timeout };
}
