// Owns: the probe's command line; probe.c has the same. Must not: import a library: kubelet starts the probe every 2 s.

import { parseDurationMs } from "../config/duration.ts";
import { defaultMaxAge, maxAgeExpected, pathMissing } from "./words.ts";

export type Arguments =
  | { readonly kind: "probe"; readonly path: string; readonly maxAgeMs: number }
  | { readonly kind: "help" }
  | { readonly kind: "version" }
  | { readonly kind: "misuse"; readonly problem: string };

export function parseArguments(args: readonly string[]): Arguments {
  const values = new Map<string, string>();
  for (let at = 0; at < args.length; at++) {
    const argument = args[at]!;
    if (argument === "--help" || argument === "-h") return { kind: "help" };
    if (argument === "--version") return { kind: "version" };
    const equals = argument.indexOf("=");
    const flag = equals < 0 ? argument : argument.slice(0, equals);
    if (flag !== "--ready-marker" && flag !== "--max-age") return misuse(`unknown argument ${argument}`);
    if (values.has(flag)) return misuse(`${flag} stands there twice`);
    const value = equals < 0 ? args[++at] : argument.slice(equals + 1);
    if (value === undefined || value === "") return misuse(`${flag} has no value`);
    values.set(flag, value);
  }
  const path = values.get("--ready-marker");
  if (path === undefined) return misuse(pathMissing);
  const maxAge = values.get("--max-age") ?? defaultMaxAge;
  const maxAgeMs = parseDurationMs(maxAge);
  if (maxAgeMs === undefined || maxAgeMs === 0) {
    return misuse(`--max-age ${maxAge}${maxAgeExpected}`);
  }
  return { kind: "probe", path, maxAgeMs };
}

function misuse(problem: string): Arguments {
  return { kind: "misuse", problem };
}
