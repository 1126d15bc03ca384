/** Where the toolchain stands that setup.py brings. Owns paths only: it installs and starts nothing. */
import { join, resolve } from "node:path";

export const projectDir: string = resolve(import.meta.dirname!, "..");

const configuredDir = Deno.env.get("TOOLS_DIR");
export const toolsDir: string = configuredDir ? resolve(configuredDir) : join(projectDir, ".tools");

export type EnvoyVersion = "1.40.0" | "1.39.3" | "1.38.3";

export function envoyPath(version: EnvoyVersion = "1.40.0"): string {
  return join(toolsDir, "envoy", version, "envoy");
}
