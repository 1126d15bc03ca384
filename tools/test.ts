/**
 * Runs the rings - the checks, then each folder of tests - and ends with the line `N passed, N failed[, N skipped]`.
 *
 *     test.ts [RING | FILE]... [--filter NAME]
 */
import { existsSync, globSync } from "node:fs";
import { join } from "node:path";
import { zig } from "./native_probe.ts";
import { provideStandIn } from "./native_stand_in.ts";
import { projectDir } from "./toolchain.ts";

interface Outcome {
  readonly ring: string;
  readonly passed: number;
  readonly failed: number;
  readonly skipped: readonly string[];
  /** Failed, and passed when run again: told by name, so that nobody overlooks them. */
  readonly unsteady: readonly string[];
  readonly durationMs: number;
}

const CHECK = "check";
// What fails soonest comes first; a folder that is not named here follows, in the order of the alphabet.
const ORDER = [
  "unit",
  "transcripts",
  "property",
  "process",
  "integration",
  "faults",
  "orphans",
  "pods",
  "compiled",
  "chart",
  "image",
  "cluster",
];
// These start no process and take no port, so their files may run side by side.
const PARALLEL = ["unit", "transcripts", "property"];
/** Nothing of the machine is in these: what fails fails again. */
const PURE = ["transcripts", "property"];
/** Rings within another one's folder. Their tests mostly wait for drains, so that some files run side by side. */
const APART: Readonly<Record<string, string>> = {
  faults: "tests/integration/faults",
  orphans: "tests/integration/orphans",
  pods: "tests/integration/pods",
};
const APART_JOBS = "3";
const RING_LIMIT_MS = 40 * 60_000;
/** More than this that fail are no accident. */
const SECOND_TRIES = 8;

if (import.meta.main) Deno.exit(await main(Deno.args));

async function main(args: readonly string[]): Promise<number> {
  Deno.chdir(projectDir);
  const filterAt = args.includes("--filter") ? args.indexOf("--filter") : args.length;
  const filter = args.slice(filterAt, filterAt + 2);
  const targets = args.toSpliced(filterAt, 2);

  const known = [CHECK, ...rings()];
  const unknown = targets.filter((target) => !known.includes(target) && !ORDER.includes(target) && !existsSync(target));
  if (unknown.length > 0 || filter.length === 1) {
    print(`usage: test [RING | FILE]... [--filter NAME], rings: ${known.join(", ")}`);
    if (unknown.length > 0) print(`neither a ring nor a file: ${unknown.join(", ")}`);
    return 2;
  }

  const outcomes: Outcome[] = [];
  for (const target of targets.length > 0 ? targets : known) {
    print(`\n== ${target}`);
    outcomes.push(target === CHECK ? await runChecks() : await runTests(target, filter));
  }
  return report(outcomes);
}

/** The folders of tests/ that hold tests. */
function rings(): string[] {
  const ringOf = (path: string) =>
    Object.keys(APART).find((ring) => path.startsWith(`${APART[ring]}/`)) ?? path.split("/")[1]!;
  const names = new Set(globSync("tests/*/**/*_test.ts").map(ringOf));
  const place = (name: string) => (ORDER.includes(name) ? ORDER.indexOf(name) : ORDER.length);
  return [...names].sort((a, b) => place(a) - place(b) || a.localeCompare(b));
}

async function runChecks(): Promise<Outcome> {
  const startMs = performance.now();
  const checks: Record<string, () => Promise<boolean>> = {
    "format": () => runDeno(["fmt", "--check"]),
    "lint": () => runDeno(["lint", "--quiet"]),
    "types": () => runDeno(["check", "--quiet", "."]),
    "documentation of the core": lintDocumentation,
  };
  if (existsSync("tools/generate.ts")) {
    checks["generated files"] = () => runDeno(["run", "--allow-all", "tools/generate.ts", "--check"]);
  }
  const failed: string[] = [];
  for (const [name, check] of Object.entries(checks)) {
    const isOk = await check();
    print(`${name} ... ${isOk ? "ok" : "FAILED"}`);
    if (!isOk) failed.push(name);
  }
  // Checks that pass are not tests: were they counted, a run without any test would look like one.
  const durationMs = performance.now() - startMs;
  return { ring: CHECK, passed: 0, failed: failed.length, skipped: [], unsteady: [], durationMs };
}

/** Each exported thing of the core says what it is. Deno asks the same of each of its fields, which would be noise. */
async function lintDocumentation(): Promise<boolean> {
  const files = globSync("lib/core/**/*.ts");
  if (files.length === 0) return true;
  const { success, stderr } = await new Deno.Command(Deno.execPath(), {
    args: ["doc", "--quiet", "--lint", ...files],
    env: { NO_COLOR: "1" },
  }).output();
  const text = new TextDecoder().decode(stderr);
  const findings = text.split(/^(?=error)/m).filter((part) => part.startsWith("error["));
  const grave = findings.filter((part) => !part.startsWith("error[missing-jsdoc]") || /^ *\d+ \| export /m.test(part));
  const isBroken = !success && findings.length === 0;
  if (isBroken || grave.length > 0) print(isBroken ? text : grave.map((part) => part.trimEnd()).join("\n"));
  return !isBroken && grave.length === 0;
}

/**
 * Tests with real processes meet a busy machine's worst moments: one that failed gets a second try. One that failed
 * and then passed is listed, and is a bug to be looked for; one that fails twice has failed.
 */
async function runTests(target: string, filter: readonly string[]): Promise<Outcome> {
  const startMs = performance.now();
  // An epochd that runs from source finds it where this puts it.
  if (!PURE.includes(target) && existsSync(zig)) await provideStandIn();
  const first = await runOnce(target, filter);
  const names = first.failures;
  const isCounted = first.failed === names.length;
  if (PURE.includes(target) || !isCounted || names.length === 0 || names.length > SECOND_TRIES) {
    return { ...first, ring: target, unsteady: [], durationMs: performance.now() - startMs };
  }
  print(`\n== ${target}, second try of ${names.join("; ")}`);
  const exactly = names.map((name) => name.replace(/[.*+?^${}()|[\]\\/]/g, "\\$&")).join("|");
  const again = await runOnce(target, ["--filter", `/^(${exactly})$/`]);
  const unsteady = names.filter((name) => again.passes.includes(name));
  return {
    ring: target,
    passed: first.passed + unsteady.length,
    failed: first.failed - unsteady.length,
    skipped: first.skipped,
    unsteady,
    durationMs: performance.now() - startMs,
  };
}

interface Run {
  readonly passed: number;
  readonly failed: number;
  readonly skipped: readonly string[];
  readonly passes: readonly string[];
  readonly failures: readonly string[];
}

async function runOnce(target: string, filter: readonly string[]): Promise<Run> {
  const folder = APART[target] ?? join("tests", target);
  const path = existsSync(folder) ? folder : target;
  const junit = await Deno.makeTempFile({ prefix: "epochd-test-", suffix: ".xml" });
  try {
    const isOk = !existsSync(path) || await runDeno([
      ...["test", "--allow-all", "--no-check", "--permit-no-files", `--junit-path=${junit}`],
      ...(PARALLEL.includes(target) || target in APART ? ["--parallel"] : []),
      ...Object.values(APART).filter((apart) => apart.startsWith(`${path}/`)).map((apart) => `--ignore=${apart}`),
      ...filter,
      path,
    ], target in APART ? { DENO_JOBS: APART_JOBS } : {});
    const cases = (await Deno.readTextFile(junit)).split("<testcase ").slice(1);
    const ignored = cases.filter((text) => text.includes("<skipped"));
    // To Deno, a test that the filter leaves out is an ignored one.
    const skipped = filter.length > 0 ? [] : ignored.map(nameOf);
    const isFailure = (text: string) => /<(failure|error)\b/.test(text);
    const failures = cases.filter(isFailure).map(nameOf);
    const passes = cases.filter((text) => !isFailure(text) && !ignored.includes(text)).map(nameOf);
    // Deno leaves out of its report a file that could not be loaded and a run that broke off.
    const failed = isOk ? failures.length : Math.max(failures.length, 1);
    return { passed: passes.length, failed, skipped, passes, failures };
  } finally {
    await Deno.remove(junit);
  }
}

function nameOf(testcase: string): string {
  const entities: Record<string, string> = { amp: "&", lt: "<", gt: ">", quot: '"', apos: "'" };
  const name = testcase.match(/^name="([^"]*)"/)?.[1] ?? "a test without a name";
  return name.replace(/&(amp|lt|gt|quot|apos);/g, (_, entity: string) => entities[entity]!);
}

function report(outcomes: readonly Outcome[]): number {
  const sum = (count: (outcome: Outcome) => number) => outcomes.reduce((total, outcome) => total + count(outcome), 0);
  const passed = sum((outcome) => outcome.passed);
  const failed = sum((outcome) => outcome.failed);
  const skipped = outcomes.flatMap((outcome) => outcome.skipped);

  print("");
  printRow("ring", ["passed", "failed", "skipped", "seconds"]);
  for (const outcome of outcomes) {
    const seconds = (outcome.durationMs / 1000).toFixed(1);
    printRow(outcome.ring, [outcome.passed, outcome.failed, outcome.skipped.length, seconds]);
  }
  for (const name of skipped) print(`skipped: ${name}`);
  for (const name of outcomes.flatMap(({ unsteady }) => unsteady)) print(`passed at the second try: ${name}`);

  const isEmpty = passed + failed === 0 && outcomes.some((outcome) => outcome.ring !== CHECK);
  if (isEmpty) print("no test was executed, which counts as a failure");
  print(`\n${passed} passed, ${failed} failed${skipped.length > 0 ? `, ${skipped.length} skipped` : ""}`);
  return failed > 0 || isEmpty ? 1 : 0;
}

function printRow(title: string, cells: readonly (string | number)[]): void {
  print(title.padEnd(16) + cells.map((cell) => String(cell).padStart(9)).join(""));
}

async function runDeno(args: readonly string[], env: Record<string, string> = {}): Promise<boolean> {
  const child = new Deno.Command(Deno.execPath(), {
    args: [...args],
    env,
    stdin: "null",
    signal: AbortSignal.timeout(RING_LIMIT_MS),
  }).spawn();
  return (await child.status).success;
}

function print(line: string): void {
  Deno.stdout.writeSync(new TextEncoder().encode(`${line}\n`));
}
