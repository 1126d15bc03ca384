// Owns: what the soak runs on: copies of the executables, the bootstrap, the upstream, epochd. Must not: judge what happens on it.
import { writeBootstrap } from "../../tests/support/bootstrap.ts";
import { ENVOY_VERSIONS, envoyPath, type EnvoyVersion, NEWEST_ENVOY } from "../../tests/support/envoys.ts";
import { type Epochd, type Program, startEpochd } from "../../tests/support/epochd.ts";
import { freePorts } from "../../tests/support/ports.ts";
import { type TempDir, tempDir } from "../../tests/support/tempdir.ts";
import { startUpstream } from "../../tests/support/upstream.ts";
import { distDir } from "../../tools/compile.ts";

export const DRAIN_MS = 1_000;
export const PARENT_SHUTDOWN_MS = 2_000;

export interface Stage extends AsyncDisposable {
  readonly directory: TempDir;
  readonly listenPort: number;
  readonly epochd: Epochd;
  readonly program: Program;
  readonly envoyVersion: EnvoyVersion;
  /** New content of the bootstrap, by a rename. */
  edit(generation: string): void;
  /** Another executable in the place of Envoy's, by a rename. */
  install(version: EnvoyVersion): void;
}

/**
 * Everything that runs is a copy of its own: whoever compiles, edits or sets up meanwhile does not reach it. The versions of
 * Envoy are then linked from their copies into Envoy's place, which for epochd is a new file each time.
 */
export async function openStage(): Promise<Stage> {
  await using opened = new AsyncDisposableStack();
  const directory = opened.use(tempDir());
  const programs = directory.at("bin");
  Deno.mkdirSync(programs);
  for (const { name, isFile } of Deno.readDirSync(distDir)) {
    if (isFile && !name.startsWith(".")) Deno.copyFileSync(`${distDir}/${name}`, `${programs}/${name}`);
  }
  const copyOf = (version: EnvoyVersion) => `${programs}/envoy-${version}`;
  for (const version of ENVOY_VERSIONS) Deno.copyFileSync(envoyPath(version), copyOf(version));

  const envoy = directory.at("envoy");
  let installed: EnvoyVersion = NEWEST_ENVOY;
  const install = (version: EnvoyVersion) => {
    Deno.linkSync(copyOf(version), `${envoy}.new`);
    Deno.renameSync(`${envoy}.new`, envoy);
    installed = version;
  };
  install(installed);

  const [listenPort, adminPort, upstreamPort] = freePorts(3) as [number, number, number];
  opened.use(startUpstream(upstreamPort));
  const bootstrapPath = directory.at("envoy.yaml");
  const edit = (generation: string) =>
    void writeBootstrap(bootstrapPath, { listenPort, adminPort, upstreamPort, generation });
  edit("first");
  const program: Program = [`${programs}/epochd`];
  const epochd = opened.use(startEpochd({
    envoyPath: envoy,
    bootstrapPath,
    directory,
    program,
    drainTimeMs: DRAIN_MS,
    parentShutdownTimeMs: PARENT_SHUTDOWN_MS,
    extraArguments: ["--watch-binary", "--debounce", "100ms"],
    // Ctrl-C is for the soak, which then ends epochd in good order.
    detached: true,
  }));
  await epochd.waitForEvent("epoch_live", undefined, { timeoutMs: 120_000 });
  await epochd.waitForEvent("watch_changed", ({ subject }) => subject === "binary", { timeoutMs: 120_000 });
  const all = opened.move();
  return {
    directory,
    listenPort,
    epochd,
    program,
    get envoyVersion() {
      return installed;
    },
    edit,
    install,
    [Symbol.asyncDispose]: () => all.disposeAsync(),
  };
}
