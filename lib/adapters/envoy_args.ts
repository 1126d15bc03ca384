// Owns: the argv and the environment of an epoch, and which of them a user may set. Must not: start anything.

import { ENVOY_FLAGS } from "./envoy_flags.ts";

/** What an epoch is started with beside its bootstrap; equal in every epoch of a plan. */
export interface EpochFlags {
  readonly baseId: number;
  readonly concurrency: number;
  /** Whole seconds: Envoy takes no fractions. */
  readonly drainTimeMs: number;
  readonly parentShutdownTimeMs: number;
  /** Passed on as they are, after `checkEnvoyArgs`. */
  readonly userArgs: readonly string[];
}

/** A value that can't be taken, for a message that names all three. */
export interface Problem {
  readonly field: string;
  readonly value: string;
  readonly expected: string;
}

/** The argv of epoch `epoch`, without the binary. */
export function epochArgs(flags: EpochFlags, epoch: number, bootstrapPath: string): string[] {
  const args = ["-c", bootstrapPath, "--restart-epoch", String(epoch), ...commonArgs(flags)];
  if (!hasFlag(flags.userArgs, "--log-format")) args.push("--log-format", defaultLogFormat(epoch));
  // A parent that ends between verification and attach would abort epoch N and poison the segment (1.38 to 1.40).
  if (epoch > 0) args.push("--skip-hot-restart-on-no-parent");
  return [...args, ...flags.userArgs];
}

/** As Envoy's own hot-restarter sets it; bootstraps and wrappers read it. */
export function epochEnv(epoch: number): Record<string, string> {
  return { RESTART_EPOCH: String(epoch) };
}

/** The argv that validates what `epochArgs` would run: the log goes to stderr, so that the reason can be read there. */
export function validateArgs(flags: EpochFlags, bootstrapPath: string): string[] {
  const quiet = new Set([
    "--log-path",
    "--log-format",
    "--log-format-escaped",
    "-l",
    "--log-level",
    "--component-log-level",
  ]);
  const kept = splitArgs(flags.userArgs).filter((item) => !quiet.has(item.flag)).flatMap((item) => item.items);
  return [
    "--mode",
    "validate",
    "-c",
    bootstrapPath,
    ...commonArgs(flags),
    "-l",
    "warning",
    "--log-format",
    "%v",
    ...kept,
  ];
}

/** Everything but the epoch's number and the bootstrap: equal texts are equal Envoys. */
export function argsIdentity(flags: EpochFlags): string {
  return JSON.stringify([...commonArgs(flags), ...flags.userArgs]);
}

/** Values of `flag` as the user gave it. */
export function flagValue(userArgs: readonly string[], flag: string): string | undefined {
  return splitArgs(userArgs).find((item) => item.flag === flag)?.value;
}

/** The first user argument that epochd or Envoy would refuse. */
export function checkEnvoyArgs(userArgs: readonly string[]): Problem | undefined {
  const seen = new Set<string>();
  for (const { flag, value, items } of splitArgs(userArgs)) {
    const given = items.join(" ");
    const problem = (expected: string): Problem => ({ field: "--envoy-arg", value: given, expected });
    if (flag === "--" || flag === "--ignore_rest") return problem("no end of flags: Envoy would ignore the rest");
    if (!flag.startsWith("-")) return problem("a flag of Envoy, or the value after one that takes a value");
    const equals = flag.indexOf("=");
    if (equals > 0) {
      const [name, rest] = [flag.slice(0, equals), flag.slice(equals + 1)];
      return problem(
        ENVOY_FLAGS[name]?.reserved ?? `flag and value as two items: --envoy-arg=${name} --envoy-arg=${rest}`,
      );
    }
    const known = ENVOY_FLAGS[flag];
    if (known?.reserved !== undefined) return problem(known.reserved);
    if (known?.takesValue === true && value === undefined) return problem(`a value after ${flag}`);
    const name = known?.alias ?? flag;
    if (seen.has(name) && known?.repeatable !== true) return problem(`${flag} once: Envoy refuses a repeated flag`);
    seen.add(name);
  }
  return undefined;
}

/** One flag, with its value where it takes one. */
interface Item {
  readonly flag: string;
  readonly value?: string;
  readonly items: readonly string[];
}

/**
 * As Envoy's parser (TCLAP) reads it, 1.38 to 1.40: a flag that takes a value takes the next item whatever it looks like, and an
 * item `--flag value` with a blank inside is flag and value too.
 */
function splitArgs(args: readonly string[]): Item[] {
  const found: Item[] = [];
  for (let i = 0; i < args.length; i++) {
    const item = args[i] ?? "";
    const blank = item.startsWith("-") ? item.indexOf(" ") : -1;
    if (blank > 0) {
      found.push({ flag: item.slice(0, blank), value: item.slice(blank + 1), items: [item] });
      continue;
    }
    const next = args[i + 1];
    const takesValue = ENVOY_FLAGS[item]?.takesValue ??
      (item.startsWith("-") && !item.includes("=") && next !== undefined && !next.startsWith("-"));
    if (takesValue && next !== undefined) {
      found.push({ flag: item, value: next, items: [item, next] });
      i++;
    } else found.push({ flag: item, items: [item] });
  }
  return found;
}

function hasFlag(args: readonly string[], flag: string): boolean {
  return splitArgs(args).some((item) => item.flag === flag);
}

function commonArgs(flags: EpochFlags): string[] {
  return [
    ...["--base-id", String(flags.baseId), "--concurrency", String(flags.concurrency)],
    ...["--drain-time-s", String(Math.floor(flags.drainTimeMs / 1000))],
    ...["--parent-shutdown-time-s", String(Math.floor(flags.parentShutdownTimeMs / 1000))],
  ];
}

/** Envoy's default and the epoch: all epochs write to one stderr. */
function defaultLogFormat(epoch: number): string {
  return `[%Y-%m-%d %T.%e][epoch ${epoch}][%t][%l][%n] [%g:%#] %v`;
}
