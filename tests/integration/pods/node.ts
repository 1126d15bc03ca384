// Owns: the stage of the pod tests: a node with ports, upstream, a state directory, its pods and the traffic. Must not: judge.

import { freeBaseId } from "../../support/base_ids.ts";
import { type BootstrapOptions, writeBootstrap } from "../../support/bootstrap.ts";
import { freePorts } from "../../support/ports.ts";
import { type TempDir, tempDir } from "../../support/tempdir.ts";
import { startTraffic, type Traffic, type TrafficOptions } from "../../support/traffic.ts";
import { startUpstream } from "../../support/upstream.ts";
import { Pod, type PodOptions, sweep } from "./pod.ts";

export interface Node extends AsyncDisposable {
  readonly directory: TempDir;
  readonly stateDir: string;
  readonly baseId: number;
  readonly listenPort: number;
  readonly adminPort: number;
  readonly pods: readonly Pod[];
  /** A bootstrap of its own for the pod, with these changes to the node's. */
  bootstrap(name: string, changes?: Partial<BootstrapOptions>): string;
  pod(name: string, options?: Partial<PodOptions> & { readonly bootstrap?: Partial<BootstrapOptions> }): Pod;
  traffic(options?: Partial<TrafficOptions>): Traffic;
}

export function node(base: Partial<BootstrapOptions> = {}, baseId = freeBaseId()): Node {
  const directory = tempDir();
  const stateDir = directory.at("state");
  const [listenPort, adminPort, upstreamPort] = freePorts(3) as [number, number, number];
  const upstream = startUpstream(upstreamPort);
  const common: BootstrapOptions = { listenPort, adminPort, upstreamPort, ...base };
  const pods: Pod[] = [];
  const flowing: Traffic[] = [];
  const bootstrap = (name: string, changes: Partial<BootstrapOptions> = {}) =>
    writeBootstrap(directory.at(`${name}.yaml`), { ...common, generation: name, ...changes });
  return {
    directory,
    stateDir,
    baseId,
    listenPort,
    adminPort,
    pods,
    bootstrap,
    pod(name, { bootstrap: changes, ...options } = {}) {
      const bootstrapPath = options.bootstrapPath ?? bootstrap(name, changes);
      const pod = new Pod({ name, directory: directory.at(name), stateDir, baseId, bootstrapPath, ...options });
      pods.push(pod);
      return pod;
    },
    traffic(options = {}) {
      const traffic = startTraffic({ port: listenPort, ...options });
      flowing.push(traffic);
      return traffic;
    },
    async [Symbol.asyncDispose]() {
      for (const traffic of flowing) await traffic.stop();
      await sweep(pods, baseId);
      await upstream[Symbol.asyncDispose]();
      await directory[Symbol.asyncDispose]();
    },
  };
}
