/**
 * Builds dist/epochd, dist/epochd-probe, dist/epochd-launch, dist/epochd-stand-in, the libgcc_s.so.1 beside them and SHA256SUMS;
 * cheap when nothing has changed.
 * epochd-probe is native; epochd-probe-portable is the same in TypeScript, for where the native one can't run.
 * Owns dist/. Expects the toolchain of `setup.py --compile`.
 */
import { createHash } from "node:crypto";
import { existsSync, rmSync } from "node:fs";
import { basename, join, relative } from "node:path";
import { digestOf as sha256Of } from "../lib/install/files.ts";
import { formatManifest, type Manifest, manifestName, programFiles } from "../lib/install/manifest.ts";
import { buildLauncher } from "./native_launcher.ts";
import { buildNativeProbe, zig } from "./native_probe.ts";
import { buildStandIn } from "./native_stand_in.ts";
import { projectDir, toolsDir } from "./toolchain.ts";

export const distDir: string = join(projectDir, "dist");

const PROGRAMS = [
  { entry: "main.ts", executable: "epochd" },
  { entry: "probe.ts", executable: "epochd-probe-portable" },
] as const;
const NATIVE_PROBE = "epochd-probe";
const NATIVE_LAUNCHER = "epochd-launch";
const STAND_IN = "epochd-stand-in";
const LIBRARY = "libgcc_s.so.1";
const TRIPLET = `${Deno.build.arch}-linux-gnu`;
const LIBRARY_DIRS = [`/lib/${TRIPLET}`, `/usr/lib/${TRIPLET}`, "/lib64", "/usr/lib64", "/usr/lib", "/lib"];
/** How `ldconfig -p` marks what is for this processor. */
const LIBRARY_MARK = Deno.build.arch === "aarch64" ? "AArch64" : "x86-64";
const TOOLS = ["tools/compile.ts", "tools/native_launcher.ts", "tools/native_probe.ts", "tools/native_stand_in.ts"];
const INPUTS = ["main.ts", "probe.ts", "lib", "deno.json", "deno.lock", ...TOOLS];

/** Returns true when it built, false when dist/ was current. */
export async function compile(): Promise<boolean> {
  await Deno.mkdir(distDir, { recursive: true });
  using lock = await Deno.open(join(distDir, ".lock"), { create: true, write: true });
  await lock.lock(true);

  const toolchain = findToolchain();
  const library = await findLibrary();
  const digest = await digestOf(toolchain, library);
  const stamp = join(distDir, ".digest");
  const names = [
    ...PROGRAMS.map((program) => program.executable),
    NATIVE_PROBE,
    NATIVE_LAUNCHER,
    STAND_IN,
    LIBRARY,
    manifestName,
  ];
  const isBuilt = [stamp, ...names.map((name) => join(distDir, name))].every((path) => existsSync(path));
  if (isBuilt && await Deno.readTextFile(stamp) === digest) return false;

  const work = join(distDir, ".work");
  rmSync(work, { recursive: true, force: true });
  await Deno.mkdir(work);
  // One after the other: two that bundle for the first time get in each other's way where Deno keeps its esbuild.
  for (const { entry, executable } of PROGRAMS) await build(entry, join(work, executable), toolchain);
  await buildNativeProbe(join(work, NATIVE_PROBE), `${Deno.build.arch}-linux-musl`);
  await buildLauncher(join(work, NATIVE_LAUNCHER), `${Deno.build.arch}-linux-musl`);
  await buildStandIn(join(work, STAND_IN), `${Deno.build.arch}-linux-musl`);
  await Deno.copyFile(library, join(work, LIBRARY));
  const digests = await Promise.all(programFiles.map(async (name) => [name, await sha256Of(join(work, name))]));
  await Deno.writeTextFile(join(work, manifestName), formatManifest(Object.fromEntries(digests) as Manifest));

  // No stamp while old and new outputs are mixed: a build that is killed here is done again.
  rmSync(stamp, { force: true });
  for (const name of names) await Deno.rename(join(work, name), join(distDir, name));
  await Deno.writeTextFile(join(work, "digest"), digest);
  await Deno.rename(join(work, "digest"), stamp);
  rmSync(work, { recursive: true });
  return true;
}

interface Toolchain {
  readonly bundler: string;
  readonly compiler: string;
  readonly denort: string;
}

function findToolchain(): Toolchain {
  const bundler = join(toolsDir, "bin/deno");
  const dir = join(toolsDir, "compile");
  const names = existsSync(dir) ? Array.from(Deno.readDirSync(dir), (entry) => entry.name).sort() : [];
  const denorts = names.filter((name) => name.startsWith("denort-"));
  // One without a deno of its own beside it is the pinned Deno's own, and wins over the fallback pair.
  const own = denorts.find((name) => !names.includes(name.replace("denort-", "deno-")));
  if (!existsSync(zig)) {
    throw new Error(`no C compiler in ${toolsDir}: run \`make compile\` or \`deno task setup:compile\``);
  }
  if (existsSync(bundler) && own) return { bundler, compiler: bundler, denort: join(dir, own) };
  const paired = denorts.at(-1);
  if (!existsSync(bundler) || !paired) {
    throw new Error(`no compiler in ${toolsDir}: run \`make compile\` or \`deno task setup:compile\``);
  }
  return { bundler, compiler: join(dir, paired.replace("denort-", "deno-")), denort: join(dir, paired) };
}

async function build(entry: string, output: string, { bundler, compiler, denort }: Toolchain): Promise<void> {
  const bundle = `${output}.bundle`;
  // Chunks, so that a command evaluates only what it uses: in a single file every `node:` import runs at each start.
  // Not minified: it gains no start time and costs readable stack traces.
  await run(bundler, ["bundle", "--quiet", "--code-splitting", "--outdir", bundle, entry]);
  // No code cache: it would be read from a guessable name in /tmp, by a supervisor that often is root.
  const flags = ["--quiet", "--allow-all", "--no-check", "--no-config", "--no-lock", "--no-code-cache"];
  // V8 would let the space of young objects grow to 16 MB and more, and keep it: docs/adr/0005-footprint.md.
  flags.push("--v8-flags=--max-semi-space-size=1");
  const main = join(bundle, entry.replace(/\.ts$/, ".js"));
  await run(compiler, ["compile", ...flags, "--output", output, main], { DENORT_BIN: denort });
}

/** The run path of denort names the executable's own directory; Envoy's distroless image has no libgcc of its own. */
async function findLibrary(): Promise<string> {
  const asked = await outputOf("gcc", [`-print-file-name=${LIBRARY}`]);
  const cached = await outputOf("ldconfig", ["-p"]);
  const fromCache = cached.split("\n").filter((line) => line.includes(LIBRARY) && line.includes(LIBRARY_MARK));
  const candidates = [
    asked.trim(),
    ...fromCache.map((line) => line.split("=>").at(-1)!.trim()),
    ...LIBRARY_DIRS.map((dir) => join(dir, LIBRARY)),
  ];
  const found = candidates.find((path) => path.startsWith("/") && existsSync(path));
  if (!found) {
    throw new Error(`${LIBRARY} is nowhere on this machine: install gcc's runtime (Debian: libgcc-s1, Fedora: libgcc)`);
  }
  return await Deno.realPath(found);
}

async function digestOf({ compiler, denort }: Toolchain, library: string): Promise<string> {
  const hash = createHash("sha256");
  for (const path of INPUTS.flatMap((input) => filesUnder(join(projectDir, input)))) {
    const name = relative(projectDir, path);
    const text = await Deno.readTextFile(path);
    refuseLazyPackage(name, text);
    refuseWholeZod(name, text);
    hash.update(`${name}\0${text}\0`);
  }
  for (const path of [compiler, denort, zig, library]) {
    const { size, mtime } = await Deno.stat(path);
    hash.update(`${path}\0${size}\0${mtime?.getTime()}\0`);
  }
  return hash.digest("hex");
}

/** In chunks, a lazy import of a CommonJS package has lost its named exports; that would show only once compiled. */
function refuseLazyPackage(name: string, text: string): void {
  const found = text.match(/\bimport\(\s*"(?![./]|node:)([^"]+)"/)?.[1];
  if (found) {
    throw new Error(
      `${name} imports "${found}" lazily: import it statically in a file of its own, and that file lazily`,
    );
  }
}

/** By its `z`, zod comes with the messages of forty languages: 20 ms of every start, 5 MB of memory. */
function refuseWholeZod(name: string, text: string): void {
  if (/\bimport \{[^}]*\bz\b[^}]*\} from "zod"/.test(text)) {
    throw new Error(`${name} imports { z } from "zod": write import * as z from "zod"`);
  }
}

function filesUnder(path: string): string[] {
  if (!Deno.statSync(path).isDirectory) return [path];
  return Array.from(Deno.readDirSync(path), (entry) => join(path, entry.name)).sort().flatMap(filesUnder);
}

async function run(command: string, args: string[], env: Record<string, string> = {}): Promise<void> {
  const child = new Deno.Command(command, {
    args,
    cwd: projectDir,
    // One cache wherever it is started from (the bundle names its modules by their path), and one for each version.
    env: { DENO_DIR: join(toolsDir, "cache", basename(command)), ...env },
    stdin: "null",
    stdout: "null",
    stderr: "piped",
  });
  const { success, code, stderr } = await child.output();
  if (!success) {
    throw new Error(`${command} ${args.join(" ")} ended with ${code}:\n${new TextDecoder().decode(stderr)}`);
  }
}

async function outputOf(command: string, args: string[]): Promise<string> {
  try {
    const { stdout } = await new Deno.Command(command, { args, stdin: "null", stderr: "null" }).output();
    return new TextDecoder().decode(stdout);
  } catch (error) {
    if (error instanceof Deno.errors.NotFound) return "";
    throw error;
  }
}

/** Setup says it once, when it downloads; who compiles later has to know as well. */
function fallbackNote({ bundler, compiler }: Toolchain): string {
  return compiler === bundler ? "" : `, with the fallback ${basename(compiler)}: its epochd has no --api-listen`;
}

if (import.meta.main) {
  try {
    const text = (await compile()) ? `built ${distDir}` : `${distDir} is current`;
    Deno.stdout.writeSync(new TextEncoder().encode(`${text}${fallbackNote(findToolchain())}\n`));
  } catch (error) {
    Deno.stderr.writeSync(new TextEncoder().encode(`compile: ${error instanceof Error ? error.message : error}\n`));
    Deno.exit(1);
  }
}
