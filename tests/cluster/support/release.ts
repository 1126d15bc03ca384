// Owns: the chart as a release on the test cluster, with images made here. Must not: judge.
import { join } from "node:path";
import { projectDir } from "../../../tools/toolchain.ts";
import { bootstrapText } from "../../support/bootstrap.ts";
import type { EnvoyVersion } from "../../support/envoys.ts";
import { envoyImage, epochdImage, writeImages } from "../../support/images.ts";
import { tempDir } from "../../support/tempdir.ts";
import { type Cluster, type Ended, NODE_ADDRESS } from "./cluster.ts";

export const chartDir: string = join(projectDir, "charts/epochd");
export const UPSTREAM_PORT = 18_080;
export const LISTEN_PORT = 10_000;
export const ADMIN_PORT = 9_901;

/** Archives of all images that the tests of the chart name. */
export async function chartImages(versions: readonly EnvoyVersion[], directory: string): Promise<string[]> {
  const envoys = await Promise.all(versions.map((version) => envoyImage(version, `localhost/envoy:${version}`)));
  return await writeImages([...envoys, await epochdImage("localhost/epochd:test")], directory);
}

/** Answers `/direct` by itself and sends the rest to the upstream on the node; `generation` comes back in every answer. */
export function releaseBootstrap(generation: string, listenPort = LISTEN_PORT): string {
  return bootstrapText({
    adminPort: ADMIN_PORT,
    listenPort,
    listenAddress: "0.0.0.0",
    upstreamPort: UPSTREAM_PORT,
    generation,
    change: (bootstrap) => {
      const [cluster] = bootstrap.static_resources.clusters;
      cluster.load_assignment.endpoints[0].lb_endpoints[0].endpoint.address.socket_address.address = NODE_ADDRESS;
    },
  });
}

export interface ReleaseValues {
  readonly generation: string;
  readonly envoyVersion: EnvoyVersion;
  readonly listenPort?: number;
  readonly set?: Readonly<Record<string, string | number | boolean>>;
}

export class Release {
  constructor(readonly cluster: Cluster, readonly namespace: string, readonly name: string) {}

  /** Installs or upgrades and waits for the roll; on a failure the caller sees what helm said. */
  async upgrade(values: ReleaseValues, ...more: string[]): Promise<void> {
    const ended = await this.tryUpgrade(values, ...more);
    if (ended.code !== 0) throw new Error(`helm upgrade failed: ${ended.stderr}`);
    await this.rolled();
  }

  /** helm's --wait takes a DaemonSet for ready as soon as maxUnavailable allows it: of one node, at once. */
  async rolled(): Promise<void> {
    await this.cluster.kubectl("-n", this.namespace, "rollout", "status", `ds/${this.name}`, "--timeout=180s");
  }

  async tryUpgrade(values: ReleaseValues, ...more: string[]): Promise<Ended> {
    await using directory = tempDir();
    const bootstrap = directory.write("envoy.yaml", releaseBootstrap(values.generation, values.listenPort));
    const settings = {
      "envoy.image.repository": "localhost/envoy",
      "envoy.image.tag": values.envoyVersion,
      "envoy.image.pullPolicy": "Never",
      "epochd.image.repository": "localhost/epochd",
      "epochd.image.tag": "test",
      "epochd.image.pullPolicy": "Never",
      "settings.concurrency": 1,
      ...values.set,
    };
    return await this.cluster.tryHelm(
      ...[
        "upgrade",
        "--install",
        this.name,
        chartDir,
        "-n",
        this.namespace,
        "--set-file",
        `envoy.bootstrap=${bootstrap}`,
      ],
      ...Object.entries(settings).flatMap(([key, value]) => ["--set", `${key}=${value}`]),
      ...more,
    );
  }

  /** Replaces the bootstrap behind helm's back, as `kubectl edit` does. */
  async edit(bootstrap: string): Promise<void> {
    const patch = JSON.stringify({ data: { "envoy.yaml": bootstrap } });
    await this.cluster.kubectl("-n", this.namespace, "patch", "configmap", `${this.name}-bootstrap`, "-p", patch);
  }

  async exec(pod: string, ...command: string[]): Promise<Ended> {
    return await this.cluster.tryKubectl("-n", this.namespace, "exec", pod, "-c", "envoy", "--", ...command);
  }

  /** The one service of `epochd status --json`. */
  // deno-lint-ignore no-explicit-any
  async status(pod: string): Promise<any> {
    const { code, stdout, stderr } = await this.exec(pod, "epochd", "status", "--json");
    if (code !== 0) throw new Error(`epochd status in ${pod} ended with ${code}: ${stderr}`);
    return JSON.parse(stdout).services.envoy;
  }

  async log(pod: string, ...more: string[]): Promise<string> {
    return await this.cluster.kubectl("-n", this.namespace, "logs", pod, "-c", "envoy", ...more);
  }

  async uninstall(): Promise<void> {
    await this.cluster.helm("uninstall", this.name, "-n", this.namespace, "--wait");
  }
}
