// Owns: the table of Envoy's flags (1.38 to 1.40) as epochd needs to know them. Must not: decide.

export interface EnvoyFlag {
  readonly takesValue: boolean;
  readonly repeatable?: boolean;
  /** The same flag's other name. */
  readonly alias?: string;
  /** epochd sets it, or it would end hot restart: what to do instead. */
  readonly reserved?: string;
}

const use = (flag: string) => `epochd's own ${flag}`;
const never = (why: string) => `no such flag: ${why}`;

const SWITCHES = [
  "--allow-unknown-fields",
  "--allow-unknown-static-fields",
  "--cpuset-threads",
  "--enable-core-dump",
  "--enable-fine-grain-logging",
  "--enable-mutex-tracing",
  "--ignore-unknown-dynamic-fields",
  "--log-format-escaped",
  "--log-stacktrace-single-entry",
  "--reject-unknown-dynamic-fields",
  "--skip-deprecated-logs",
];

const VALUES = [
  "--admin-address-path",
  "--component-log-level",
  "--config-yaml",
  "--disable-extensions",
  "--drain-strategy",
  "--file-flush-interval-msec",
  "--file-flush-min-size-kb",
  "--local-address-ip-version",
  "--log-format",
  "--log-path",
  "--service-cluster",
  "--service-node",
  "--service-zone",
  "--socket-mode",
];

const RESERVED: Readonly<Record<string, readonly [takesValue: boolean, reserved: string]>> = {
  "-c": [true, use("--envoy-config")],
  "--config-path": [true, use("--envoy-config")],
  "--base-id": [true, use("--base-id")],
  "--concurrency": [true, use("--concurrency")],
  "--drain-time-s": [true, use("--drain-time")],
  "--parent-shutdown-time-s": [true, use("--parent-shutdown-time")],
  "--restart-epoch": [true, never("epochd numbers the epochs")],
  "--mode": [true, never("epochd runs Envoy to serve, and validates by itself")],
  "--base-id-path": [true, use("--base-id")],
  "--use-dynamic-base-id": [false, use("--base-id")],
  "--disable-hot-restart": [false, never("without hot restart there is nothing for epochd to do")],
  "--skip-hot-restart-on-no-parent": [false, never("epochd sets it where it is right")],
  "--skip-hot-restart-parent-stats": [false, never("counters must go on across a handoff")],
  "--socket-path": [true, never("epochd knows epochs by Envoy's default socket names")],
  "--hot-restart-version": [false, never("it prints and exits")],
  "--version": [false, never("it prints and exits")],
  "--help": [false, never("it prints and exits")],
  "-h": [false, never("it prints and exits")],
};

export const ENVOY_FLAGS: Readonly<Record<string, EnvoyFlag>> = {
  ...Object.fromEntries(SWITCHES.map((flag) => [flag, { takesValue: false }])),
  ...Object.fromEntries(VALUES.map((flag) => [flag, { takesValue: true }])),
  ...Object.fromEntries(
    Object.entries(RESERVED).map(([flag, [takesValue, reserved]]) => [flag, { takesValue, reserved }]),
  ),
  "-l": { takesValue: true, alias: "--log-level" },
  "--log-level": { takesValue: true },
  "--stats-tag": { takesValue: true, repeatable: true },
};
