// Owns: the words and numbers that both forms of the probe share; tools/native_probe.ts makes a C header of them.
// Must not: import more than durations' examples.

import { durationExamples } from "../config/duration.ts";

export const help = `Usage: epochd-probe --ready-marker FILE [--max-age 10s]

Says whether the ready marker that \`epochd run --ready-marker FILE\` keeps fresh is fresh.

Options:
  --ready-marker FILE   the file to judge, by its time of modification
  --max-age DURATION    older than this is not ready (default 10s)
  --version, --help

Exit codes: 0 ready, 1 not ready (one line says why), 2 misuse.
`;

export const defaultMaxAge = "10s";
export const maxAgeExpected = `: expected a duration over 0 such as ${durationExamples}`;
export const pathMissing = "--ready-marker is missing: expected the file that epochd run keeps fresh";

/** A clock that was set back a little is no reason to take a pod out; a marker of tomorrow is. */
export const futureMs = 2_000;

/** By the kernel's names; of any other error the number is told. */
export const errorWords = {
  EACCES: "permission denied",
  ENOTDIR: "a file stands where a directory should",
  ENAMETOOLONG: "the name is too long",
  ELOOP: "too many symbolic links",
} as const;
