// Owns: a real Envoy whose `--mode validate` never ends. Must not: change anything else about it.

import { processFacts } from "../../support/procfs.ts";
import type { TempDir } from "../../support/tempdir.ts";
import { until } from "../../support/until.ts";

export interface SlowValidator {
  readonly envoy: string;
  /** Waits for a validation and gives its pid. */
  validating(): Promise<number>;
}

export function slowValidator(directory: TempDir, envoyPath: string): SlowValidator {
  const pidFile = directory.at("validator.pid");
  const envoy = directory.write(
    "envoy-slow",
    [
      "#!/bin/sh",
      `case " $* " in *" --mode validate "*) echo $$ > '${pidFile}.new'; mv '${pidFile}.new' '${pidFile}'; exec sleep 1000;; esac`,
      `exec '${envoyPath}' "$@"`,
      "",
    ].join("\n"),
  );
  Deno.chmodSync(envoy, 0o755);
  return {
    envoy,
    validating: () =>
      until("the validator runs", () => {
        const pid = Number(Deno.readTextFileSync(pidFile));
        return processFacts(pid) !== undefined && pid;
      }),
  };
}
