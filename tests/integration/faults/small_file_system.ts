// Owns: a file system that can be full. Must not: be used where mounting is not allowed; it says so.

import { tempDir } from "../../support/tempdir.ts";
import type { Stage } from "./stage.ts";

export interface SmallFileSystem {
  readonly path: string;
  fill(): void;
  empty(): void;
}

/** Undefined where this user may not mount. `size` as mount(8) takes it. */
export function smallFileSystem(stage: Pick<Stage, "use">, size = "64k"): SmallFileSystem | undefined {
  const { path } = stage.use(tempDir());
  if (!run("mount", "-t", "tmpfs", "-o", `size=${size},mode=0700`, "tmpfs", path)) return undefined;
  stage.use({ [Symbol.dispose]: () => void run("umount", "--lazy", path) });
  const ballast = `${path}/ballast`;
  return {
    path,
    fill() {
      using file = Deno.openSync(ballast, { create: true, append: true });
      const bytes = new Uint8Array(4096);
      try {
        while (file.writeSync(bytes) > 0);
      } catch {
        // Full, as wanted.
      }
    },
    empty: () => Deno.removeSync(ballast),
  };
}

function run(command: string, ...args: string[]): boolean {
  try {
    return new Deno.Command(command, { args, stdout: "null", stderr: "null" }).outputSync().success;
  } catch {
    return false;
  }
}
