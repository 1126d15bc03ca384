// Owns: `epochd doctor` on a real Envoy and a real machine: what it finds there, and its exit codes. Must not: repeat each check's cases.
import assert from "node:assert/strict";
import { envoyPath } from "../support/envoys.ts";
import { runEpochd } from "../support/epochd.ts";
import { scene } from "./scene.ts";

interface Finding {
  readonly check: string;
  readonly verdict: string;
  readonly found: string;
  readonly todo?: string;
}

function findings(stdout: string): (check: string) => Finding {
  const { services } = JSON.parse(stdout);
  return (check) =>
    services[0].findings.find((finding: Finding) => finding.check === check) ?? assert.fail(`no ${check} in ${stdout}`);
}

Deno.test("doctor finds nothing to mend beside a healthy Envoy, and says what it looked at", async () => {
  await using here = scene();
  const epochd = await here.start();
  const { code, stdout, stderr } = await epochd.command("doctor", "--json");
  assert.deepEqual([code, stderr], [0, ""], stdout);
  const of = findings(stdout);
  const checks = JSON.parse(stdout).services[0].findings as Finding[];
  assert.deepEqual(checks.filter(({ verdict }) => verdict === "fail"), []);
  assert.match(of("base_id").found, new RegExp(`base id ${epochd.baseId} is held by this supervisor's epoch 0`));
  assert.equal(of("hot_restart_version").verdict, "ok");
  assert.match(of("admin").found, /answers as epoch 0, LIVE/);
  assert.equal(of("memory").verdict, "ok");
  assert.equal(of("preflight").verdict, "ok");
  const text = await epochd.command("doctor");
  assert.match(text.stdout, /^ {2}ok {4}base id {14}base id \d+ is held/m);
  assert.match(text.stdout, /^0 to mend, \d+ to look at, \d+ fine, \d+ not known$/m);
  // Looking changed nothing.
  assert.equal((await epochd.command("restart", "--wait=live")).code, 0);
});

Deno.test("doctor finds a poisoned segment, a bootstrap that would be refused, and one without an admin", async () => {
  await using here = scene();
  const epochd = await here.start({ extraArguments: ["--no-watch-config"] });
  using file = Deno.openSync(`/dev/shm/envoy_shared_memory_${epochd.baseId * 10}`, { write: true });
  file.seekSync(96, Deno.SeekMode.Start);
  file.writeSync(Uint8Array.of(1));
  here.edit({ change: (bootstrap) => bootstrap.no_such_field = 1 });
  const { code, stdout } = await epochd.command("doctor", "--json");
  assert.equal(code, 1);
  const of = findings(stdout);
  assert.equal(of("segment").verdict, "warn");
  assert.match(of("segment").todo ?? "", /epochd clears the flag/);
  assert.equal(of("preflight").verdict, "fail");
  assert.match(of("preflight").found, /no_such_field/);
  here.edit({ change: (bootstrap) => delete bootstrap.admin });
  assert.equal(
    findings((await epochd.command("doctor", "--json")).stdout)("admin").verdict,
    "ok",
    "the running one has an admin",
  );
  const checks = JSON.parse((await epochd.command("doctor", "--json")).stdout).services[0].findings as Finding[];
  assert.ok(
    checks.some(({ check, verdict, found }) =>
      check === "admin" && verdict === "fail" && /no admin|admin address/.test(found)
    ),
  );
});

Deno.test("doctor without a supervisor takes the flags of run: a held base id, times that do not fit, or nothing wrong", async () => {
  await using here = scene();
  const epochd = await here.start();
  const flags = [
    "--envoy-path",
    envoyPath(),
    "--envoy-config",
    here.bootstrapPath,
    "--state-dir",
    here.directory.at("other"),
  ];
  const held = await runEpochd(["doctor", "--json", ...flags, "--base-id", String(epochd.baseId)]);
  assert.equal(held.code, 1);
  const of = findings(held.stdout);
  assert.equal(of("base_id").verdict, "fail");
  assert.match(of("base_id").found, new RegExp(`held by process ${epochd.envoyPids()[0]} \\(envoy\\)`));
  const free = await runEpochd(["doctor", ...flags, "--base-id", String(epochd.baseId + 400)]);
  assert.equal(free.code, 0, free.stdout);
  assert.match(free.stdout, /base id \d+ is free/);
  const chosen = await runEpochd(["doctor", ...flags, "--base-id", "auto"]);
  assert.equal(chosen.code, 0, chosen.stdout);
  assert.match(chosen.stdout, /base id \d+ is free/);
  const shared = await runEpochd(["doctor", ...flags, "--base-id", "auto", "--cross-pod"]);
  assert.equal(shared.code, 1);
  assert.match(shared.stdout, /fail {2}configuration .*--base-id auto: expected a number/);
  assert.ok(![...Deno.readDirSync(here.directory.path)].some(({ name }) => name === "other"), "nothing was made");
  const wrong = await runEpochd(["doctor", ...flags, "--drain-time", "50s"]);
  assert.equal(wrong.code, 1);
  assert.match(wrong.stdout, /fail {2}configuration .*parent-shutdown-time/);
  assert.equal((await runEpochd(["doctor", "--base-idd", "1"])).code, 2);
  const nobody = await runEpochd(["doctor", "--api-socket", here.directory.at("none.sock")]);
  assert.equal(nobody.code, 1);
  assert.match(nobody.stderr, /no supervisor.*\n.*flags of `epochd run`/);
});
