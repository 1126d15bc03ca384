/**
 * Random arguments and markers: the C of the probe answers as the TypeScript does, and no sanitizer has anything to say.
 */
import assert from "node:assert/strict";
import fc from "fast-check";
import { probe } from "../../lib/probe/main.ts";
import { compileProbe, zig } from "../../tools/native_probe.ts";
import { tempDir } from "../support/tempdir.ts";

// With a trap, undefined behaviour ends the process by a signal; with ASan, a finding stands on stderr.
const undefinedFlags = ["-fsanitize=undefined", "-fsanitize-trap=undefined", "-fno-sanitize-recover=undefined"];
const builds: readonly { name: string; compiler: string; args: readonly string[] }[] = [
  { name: "undefined behaviour", compiler: zig, args: ["cc", "-O1", "-ffp-contract=off", ...undefinedFlags] },
  {
    name: "addresses",
    compiler: "gcc",
    args: ["-O1", "-g", "-ffp-contract=off", "-fsanitize=address,undefined", "-lm"],
  },
];

const runs = Number(Deno.env.get("EPOCHD_FUZZ_RUNS") ?? 400);

for (const { name, compiler, args } of builds) {
  const isMissing = !await exists(compiler);
  Deno.test({
    name: `any arguments, any marker: C answers as TypeScript (${name}${isMissing ? `: no ${compiler}` : ""})`,
    ignore: isMissing,
    async fn() {
      await using dir = tempDir();
      const path = dir.at("probe");
      await compileProbe(compiler, [...args, "-lm"], path);
      await fc.assert(
        fc.asyncProperty(arguments_(dir.at("marker")), marker, async (words, state) => {
          await make(dir.at("marker"), state);
          const { code, signal, stdout, stderr } = await new Deno.Command(path, { args: words, stdin: "null" })
            .output();
          const expected = probe(words, Date.now());
          const found = { exitCode: signal ?? code, stdout: text(stdout), stderr: text(stderr) };
          assert.deepEqual(masked(found), masked(expected));
        }),
        { numRuns: runs },
      );
    },
  });
}

type Marker = { readonly kind: "none" | "directory" | "link" } | { readonly kind: "file"; readonly ageMs: number };

// Nothing near a bound: TypeScript looks a little later than C does.
const marker: fc.Arbitrary<Marker> = fc.oneof(
  fc.constantFrom<Marker>({ kind: "none" }, { kind: "directory" }, { kind: "link" }),
  fc.constantFrom(0, 1_000, 60_000, -60_000, 1e9, -1e9, 1e11, 1e12, -1e12).map((ageMs): Marker => ({
    kind: "file",
    ageMs,
  })),
);

function arguments_(path: string): fc.Arbitrary<string[]> {
  const anything = fc.string({ unit: "binary", maxLength: 40 }).map((value) => value.replaceAll("\0", "\n"));
  const number = fc.oneof(fc.nat(99).map(String), fc.stringMatching(/^\d{1,25}(\.\d{1,12})?$/));
  const unit = fc.constantFrom("ms", "s", "m", "h", "", "M", ".");
  const part = fc.tuple(number, unit).map((pair) => pair.join(""));
  const age = fc.oneof(
    fc.constantFrom("10s", "1h", "20m", "500h", "0", "0s"),
    fc.array(part, { maxLength: 4 }).map((parts) => parts.join("")),
  );
  const long = fc.tuple(anything, fc.integer({ min: 100, max: 3_000 })).map(([value, times]) => value.repeat(times));
  const value = fc.oneof(fc.constant(path), age, anything, long);
  const flag = fc.constantFrom("--ready-marker", "--max-age", "--help", "-h", "--", "--ready", "--max-ages", "-");
  const word = fc.oneof(flag, value, fc.tuple(flag, value).map(([name, rest]) => `${name}=${rest}`));
  const likely = fc.tuple(age, fc.boolean()).map(([max, isJoined]) =>
    isJoined ? [`--max-age=${max}`, `--ready-marker=${path}`] : ["--ready-marker", path, "--max-age", max]
  );
  return fc.oneof(likely, fc.array(word, { maxLength: 6 }));
}

async function make(path: string, marker: Marker): Promise<void> {
  await Deno.remove(path, { recursive: true }).catch(() => {});
  if (marker.kind === "directory") await Deno.mkdir(path);
  if (marker.kind === "link") await Deno.symlink("nowhere", path);
  if (marker.kind !== "file") return;
  await Deno.writeTextFile(path, "");
  const written = (Date.now() - marker.ageMs) / 1000;
  await Deno.utime(path, written, written);
}

function masked({ exitCode, stdout, stderr }: { exitCode: unknown; stdout: string; stderr: string }) {
  return { exitCode, stderr, stdout: stdout.replaceAll(/\b\d+ ms(?= |:|$)/gm, "N ms") };
}

function text(bytes: Uint8Array): string {
  return new TextDecoder("utf-8", { fatal: true }).decode(bytes);
}

async function exists(command: string): Promise<boolean> {
  // Of zig, which the test's own set-up brings, absence is a failure to see.
  if (command === zig) return true;
  return await new Deno.Command(command, { args: ["--version"], stdin: "null" }).output().then(() => true, () => false);
}
