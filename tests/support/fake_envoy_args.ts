// Owns: Envoy's command line as far as supervisors use it, with Envoy's strictness. Must not act on it.

export interface FakeFlags {
  readonly configPath: string | undefined;
  readonly baseId: number;
  readonly epoch: number;
  readonly concurrency: number;
  readonly drainTimeS: number;
  readonly parentShutdownTimeS: number;
  readonly skipOnNoParent: boolean;
}

export type ParsedArguments =
  | { readonly kind: "ok"; readonly flags: FakeFlags }
  | { readonly kind: "validate"; readonly configPath: string | undefined }
  | { readonly kind: "version"; readonly hotRestart: boolean }
  | { readonly kind: "usage"; readonly argument: string; readonly problem: string };

// From `envoy --help` of 1.40.0.
const WITH_VALUE = new Set([
  ...["-c", "-l", "--admin-address-path", "--base-id", "--base-id-path", "--component-log-level", "--concurrency"],
  ...["--config-path", "--config-yaml", "--disable-extensions", "--drain-strategy", "--drain-time-s"],
  ...["--file-flush-interval-msec", "--file-flush-min-size-kb", "--local-address-ip-version", "--log-format"],
  ...["--log-level", "--log-path", "--mode", "--parent-shutdown-time-s", "--restart-epoch", "--service-cluster"],
  ...["--service-node", "--service-zone", "--socket-mode", "--socket-path", "--stats-tag"],
]);
const SWITCHES = new Set([
  ...["--allow-unknown-fields", "--allow-unknown-static-fields", "--cpuset-threads", "--disable-hot-restart"],
  ...["--enable-core-dump", "--enable-fine-grain-logging", "--enable-mutex-tracing", "--hot-restart-version"],
  ...["--ignore-unknown-dynamic-fields", "--log-format-escaped", "--log-stacktrace-single-entry"],
  ...["--reject-unknown-dynamic-fields", "--skip-deprecated-logs", "--skip-hot-restart-on-no-parent"],
  ...["--skip-hot-restart-parent-stats", "--use-dynamic-base-id", "--version"],
]);
const LONG_NAMES: Readonly<Record<string, string>> = { "-c": "--config-path", "-l": "--log-level" };
const REPEATABLE = new Set(["--stats-tag"]);

export function parseArguments(argv: readonly string[]): ParsedArguments {
  const given = new Map<string, string>();
  for (let at = 0; at < argv.length; at++) {
    const argument = argv[at] ?? "";
    const name = LONG_NAMES[argument] ?? argument;
    const takesValue = WITH_VALUE.has(argument);
    if (!takesValue && !SWITCHES.has(argument)) {
      return { kind: "usage", argument, problem: "Couldn't find match for argument" };
    }
    if (given.has(name) && !REPEATABLE.has(name)) {
      return { kind: "usage", argument: `(${name})`, problem: "Argument already set!" };
    }
    const value = takesValue ? argv[++at] : "";
    if (value === undefined) return { kind: "usage", argument, problem: "Missing a value for this argument!" };
    given.set(name, value);
  }
  if (given.has("--hot-restart-version")) return { kind: "version", hotRestart: true };
  if (given.has("--version")) return { kind: "version", hotRestart: false };
  const configPath = given.get("--config-path");
  if (given.get("--mode") === "validate") return { kind: "validate", configPath };
  const number = (name: string, otherwise: number) => Number(given.get(name) ?? otherwise);
  return {
    kind: "ok",
    flags: {
      configPath,
      baseId: number("--base-id", 0),
      epoch: number("--restart-epoch", 0),
      concurrency: number("--concurrency", navigator.hardwareConcurrency),
      drainTimeS: number("--drain-time-s", 600),
      parentShutdownTimeS: number("--parent-shutdown-time-s", 900),
      skipOnNoParent: given.has("--skip-hot-restart-on-no-parent"),
    },
  };
}

export function usageError({ argument, problem }: Extract<ParsedArguments, { kind: "usage" }>): string {
  return `PARSE ERROR: Argument: ${argument}\n             ${problem}\n\n${argument} -- ${problem}`;
}
