// Owns: running helm on the project's chart, without a cluster. Must not: install anything.
import { join } from "node:path";
import { projectDir } from "../../tools/toolchain.ts";
import { binariesObstacle, helmPath } from "../cluster/support/binaries.ts";

export const chartDir: string = join(projectDir, "charts/epochd");
export const helmObstacle: string | undefined = await binariesObstacle();

export interface Ended {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

export async function helm(...args: string[]): Promise<Ended> {
  const nowhere = "/nonexistent";
  const { code, stdout, stderr } = await new Deno.Command(helmPath, {
    args,
    env: { HELM_CACHE_HOME: nowhere, HELM_CONFIG_HOME: nowhere, HELM_DATA_HOME: nowhere, KUBECONFIG: nowhere },
    stdin: "null",
  }).output();
  const decoder = new TextDecoder();
  return { code, stdout: decoder.decode(stdout), stderr: decoder.decode(stderr) };
}

/** As release `edge` in namespace `gateways`. */
export async function template(...args: string[]): Promise<Ended> {
  return await helm("template", "edge", chartDir, "--namespace", "gateways", ...args);
}
