import { deepStrictEqual, match, notStrictEqual, strictEqual } from "node:assert/strict";
import {
  argsIdentity,
  checkEnvoyArgs,
  epochArgs,
  epochEnv,
  type EpochFlags,
  flagValue,
  validateArgs,
} from "../../../lib/adapters/envoy_args.ts";
import { ENVOY_FLAGS } from "../../../lib/adapters/envoy_flags.ts";

const flags: EpochFlags = {
  baseId: 7,
  concurrency: 2,
  drainTimeMs: 30_000,
  parentShutdownTimeMs: 45_000,
  userArgs: [],
};

function valueAfter(args: readonly string[], flag: string): string | undefined {
  return args.includes(flag) ? args[args.indexOf(flag) + 1] : undefined;
}

Deno.test("epochArgs: the argv of epoch 0, flag and value as two items", () => {
  deepStrictEqual(epochArgs(flags, 0, "/state/a.yaml"), [
    ...["-c", "/state/a.yaml", "--restart-epoch", "0", "--base-id", "7", "--concurrency", "2"],
    ...["--drain-time-s", "30", "--parent-shutdown-time-s", "45"],
    ...["--log-format", "[%Y-%m-%d %T.%e][epoch 0][%t][%l][%n] [%g:%#] %v"],
  ]);
});

Deno.test("epochArgs: a later epoch survives a parent that is gone", () => {
  strictEqual(epochArgs(flags, 0, "a.yaml").includes("--skip-hot-restart-on-no-parent"), false);
  strictEqual(epochArgs(flags, 1, "a.yaml").includes("--skip-hot-restart-on-no-parent"), true);
  strictEqual(valueAfter(epochArgs(flags, 12, "a.yaml"), "--restart-epoch"), "12");
});

Deno.test("epochArgs: the user's arguments come last and his log format alone", () => {
  const userArgs = ["--log-format", "%v", "-l", "debug"];
  const args = epochArgs({ ...flags, userArgs }, 3, "a.yaml");
  deepStrictEqual(args.slice(-4), userArgs);
  strictEqual(args.filter((item) => item === "--log-format").length, 1);
});

Deno.test("epochArgs: a flag or value that only looks like --log-format keeps the default", () => {
  for (const userArgs of [["--log-format-escaped"], ["--service-node", "--log-format"]]) {
    match(valueAfter(epochArgs({ ...flags, userArgs }, 1, "a.yaml"), "--log-format") ?? "", /\[epoch 1\]/);
  }
});

Deno.test("epochEnv: names the epoch as Envoy's own restarter does", () => {
  deepStrictEqual(epochEnv(4), { RESTART_EPOCH: "4" });
});

Deno.test("validateArgs: same flags, but the log where it can be read", () => {
  const userArgs = ["--log-path", "/var/log/envoy.log", "-l", "off", "--service-node", "n", "--allow-unknown-fields"];
  const args = validateArgs({ ...flags, userArgs }, "/state/a.yaml");
  deepStrictEqual(args.slice(0, 4), ["--mode", "validate", "-c", "/state/a.yaml"]);
  strictEqual(valueAfter(args, "--base-id"), "7");
  strictEqual(args.includes("--log-path"), false);
  strictEqual(args.includes("off"), false);
  deepStrictEqual(args.slice(-3), ["--service-node", "n", "--allow-unknown-fields"]);
});

Deno.test("argsIdentity: differs for everything that makes another Envoy, and not between epochs", () => {
  const same = argsIdentity(flags);
  strictEqual(argsIdentity({ ...flags }), same);
  const changes: Partial<EpochFlags>[] = [
    { baseId: 8 },
    { concurrency: 3 },
    { drainTimeMs: 31_000 },
    { parentShutdownTimeMs: 46_000 },
    { userArgs: ["--service-node", "a"] },
  ];
  for (const change of changes) notStrictEqual(argsIdentity({ ...flags, ...change }), same, JSON.stringify(change));
  notStrictEqual(argsIdentity({ ...flags, userArgs: ["a", "b"] }), argsIdentity({ ...flags, userArgs: ["a b"] }));
});

Deno.test("flagValue: finds the user's value and not a value that looks like the flag", () => {
  strictEqual(flagValue(["-l", "info", "--config-yaml", "admin: {}"], "--config-yaml"), "admin: {}");
  strictEqual(flagValue(["--service-node", "--config-yaml"], "--config-yaml"), undefined);
});

Deno.test("checkEnvoyArgs: takes what Envoy takes", () => {
  for (
    const args of [
      [],
      ["-l", "debug"],
      ["--config-yaml", "admin: {address: {pipe: {path: /a}}}"],
      ["--component-log-level", "upstream:debug,http:trace", "--cpuset-threads"],
      ["--service-node", "--base-id"],
      ["--log-format", "a=b %v"],
      ["--stats-tag", "a:b", "--stats-tag", "c:d"],
      ["--a-flag-of-tomorrow", "value", "--another-one"],
    ]
  ) strictEqual(checkEnvoyArgs(args), undefined, args.join(" "));
});

Deno.test("checkEnvoyArgs: names epochd's own flag for a reserved one", () => {
  deepStrictEqual(checkEnvoyArgs(["-l", "debug", "--base-id", "3"]), {
    field: "--envoy-arg",
    value: "--base-id 3",
    expected: "epochd's own --base-id",
  });
  const instead = {
    "-c": "--envoy-config",
    "--config-path": "--envoy-config",
    "--concurrency": "--concurrency",
    "--drain-time-s": "--drain-time",
    "--parent-shutdown-time-s": "--parent-shutdown-time",
  };
  for (const [flag, own] of Object.entries(instead)) {
    strictEqual(checkEnvoyArgs([flag, "x"])?.expected, `epochd's own ${own}`);
  }
});

Deno.test("checkEnvoyArgs: refuses every flag that would end hot restart", () => {
  for (
    const flag of [
      ...[
        "--restart-epoch",
        "--mode",
        "--base-id-path",
        "--use-dynamic-base-id",
        "--disable-hot-restart",
        "--socket-path",
      ],
      ...[
        "--skip-hot-restart-on-no-parent",
        "--skip-hot-restart-parent-stats",
        "--hot-restart-version",
        "--version",
        "--help",
        "-h",
      ],
    ]
  ) notStrictEqual(checkEnvoyArgs([flag, "1"]), undefined, flag);
});

Deno.test("checkEnvoyArgs: flag and value in one item can't smuggle in a reserved flag", () => {
  strictEqual(checkEnvoyArgs(["--base-id 3"])?.expected, "epochd's own --base-id");
  strictEqual(checkEnvoyArgs(["--base-id=3"])?.expected, "epochd's own --base-id");
  strictEqual(checkEnvoyArgs(["-l debug"]), undefined);
  strictEqual(checkEnvoyArgs(["--"])?.expected, "no end of flags: Envoy would ignore the rest");
});

Deno.test("checkEnvoyArgs: says how --foo=bar is written", () => {
  deepStrictEqual(checkEnvoyArgs(["--log-level=debug"]), {
    field: "--envoy-arg",
    value: "--log-level=debug",
    expected: "flag and value as two items: --envoy-arg=--log-level --envoy-arg=debug",
  });
});

Deno.test("checkEnvoyArgs: refuses repeated flags, by either name, and forgotten values", () => {
  match(checkEnvoyArgs(["-l", "debug", "--log-level", "info"])?.expected ?? "", /--log-level once/);
  match(checkEnvoyArgs(["--cpuset-threads", "--cpuset-threads"])?.expected ?? "", /once/);
  strictEqual(checkEnvoyArgs(["--service-node"])?.expected, "a value after --service-node");
  strictEqual(checkEnvoyArgs(["stray"])?.value, "stray");
});

Deno.test("ENVOY_FLAGS: what epochd itself passes is reserved, the log format aside", () => {
  const own = epochArgs(flags, 1, "a.yaml").filter((item) => item.startsWith("-"));
  for (const flag of own) strictEqual(ENVOY_FLAGS[flag]?.reserved !== undefined, flag !== "--log-format", flag);
});
