// Owns: a configuration at work over services by hand, with a real epochd.yaml, for a test. Must not: outlive the test.

import assert from "node:assert/strict";
import { ConfigHistory } from "../../../lib/config/history.ts";
import type { FlagValues } from "../../../lib/config/flags.ts";
import { type Environment, loadRunConfig } from "../../../lib/config/load.ts";
import { problemLine } from "../../../lib/config/problem.ts";
import type { LogConfig } from "../../../lib/config/run_config.ts";
import { writtenConfig } from "../../../lib/config/written.ts";
import type { ShellFact } from "../../../lib/observe/shell_fact.ts";
import { Configuration } from "../../../lib/runtime/configuration.ts";
import { type TempDir, tempDir } from "../../support/tempdir.ts";
import { FakeFleet } from "./fake_fleet.ts";

export interface ConfigScene extends AsyncDisposable {
  readonly dir: TempDir;
  /** epochd.yaml. */
  readonly path: string;
  readonly fleet: FakeFleet;
  readonly configuration: Configuration;
  readonly told: ShellFact[];
  readonly logs: LogConfig[];
  stopping: boolean;
  /** What epochd.yaml holds. */
  text(): string;
  /** Replaces a part of it. */
  edit(from: string, to: string): void;
}

export interface ConfigSceneOptions {
  readonly dir?: TempDir;
  readonly flags?: FlagValues;
  readonly environment?: Environment;
  /** False: flags alone. */
  readonly file?: boolean;
  readonly text?: (paths: { readonly bootstrap: string; readonly envoy: string; readonly dir: string }) => string;
}

export const twoServices: NonNullable<ConfigSceneOptions["text"]> = ({ bootstrap, envoy, dir }) =>
  `# what runs here
services:
  edge: # faces the world
    envoy_path: ${envoy}
    envoy_config: ${bootstrap}
    base_id: 1
    concurrency: 1
    drain_time: 10s # as the fleet has it
    state_dir: ${dir}/state
  core:
    envoy_path: ${envoy}
    envoy_config: ${bootstrap}
    base_id: 2
    concurrency: 1
log:
  level: info
`;

export async function configScene(options: ConfigSceneOptions = {}): Promise<ConfigScene> {
  const dir = options.dir ?? tempDir();
  const envoy = dir.write("envoy", "#!/bin/false\n");
  Deno.chmodSync(envoy, 0o755);
  const bootstrap = dir.write("envoy.yaml", "{}\n");
  dir.write("other.yaml", "{}\n");
  Deno.mkdirSync(dir.at("state"), { recursive: true });
  const text = (options.text ?? twoServices)({ bootstrap, envoy, dir: dir.path });
  const path = options.file === false ? dir.at("none.yaml") : dir.write("epochd.yaml", text);
  const base: FlagValues = options.file === false
    ? { "envoy-path": envoy, "envoy-config": bootstrap, "state-dir": dir.at("state") }
    : { config: path };
  const loaded = await loadRunConfig({ ...base, ...options.flags }, options.environment ?? {});
  if (loaded.kind === "refused") assert.fail(loaded.problems.map(problemLine).join("\n"));
  const fleet = new FakeFleet(Object.keys(loaded.config.services));
  const told: ShellFact[] = [];
  const logs: LogConfig[] = [];
  const scene = { stopping: false };
  const configuration = new Configuration({
    loaded,
    fleet,
    history: new ConfigHistory(dir.at("state")),
    tell: (fact) => void told.push(fact),
    useLog: (log) => void logs.push(log),
    useApi: () => {},
    isStopping: () => scene.stopping,
  }, writtenConfig(loaded.fields));
  await configuration.begin();
  return Object.assign(scene, {
    dir,
    path,
    fleet,
    configuration,
    told,
    logs,
    text: () => Deno.readTextFileSync(path),
    edit: (from: string, to: string) => {
      const before = Deno.readTextFileSync(path);
      assert.ok(before.includes(from), `${from} is not in ${before}`);
      Deno.writeTextFileSync(path, before.replace(from, to));
    },
    async [Symbol.asyncDispose]() {
      if (options.dir === undefined) await dir[Symbol.asyncDispose]();
    },
  });
}
