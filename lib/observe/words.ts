// Owns: how single values read in texts for people. Must not: build sentences.

import type { Exit } from "../core/epoch.ts";

/** `312 ms`, `4.5 s`, `45 s`, `1m30s`, `2h5m`. */
export function showMs(ms: number): string {
  // Bounds by what rounding makes of it: 999.7 ms would read as 1000 ms.
  if (ms < 999.5) return `${Math.round(ms)} ms`;
  if (ms < 59_950) return `${Number((ms / 1000).toFixed(1))} s`;
  const seconds = Math.round(ms / 1000);
  const [hours, minutes, rest] = [Math.floor(seconds / 3600), Math.floor(seconds / 60) % 60, seconds % 60];
  if (hours >= 48) return `${Math.floor(hours / 24)}d${hours % 24}h`;
  return hours > 0 ? `${hours}h${minutes}m` : `${minutes}m${rest}s`;
}

/** Enough of a digest to tell two apart. */
export function shortDigest(digest: string): string {
  return digest.slice(0, 12);
}

/** `<sha>/1.40.0/Clean/RELEASE/BoringSSL` is 1.40.0. */
export function envoyVersion(text: string): string {
  return text.split("/")[1] ?? text;
}

export function showExit({ code, signal }: Exit): string {
  if (code === "unknown") return "exit status unknown";
  return signal === undefined ? `exit code ${code}` : `killed by ${signal}`;
}

export function plural(count: number, one: string): string {
  return `${count} ${one}${count === 1 ? "" : "s"}`;
}

/** Text from elsewhere without what a terminal would obey: control characters and line ends become blanks. */
export function oneLine(text: string): string {
  return text.replaceAll(/[\p{Cc}\u2028\u2029]+/gu, " ");
}
