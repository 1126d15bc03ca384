// Owns: whether a ready marker says "ready": by its age against the wall clock; probe.c has the same. Must not:
// read what is in it.

import { errorWords, futureMs } from "./words.ts";

export interface Question {
  readonly path: string;
  readonly maxAgeMs: number;
  /** Unix milliseconds. */
  readonly nowMs: number;
}

/** One line why not ready, or undefined when it is. */
export function judge({ path, maxAgeMs, nowMs }: Question): string | undefined {
  let info: Deno.FileInfo;
  try {
    info = Deno.statSync(path);
  } catch (error) {
    if (error instanceof Deno.errors.NotFound) return `${path} does not exist`;
    return `${path} can't be looked at: ${wordsOf(error)}`;
  }
  if (!info.isFile) return `${path} is not a regular file`;
  // Beyond what a Date holds, all comparisons with it are false.
  const writtenMs = info.mtime?.getTime() ?? NaN;
  if (Number.isNaN(writtenMs)) return `${path} has no usable time of modification`;
  const ageMs = nowMs - writtenMs;
  if (ageMs < -futureMs) return `${path} is ${-ageMs} ms from the future`;
  if (ageMs > maxAgeMs) {
    return `${path} is too old by ${ageMs - maxAgeMs} ms: written ${ageMs} ms ago, expected ${maxAgeMs} ms at most`;
  }
  return undefined;
}

function wordsOf(error: unknown): string {
  const { code, message } = error as { readonly code?: keyof typeof errorWords; readonly message?: string };
  const number = /\(os error (\d+)\)/.exec(message ?? "")?.[1];
  return code !== undefined && code in errorWords ? errorWords[code] : `error ${number ?? String(error)}`;
}
