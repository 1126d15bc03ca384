// Owns: an Envoy that notes how it was called. Must not: change what it does.

import { tempDir } from "../../support/tempdir.ts";
import type { Stage } from "./stage.ts";

export interface CountingEnvoy {
  readonly path: string;
  validations(): number;
  /** As an epoch. */
  starts(): number;
}

export function countingEnvoy(stage: Stage, envoyPath: string): CountingEnvoy {
  const directory = stage.use(tempDir());
  const calls = directory.write("calls", "");
  const path = directory.write("envoy", `#!/bin/sh\necho "$*" >> '${calls}'\nexec '${envoyPath}' "$@"\n`);
  Deno.chmodSync(path, 0o755);
  const count = (flag: string) =>
    Deno.readTextFileSync(calls).split("\n").filter((line) => ` ${line} `.includes(` ${flag} `)).length;
  return { path, validations: () => count("--mode validate"), starts: () => count("--restart-epoch") };
}
