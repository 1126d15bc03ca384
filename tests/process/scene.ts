// Owns: the stage of a process test: a fake Envoy, a bootstrap for it, and the epochd that supervises it.
// Must not: know what is tested.
import { writeBootstrap } from "../support/bootstrap.ts";
import { type Epochd, type EpochdOptions, startEpochd } from "../support/epochd.ts";
import { type FakeBehaviours, type FakeEnvoy, fakeEnvoy } from "../support/fake_envoy.ts";
import type { LogEvent } from "../support/log_lines.ts";
import { freePort } from "../support/ports.ts";
import { type TempDir, tempDir } from "../support/tempdir.ts";

export interface Scene extends AsyncDisposable {
  readonly directory: TempDir;
  readonly envoy: FakeEnvoy;
  readonly bootstrapPath: string;
  /** Replaces the bootstrap by one of another content. */
  edit(): void;
  start(options?: Partial<EpochdOptions>): Epochd;
}

export function scene(behaviours: FakeBehaviours = {}): Scene {
  const directory = tempDir();
  const envoy = fakeEnvoy(directory.path, behaviours);
  const adminPort = freePort();
  const bootstrapPath = directory.at("envoy.yaml");
  let generation = 0;
  const edit = () => void writeBootstrap(bootstrapPath, { listenPort: 1, adminPort, generation: String(generation++) });
  edit();
  const started: Epochd[] = [];
  return {
    directory,
    envoy,
    bootstrapPath,
    edit,
    start(options = {}) {
      const epochd = startEpochd({
        envoyPath: envoy.path,
        bootstrapPath,
        directory,
        drainTimeMs: 1_000,
        parentShutdownTimeMs: 2_000,
        ...options,
      });
      started.push(epochd);
      return epochd;
    },
    async [Symbol.asyncDispose]() {
      for (const epochd of started.toReversed()) await epochd[Symbol.asyncDispose]();
      await directory[Symbol.asyncDispose]();
    },
  };
}

export function eventsOf(epochd: Epochd, ...names: string[]): LogEvent[] {
  return epochd.log.events.filter(({ event }) => names.includes(event));
}
