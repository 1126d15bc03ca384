// Owns: a Docker daemon of the test's own - its data, its socket, no bridge, no firewall rules - and commands to it.
// Must not: touch a daemon that is there already.
import { existsSync } from "node:fs";
import { type TempDir, tempDir } from "../support/tempdir.ts";
import { until, within } from "../support/until.ts";

const decoder = new TextDecoder();

export interface Ended {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

/** Debian's packages, and a file of each that tells whether it is there. */
const PACKAGES: Readonly<Record<string, string>> = {
  "docker.io": "/usr/sbin/dockerd",
  "busybox-static": "/bin/busybox",
};

/** Why there can be no daemon here; installs Debian's packages where they are missing. */
export async function dockerObstacle(): Promise<string | undefined> {
  if (Deno.uid() !== 0) return "a Docker daemon needs root";
  const namespaces = await run("unshare", ["--mount", "--pid", "--net", "--fork", "true"]);
  if (namespaces.code !== 0) return `namespaces are out of reach: ${namespaces.stderr.trim()}`;
  const missing = Object.keys(PACKAGES).filter((name) => !existsSync(PACKAGES[name]!));
  if (missing.length === 0) return undefined;
  if (!existsSync("/usr/bin/apt-get")) return `${missing.join(" and ")} can't be installed: this is no Debian`;
  const apt = async (...args: string[]) => {
    const { code, stderr } = await run("apt-get", args);
    return code === 0 ? undefined : `apt-get ${args[0]} failed: ${stderr.trim().split("\n").at(-1)}`;
  };
  const updated = await apt("update", "-qq");
  if (updated !== undefined) return updated;
  // Before Debian 13 the client is a part of docker.io.
  if (missing.includes("docker.io") && (await run("apt-cache", ["show", "docker-cli"])).code === 0) {
    missing.push("docker-cli");
  }
  return await apt("install", "-y", "-qq", "--no-install-recommends", ...missing);
}

export class Docker implements AsyncDisposable {
  private constructor(
    private readonly directory: TempDir,
    private readonly daemon: Deno.ChildProcess,
    private readonly log: Promise<string>,
  ) {}

  static async start(): Promise<Docker> {
    const directory = tempDir();
    // In a mount namespace of its own: it leaves a mount behind.
    const daemon = new Deno.Command("unshare", {
      args: [
        ...["--mount", "/usr/sbin/dockerd"],
        ...["--data-root", directory.at("data"), "--exec-root", directory.at("exec"), "--pidfile", directory.at("pid")],
        ...["--host", `unix://${directory.at("docker.sock")}`, "--bridge", "none"],
        ...["--iptables=false", "--ip6tables=false", "--ip-forward=false", "--ip-masq=false", "--log-level", "warn"],
      ],
      stdin: "null",
      stdout: "null",
      stderr: "piped",
      // It sets up namespaces and cgroups: a Ctrl-C of the test run must reach the test alone.
      detached: true,
    }).spawn();
    const log = new Response(daemon.stderr).text();
    const docker = new Docker(directory, daemon, log);
    try {
      await until("the Docker daemon answers", async () => (await docker.try("version")).code === 0);
      return docker;
    } catch (error) {
      await docker[Symbol.asyncDispose]();
      throw new Error(`${error}\n${await log}`);
    }
  }

  async try(...args: string[]): Promise<Ended> {
    // BuildKit is what people use; the daemon brings it, and Debian's client can speak to it.
    const env = { DOCKER_BUILDKIT: "1", BUILDKIT_PROGRESS: "plain", DOCKER_CONFIG: this.directory.at("config") };
    return await run("/usr/bin/docker", ["--host", `unix://${this.directory.at("docker.sock")}`, ...args], env);
  }

  async must(...args: string[]): Promise<string> {
    const { code, stdout, stderr } = await this.try(...args);
    if (code !== 0) throw new Error(`docker ${args.join(" ")} ended with ${code}: ${stderr || stdout}`);
    return stdout;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const containers = (await this.try("ps", "--all", "--quiet")).stdout.split("\n").filter((id) => id !== "");
    if (containers.length > 0) await this.try("rm", "--force", ...containers);
    this.daemon.kill("SIGTERM");
    await within("the end of the Docker daemon", this.daemon.status, 30_000).catch(() => this.daemon.kill("SIGKILL"));
    await this.log;
    await this.directory[Symbol.asyncDispose]();
  }
}

async function run(command: string, args: readonly string[], env: Record<string, string> = {}): Promise<Ended> {
  const { code, stdout, stderr } = await new Deno.Command(command, { args: [...args], env, stdin: "null" }).output();
  return { code, stdout: decoder.decode(stdout), stderr: decoder.decode(stderr) };
}
