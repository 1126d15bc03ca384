// Owns: one single-node Kubernetes for tests: up, questions to it, down. Must not: know what is installed on it.
import { existsSync } from "node:fs";
import { join } from "node:path";
import { writeImage } from "../../support/image.ts";
import { tempDir } from "../../support/tempdir.ts";
import { binariesObstacle, clusterDir, has, helmPath, kubectlPath, lastLine, nodeDir } from "./binaries.ts";

export const NODE_ADDRESS = "10.99.0.1";
const NETNS = "/run/netns/epochd-cluster";
const decoder = new TextDecoder();

export interface Ended {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

/** Why no cluster can be had here; undefined where one can. Builds and installs what is missing. */
export async function clusterObstacle(): Promise<string | undefined> {
  if (Deno.env.get("EPOCHD_CLUSTER") === "off") return "EPOCHD_CLUSTER=off";
  if (Deno.uid() !== 0) return "a cluster needs root";
  for (const program of ["gcc", "unshare", "nsenter", "apt-get"]) {
    if (!await has(program)) return `a cluster needs ${program}`;
  }
  const namespaces = await run("unshare", ["--mount", "--net", "--pid", "--fork", "true"]);
  if (namespaces.code !== 0) return `namespaces are out of reach: ${namespaces.stderr.trim()}`;
  const binaries = await binariesObstacle();
  if (binaries !== undefined) return binaries;
  for (const script of ["packages.sh", "pause.sh"]) {
    const { success, stderr } = await new Deno.Command("bash", { args: [join(nodeDir, script)], stdout: "null" })
      .output();
    if (!success) return `${script} failed: ${lastLine(stderr)}`;
  }
  return undefined;
}

/** A command that failed, with what it said. */
export class CommandFailure extends Error {
  constructor(readonly command: string, readonly ended: Ended) {
    super(`${command} ended with ${ended.code}: ${ended.stderr.trim() || ended.stdout.trim()}`);
  }
}

export class Cluster implements AsyncDisposable {
  private constructor(private readonly lock: Deno.FsFile) {}

  /** The archives hold the images that pods name; the pause image is added. */
  static async up(archives: readonly string[]): Promise<Cluster> {
    await Deno.mkdir(clusterDir, { recursive: true });
    const lock = await Deno.open(join(clusterDir, "lock"), { create: true, write: true });
    // One cluster a machine: whoever holds this may take down what an aborted run left.
    await lock.lock(true);
    const cluster = new Cluster(lock);
    if (existsSync(join(clusterDir, "run/kept"))) {
      lock.close();
      throw new Error("the local cluster is up: run `make cluster-down` first");
    }
    try {
      await script("down.sh");
      await script("pki.sh");
      await using directory = tempDir();
      const pause = directory.at("pause.tar");
      const files = [{ path: "/pause", from: join(clusterDir, "img/pause"), mode: 0o755 }];
      await writeImage({ name: "localhost/pause:1", files, entrypoint: ["/pause"] }, pause);
      await script("up.sh", pause, ...archives);
      return cluster;
    } catch (error) {
      await cluster[Symbol.asyncDispose]();
      throw error;
    }
  }

  /** Leaves it running when this process ends; down.sh is someone else's then. */
  async keep(): Promise<void> {
    await Deno.writeTextFile(join(clusterDir, "run/kept"), "");
    this.lock.close();
  }

  async load(...archives: string[]): Promise<void> {
    await script("load.sh", ...archives);
  }

  /** A command on the node's network, whatever its exit code. */
  async onNode(command: string, args: readonly string[]): Promise<Ended> {
    return await run("nsenter", [`--net=${NETNS}`, command, ...args]);
  }

  /** A long running command on the node's network. */
  spawnOnNode(command: string, args: readonly string[]): Deno.ChildProcess {
    return new Deno.Command("nsenter", {
      args: [`--net=${NETNS}`, command, ...args],
      cwd: "/",
      env: environment(),
      stdin: "piped",
      stdout: "piped",
      stderr: "inherit",
    }).spawn();
  }

  async kubectl(...args: string[]): Promise<string> {
    return (await this.must(kubectlPath, args)).stdout;
  }

  async tryKubectl(...args: string[]): Promise<Ended> {
    return await this.onNode(kubectlPath, args);
  }

  // deno-lint-ignore no-explicit-any
  async json(...args: string[]): Promise<any> {
    return JSON.parse(await this.kubectl(...args, "-o", "json"));
  }

  /** The API's answer as a stream of objects, one a line, until the process is ended. */
  watch(path: string): Deno.ChildProcess {
    return this.spawnOnNode(kubectlPath, ["get", "--raw", path]);
  }

  async apply(manifest: unknown, namespace = "default"): Promise<void> {
    await this.pipe(JSON.stringify(manifest), "-n", namespace, "apply", "-f", "-");
  }

  /** kubectl with something to read. */
  async pipe(input: string, ...args: string[]): Promise<void> {
    const child = this.spawnOnNode(kubectlPath, args);
    const writer = child.stdin.getWriter();
    await writer.write(new TextEncoder().encode(input));
    await writer.close();
    const { success, stdout } = await child.output();
    if (!success) throw new Error(`kubectl ${args.join(" ")} failed: ${decoder.decode(stdout)}`);
  }

  /** kubectl with a file as its standard input, as `kubectl ... < FILE`. */
  async kubectlFrom(path: string, ...args: string[]): Promise<Ended> {
    const child = this.spawnOnNode(kubectlPath, args);
    const file = await Deno.open(path);
    const [{ code, stdout }] = await Promise.all([
      child.output(),
      // One that has ended early, by a refusal, reads no more.
      file.readable.pipeTo(child.stdin).catch(() => {}),
    ]);
    // What it says on stderr goes to this process's.
    return { code, stdout: decoder.decode(stdout), stderr: "" };
  }

  async helm(...args: string[]): Promise<string> {
    return (await this.must(helmPath, args)).stdout;
  }

  async tryHelm(...args: string[]): Promise<Ended> {
    return await this.onNode(helmPath, args);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    try {
      await script("down.sh");
    } finally {
      this.lock.close();
    }
  }

  private async must(command: string, args: readonly string[]): Promise<Ended> {
    const ended = await this.onNode(command, args);
    if (ended.code !== 0) throw new CommandFailure(`${command} ${args.join(" ")}`, ended);
    return ended;
  }
}

function environment(): Record<string, string> {
  const helm = join(clusterDir, "run/helm");
  return {
    CLUSTER_DIR: clusterDir,
    KUBECONFIG: join(clusterDir, "admin.conf"),
    HELM_CACHE_HOME: `${helm}/cache`,
    HELM_CONFIG_HOME: `${helm}/config`,
    HELM_DATA_HOME: `${helm}/data`,
    NO_PROXY: "*",
  };
}

async function script(name: string, ...args: string[]): Promise<void> {
  const ended = await run("bash", [join(nodeDir, name), ...args]);
  if (ended.code !== 0) throw new CommandFailure(name, ended);
}

async function run(command: string, args: readonly string[]): Promise<Ended> {
  const child = new Deno.Command(command, { args: [...args], cwd: "/", env: environment(), stdin: "null" });
  const { code, stdout, stderr } = await child.output();
  return { code, stdout: decoder.decode(stdout), stderr: decoder.decode(stderr) };
}
