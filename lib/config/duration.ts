// Owns: durations as people write them (`500ms`, `10s`, `1m30s`) and as programs count them (milliseconds).
// Must not: know which setting a duration belongs to, or import a library (the probe uses it too).

const unitMs: Readonly<Record<string, number>> = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000 };
const wholePattern = /^(?:\d+(?:\.\d+)?(?:ms|s|m|h))+$/;
const partPattern = /(\d+(?:\.\d+)?)(ms|s|m|h)/g;

/** For JSON Schema and messages. */
export const durationPattern = wholePattern;
export const durationExamples = "500ms, 10s or 1m30s";
/** A longer timer would fire at once. */
export const longestMs = 24 * unitMs.h!;

/** Whole milliseconds, or undefined where the text is no duration. A unit stands once, larger ones first. */
export function parseDurationMs(text: string): number | undefined {
  if (text === "0") return 0;
  if (!wholePattern.test(text)) return undefined;
  let totalMs = 0;
  let previousUnitMs = Infinity;
  for (const [, amount, unit] of text.matchAll(partPattern)) {
    const partUnitMs = unitMs[unit!]!;
    if (partUnitMs >= previousUnitMs) return undefined;
    previousUnitMs = partUnitMs;
    totalMs += Number(amount) * partUnitMs;
  }
  const rounded = Math.round(totalMs);
  // 0.1 + 0.2 is no reason to refuse; half a millisecond is.
  return Math.abs(rounded - totalMs) < 1e-6 ? rounded : undefined;
}

/** The shortest text that parses to the same: `90000` is `1m30s`. */
export function formatDuration(ms: number): string {
  if (ms === 0) return "0s";
  let rest = ms;
  let text = "";
  for (const unit of ["h", "m", "s", "ms"]) {
    const amount = Math.floor(rest / unitMs[unit]!);
    if (amount > 0) text += `${amount}${unit}`;
    rest -= amount * unitMs[unit]!;
  }
  return text;
}
