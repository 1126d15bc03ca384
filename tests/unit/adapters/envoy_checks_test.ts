import { deepStrictEqual, match, strictEqual } from "node:assert/strict";
import type { EpochFlags } from "../../../lib/adapters/envoy_args.ts";
import { EnvoyChecks, validationReason } from "../../../lib/adapters/envoy_checks.ts";
import type { Plan } from "../../../lib/core/epoch.ts";
import { type TempDir, tempDir } from "../../support/tempdir.ts";
import { until, within } from "../../support/until.ts";

const flags: EpochFlags = { baseId: 7, concurrency: 1, drainTimeMs: 1000, parentShutdownTimeMs: 2000, userArgs: [] };
const never = new AbortController().signal;

/** A program that counts its runs in the file `runs`, and then does what the text says. */
function planOf(dir: TempDir, text: string, digest = "d"): Plan {
  const binaryPath = dir.write("envoy", `#!/bin/sh\necho "$@" >> ${dir.at("runs")}\n${text}\n`);
  Deno.chmodSync(binaryPath, 0o755);
  const admin = { kind: "tcp", host: "127.0.0.1", port: 1 } as const;
  return { key: "k", bootstrapDigest: "b", binaryDigest: digest, bootstrapPath: "/state/b.yaml", binaryPath, admin };
}

function runs(dir: TempDir): number {
  try {
    return Deno.readTextFileSync(dir.at("runs")).trimEnd().split("\n").length;
  } catch {
    return 0;
  }
}

Deno.test("hotRestartVersion: asks a binary once, also when asked twice at a time", async () => {
  await using dir = tempDir();
  const plan = planOf(dir, "echo 11.104");
  const checks = new EnvoyChecks();
  const printed = { kind: "printed", version: "11.104" };
  deepStrictEqual(await Promise.all([checks.hotRestartVersion(plan, never), checks.hotRestartVersion(plan, never)]), [
    printed,
    printed,
  ]);
  deepStrictEqual(await checks.hotRestartVersion(plan, never), printed);
  strictEqual(Deno.readTextFileSync(dir.at("runs")), "--hot-restart-version\n");
  await checks.hotRestartVersion({ ...plan, binaryDigest: "other" }, never);
  strictEqual(runs(dir), 2);
});

Deno.test("hotRestartVersion: a warning before it is no part of it (Envoy 1.40.0 where cgroup v1 is not whole)", async () => {
  await using dir = tempDir();
  const warning = "echo '[2026-01-01 00:00:00.000][67][warning][misc] files not accessible' >&2; echo 11.104 >&2";
  const printed = await new EnvoyChecks().hotRestartVersion(planOf(dir, warning), never);
  deepStrictEqual(printed, { kind: "printed", version: "11.104" });
});

Deno.test("hotRestartVersion: what is not Envoy, what fails, what hangs", async () => {
  await using dir = tempDir();
  const ask = async (text: string, digest: string) => {
    const printed = await new EnvoyChecks({ versionTimeoutMs: 150 }).hotRestartVersion(
      planOf(dir, text, digest),
      never,
    );
    return printed.kind === "refused" ? `${printed.refusal.name}: ${printed.refusal.detail}` : printed.version;
  };
  match(await ask("echo hello world", "1"), /^spawn_failed: .*ended with 0 and said hello world; is it Envoy/);
  match(await ask("echo broken >&2; exit 3", "2"), /^spawn_failed: .*ended with 3 and said broken/);
  match(await ask("exit 0", "3"), /^spawn_failed: .*said nothing/);
  match(await ask("exec sleep 600", "4"), /^binary_hangs: run .* --hot-restart-version: did not end within 150 ms$/);
});

Deno.test("hotRestartVersion: waits for a binary that is still open for writing", async () => {
  await using dir = tempDir();
  const plan = { ...planOf(dir, ""), binaryPath: dir.at("copy") };
  Deno.copyFileSync(await Deno.realPath("/bin/echo"), plan.binaryPath);
  Deno.chmodSync(plan.binaryPath, 0o755);
  const writer = Deno.openSync(plan.binaryPath, { append: true });
  let ended = false;
  const asked = new EnvoyChecks().hotRestartVersion(plan, never).finally(() => ended = true);
  await new Promise((resolve) => setTimeout(resolve, 120));
  strictEqual(ended, false);
  writer.close();
  deepStrictEqual(await asked, { kind: "printed", version: "--hot-restart-version" });
});

Deno.test("validate: remembers the verdict for a bootstrap, flags, binary and named files, good or bad", async () => {
  await using dir = tempDir();
  const plan = planOf(dir, "echo \"error initializing configuration 'x': no such field\" >&2; exit 1");
  const checks = new EnvoyChecks();
  const refusal = { name: "bootstrap_invalid", detail: "no such field" };
  deepStrictEqual(await checks.validate(plan, flags, "", never), { refusal, cached: false });
  deepStrictEqual(await checks.validate(plan, flags, "", never), { refusal, cached: true });
  strictEqual(runs(dir), 1);
  match(Deno.readTextFileSync(dir.at("runs")), /^--mode validate -c \/state\/b\.yaml --base-id 7 /);
  for (
    const [other, otherFlags, files] of [
      [{ ...plan, bootstrapDigest: "c" }, flags, ""],
      [{ ...plan, binaryDigest: "e" }, flags, ""],
      [plan, { ...flags, userArgs: ["--allow-unknown-fields"] }, ""],
      [plan, flags, "/etc/key.pem 1-2-3"],
    ] as const
  ) strictEqual((await checks.validate(other, otherFlags, files, never)).cached, false);
  strictEqual(runs(dir), 5);
});

Deno.test("validate: what is true today only is asked again", async () => {
  await using dir = tempDir();
  const checks = new EnvoyChecks({ validateTimeoutMs: 150 });
  const hangs = planOf(dir, "exec sleep 600");
  const verdict = await checks.validate(hangs, flags, "", never);
  deepStrictEqual(verdict.refusal, {
    name: "binary_hangs",
    detail: `run ${hangs.binaryPath} --mode validate: did not end within 150 ms`,
  });
  const killed = await checks.validate(planOf(dir, "kill -9 $$"), flags, "", never);
  match(killed.refusal?.detail ?? "", /^Envoy died with 137/);
  deepStrictEqual(await checks.validate(planOf(dir, "exit 0"), flags, "", never), {
    refusal: undefined,
    cached: false,
  });
});

Deno.test("validate: an abort ends the program, and who asks next gets an answer of his own", async () => {
  await using dir = tempDir();
  const checks = new EnvoyChecks();
  const plan = planOf(dir, `[ -e ${dir.at("second")} ] || exec sleep 600`);
  const abort = new AbortController();
  const first = checks.validate(plan, flags, "", abort.signal);
  await until("the program runs", () => runs(dir) === 1);
  dir.write("second", "");
  abort.abort();
  const second = checks.validate(plan, flags, "", never);
  strictEqual((await within("the first", first)).refusal?.name, "stopping");
  deepStrictEqual(await within("the second", second), { refusal: undefined, cached: false });
});

Deno.test("validate: an abort of one of two who wait leaves the other its verdict", async () => {
  await using dir = tempDir();
  const checks = new EnvoyChecks();
  const plan = planOf(dir, `while ! [ -e ${dir.at("go")} ]; do sleep 0.02; done`);
  const abort = new AbortController();
  const asked = [checks.validate(plan, flags, "", abort.signal), checks.validate(plan, flags, "", never)];
  await until("the program runs", () => runs(dir) === 1);
  abort.abort();
  dir.write("go", "");
  strictEqual((await within("the verdict", Promise.all(asked)))[1]?.refusal, undefined);
  strictEqual(runs(dir), 1);
});

Deno.test("validationReason: the one line that helps", () => {
  const start = "error initializing configuration '/state/x.yaml': ";
  strictEqual(
    validationReason(`${start}yaml-cpp: error at line 2, column 1: end of map flow not found\n`),
    "yaml-cpp: error at line 2, column 1: end of map flow not found",
  );
  strictEqual(validationReason(`noise before\n${start}no such\n  field:   'foo'\n`), "no such field: 'foo'");
  strictEqual(validationReason("error: invalid log level specified 'x'\n"), "invalid log level specified 'x'");
  strictEqual(validationReason(`${start}TLS error: Secret is wrong`), "TLS error: Secret is wrong");
  strictEqual(validationReason("just words"), "just words");
  strictEqual(validationReason(""), "");
  const dump = 'goo.gle/debugonly\nstatic_resources {\n  name: "main"\n}\n: Proto constraint validation failed ';
  const deep = "AValidationError.StaticResources: embedded message failed validation | " +
    "caused by BValidationError.Listeners[0]: embedded message failed validation | ";
  const failed = "Proto constraint validation failed (StaticResources.Listeners[0]";
  const innermost = "caused by CValidationError.PortValue: value must be less than or equal to 65535";
  strictEqual(
    validationReason(`${start}${dump}(${deep}${innermost})\n`),
    `${failed}.PortValue: value must be less than or equal to 65535)`,
  );
  strictEqual(
    validationReason(`${start}${dump}(${deep}caused by field: "path_specifier", reason: is required)\n`),
    `${failed}: field: "path_specifier", reason: is required)`,
  );
  const strange = "one (thing | caused by another | caused by a third)";
  strictEqual(validationReason(start + strange), strange);
  strictEqual(validationReason(start + "x".repeat(5000)).length, 603);
});

Deno.test("validationReason: the bootstrap's content, which may hold secrets, is never in it", () => {
  const said =
    "error initializing configuration 'x.yaml': Unable to parse JSON as proto (INVALID_ARGUMENT: could not find " +
    'type "nope")): {"static_resources":{"secrets":[{"generic_secret":{"secret":{"inline_string":"hunter2"}}}]}}\n';
  strictEqual(validationReason(said), 'Unable to parse JSON as proto (INVALID_ARGUMENT: could not find type "nope"))');
  strictEqual(validationReason('error: {"inline_string":"hunter2"}').includes("hunter2"), false);
});
