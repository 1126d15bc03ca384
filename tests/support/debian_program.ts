// Owns: programs of Debian's packages that tests need and the toolchain does not bring. Must not: install anything where it is not root.
import { existsSync } from "node:fs";

export interface DebianProgram {
  readonly path: string;
  /** Why it is not there. */
  readonly obstacle?: string;
}

let updated = false;

/** Installs the package where the program is missing and that is possible. */
export async function debianProgram(name: string, packageName = name): Promise<DebianProgram> {
  const path = `/usr/bin/${name}`;
  if (existsSync(path)) return { path };
  if (Deno.uid() !== 0 || !existsSync("/usr/bin/apt-get")) {
    return { path, obstacle: `${name} is missing (Debian: ${packageName})` };
  }
  for (
    const args of [...(updated ? [] : [["update", "-qq"]]), [
      "install",
      "-y",
      "-qq",
      "--no-install-recommends",
      packageName,
    ]]
  ) {
    const { code, stderr } = await new Deno.Command("apt-get", {
      args,
      env: { DEBIAN_FRONTEND: "noninteractive" },
      stdin: "null",
      stdout: "null",
      stderr: "piped",
    }).output();
    if (code !== 0) {
      return { path, obstacle: `apt-get ${args[0]}: ${new TextDecoder().decode(stderr).trim().split("\n").at(-1)}` };
    }
    updated = true;
  }
  return { path };
}
