// Owns: helm and the parts of Kubernetes as test programs: where they are, and building them where they are not.
// Must not: start a cluster.
import { existsSync } from "node:fs";
import { join } from "node:path";

export const nodeDir: string = join(import.meta.dirname!, "../node");
export const clusterDir: string = Deno.env.get("CLUSTER_DIR") ??
  join(Deno.env.get("XDG_CACHE_HOME") ?? join(Deno.env.get("HOME") ?? "/root", ".cache"), "epochd-cluster");

export const helmPath: string = join(clusterDir, "bin/helm");
export const kubectlPath: string = join(clusterDir, "bin/kubectl");

/** From nothing: six minutes on two cores. */
const BUILD_LIMIT_MS = 20 * 60_000;

/** Builds what is not built yet; resolves to the reason where that is out of reach. */
export async function binariesObstacle(): Promise<string | undefined> {
  if (Deno.env.get("EPOCHD_CLUSTER") === "off") return "EPOCHD_CLUSTER=off";
  if (Deno.build.os !== "linux") return "Linux is needed";
  if (!await has("go") && !existsSync(kubectlPath)) return "Go is needed to build helm and Kubernetes";
  if (!await has("go")) return undefined;
  if (!existsSync(kubectlPath)) {
    const text = "building helm and Kubernetes from Go modules, which takes minutes the first time\n";
    Deno.stderr.writeSync(new TextEncoder().encode(text));
  }
  const { success, stderr } = await new Deno.Command("bash", {
    args: [join(nodeDir, "build.sh")],
    stdin: "null",
    stdout: "null",
    stderr: "piped",
    signal: AbortSignal.timeout(BUILD_LIMIT_MS),
  }).output();
  return success ? undefined : `helm and Kubernetes can't be built: ${lastLine(stderr)}`;
}

export async function has(program: string): Promise<boolean> {
  const { success } = await new Deno.Command("sh", { args: ["-c", `command -v ${program}`], stdout: "null" }).output();
  return success;
}

export function lastLine(bytes: Uint8Array): string {
  return new TextDecoder().decode(bytes).trim().split("\n").at(-1) ?? "";
}
