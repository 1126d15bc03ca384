// Owns: the Go supervisor of this design, as far as another one can see it: bare Envoys, and a beat every second under flock(1), for
// whose lock it waits. Must not: know of owner.json or handoff.lock.

import { type BareEnvoy, type EnvoyOptions, spawnEnvoy } from "../../support/envoys.ts";
import { within } from "../../support/until.ts";

export interface GoSupervisor extends AsyncDisposable {
  readonly envoy: BareEnvoy;
  /** Beats that could not be written within a second: somebody else held the lock for too long. */
  readonly missed: number;
}

export async function goSupervisor(
  options: EnvoyOptions & { readonly stateDir: string; readonly adminPort: number },
): Promise<GoSupervisor> {
  const { stateDir, adminPort, epoch = 0 } = options;
  Deno.mkdirSync(stateDir, { recursive: true, mode: 0o700 });
  const more = epoch > 0 ? { extraArguments: ["--skip-hot-restart-on-no-parent"] } : {};
  const envoy = spawnEnvoy({ ...options, ...more });
  await envoy.untilLive({ port: adminPort });
  const [missedFile, stopFile] = [`${stateDir}/.missed-${epoch}`, `${stateDir}/.stop-${epoch}`];
  Deno.writeTextFileSync(missedFile, "");
  const script = `
    cd "$1"
    while [ ! -e "$3" ]; do
      flock -w 1 epoch.lock sh -c 'printf "%s %s\\n" "$1" "$(date +%s%3N)" > epoch.go && mv epoch.go epoch' - "$2" || echo . >> "$4"
      sleep 1
    done`;
  const loop = new Deno.Command("sh", { args: ["-c", script, "-", stateDir, String(epoch), stopFile, missedFile] })
    .spawn();
  // It beats as long as its Envoy serves, and no longer than it lives.
  const over = envoy.exit.then(() => Deno.writeTextFileSync(stopFile, ""));
  return {
    envoy,
    get missed() {
      return Deno.readTextFileSync(missedFile).length / 2;
    },
    async [Symbol.asyncDispose]() {
      await envoy[Symbol.asyncDispose]();
      await over;
      await within("the end of the beats", loop.status);
    },
  };
}
