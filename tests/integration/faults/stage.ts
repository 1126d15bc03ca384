// Owns: what one scenario starts, the sum of its traffic, and that all of it ends, the last first.
// Must not: know any fault, or judge.

import { type Epochd, type EpochdOptions, startEpochd } from "../../support/epochd.ts";
import { envoyPath } from "../../support/envoys.ts";
import { freePorts } from "../../support/ports.ts";
import { type TempDir, tempDir } from "../../support/tempdir.ts";
import { startTraffic, type Traffic, type TrafficOptions, type TrafficReport } from "../../support/traffic.ts";
import { startUpstream } from "../../support/upstream.ts";
import type { BootstrapOptions } from "../../support/bootstrap.ts";
import { Scene } from "./scene.ts";

export interface SceneOptions extends Partial<Omit<EpochdOptions, "bootstrapPath">> {
  /** Beside ports, admin and upstream, which the scene gives. */
  readonly bootstrap?: Partial<BootstrapOptions>;
  readonly traffic?: Omit<Partial<TrafficOptions>, "port">;
  /** What is there before epochd starts: a poisoned segment, a file. */
  readonly before?: (scene: { readonly directory: TempDir; readonly baseId: number }) => unknown;
}

type Totals = Pick<TrafficReport, "requests" | "failed" | "streamsBroken" | "failuresByKind" | "failures">;

export class Stage implements AsyncDisposable {
  readonly #stack = new AsyncDisposableStack();
  readonly #traffics: Traffic[] = [];
  readonly #epochds: Epochd[] = [];

  /** Anything with an end of its own: a black hole, a listener, a bare Envoy. */
  use<T extends Disposable | AsyncDisposable>(thing: T): T {
    return this.#stack.use(thing);
  }

  /** epochd with an Envoy that is LIVE, and traffic on it. */
  async serve(options: SceneOptions = {}): Promise<Scene> {
    const scene = this.prepare(options);
    await scene.epochd.waitForEvent("epoch_live");
    scene.traffic = this.load(scene.listenPort, { admin: { port: scene.adminPort }, ...options.traffic });
    return scene;
  }

  /** epochd that starts, and no traffic: where the start itself is what is tried. */
  prepare(options: SceneOptions = {}): Scene {
    const directory = options.directory ?? this.use(tempDir());
    const [adminPort, listenPort, upstreamPort] = freePorts(3) as [number, number, number];
    this.use(startUpstream(upstreamPort));
    const base = { adminPort, listenPort, upstreamPort, generation: "first", ...options.bootstrap };
    const scene = new Scene(directory, base);
    scene.write();
    const baseId = options.baseId;
    const { bootstrap: _b, traffic: _t, before, ...rest } = options;
    if (before !== undefined && baseId !== undefined) before({ directory, baseId });
    const epochd = this.use(startEpochd({
      envoyPath: envoyPath(),
      drainTimeMs: 1_000,
      parentShutdownTimeMs: 2_000,
      ...rest,
      directory,
      bootstrapPath: scene.bootstrapPath,
    }));
    this.#epochds.push(epochd);
    this.#stack.defer(() => hurry(epochd));
    scene.epochd = epochd;
    return scene;
  }

  load(port: number, options: Omit<Partial<TrafficOptions>, "port"> = {}): Traffic {
    const traffic = this.use(startTraffic({ port, requestsPerSecond: 300, ...options }));
    this.#traffics.push(traffic);
    return traffic;
  }

  async stopTraffic(): Promise<Totals> {
    const total = { requests: 0, failed: 0, streamsBroken: 0, failuresByKind: {} as Record<string, number> };
    const failures: TrafficReport["failures"][number][] = [];
    for (const traffic of this.#traffics) {
      const report = await traffic.stop();
      total.requests += report.requests;
      total.failed += report.failed;
      total.streamsBroken += report.streamsBroken;
      failures.push(...report.failures);
      for (const [kind, count] of Object.entries(report.failuresByKind)) {
        total.failuresByKind[kind] = (total.failuresByKind[kind] ?? 0) + count;
      }
    }
    return { ...total, failures };
  }

  logs(): string {
    // Envoy lists its extensions and headers at every start.
    const isNoise = (line: string) => /server\.cc:(467|54\d)\]/.test(line);
    return this.#epochds.map(({ log }) => log.lines.filter((line) => !isNoise(line)).slice(-120).join("\n")).join(
      "\n--\n",
    );
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.#stack.disposeAsync();
  }
}

/** A second SIGTERM shortens the drain, which is nobody's subject once a scenario is over. */
async function hurry(epochd: Epochd): Promise<void> {
  const since = epochd.log.mark();
  epochd.signal("SIGTERM");
  const heard = epochd.waitForEvent("stop_asked", undefined, { since, timeoutMs: 2_000 });
  if (await heard.then(() => true, () => false)) epochd.signal("SIGTERM");
}
