import { deepStrictEqual, strictEqual } from "node:assert/strict";
import { BinaryDigests } from "../../../lib/adapters/digests.ts";
import { checkEnvoyArgs } from "../../../lib/adapters/envoy_args.ts";
import { ENVOY_FLAGS } from "../../../lib/adapters/envoy_flags.ts";
import { EnvoyProcesses } from "../../../lib/adapters/process.ts";
import { ENVOY_VERSIONS, envoyPath } from "../../support/envoys.ts";
import { fetchOnce } from "../../support/http_client.ts";
import { argvOf, environmentOf } from "../../support/procfs.ts";
import { RealEnvoy } from "./real_envoy.ts";

for (const version of ENVOY_VERSIONS) {
  Deno.test(`ENVOY_FLAGS: knows every flag of Envoy ${version}, and which take a value`, async () => {
    const { stdout } = await new Deno.Command(envoyPath(version), { args: ["--help"], stderr: "null" }).output();
    const lines = new TextDecoder().decode(stdout).split("\n");
    const found = lines.flatMap((line) => {
      const match = /^ {3}(-\S*?)( <[^>]+>)?(?:, {2}(--\S+)( <[^>]+>)?)?(?: {2}\(accepted multiple times\))?$/.exec(
        line,
      );
      if (match === null) return [];
      return [match[1], match[3]].filter((flag) => flag !== undefined).map((flag) =>
        [flag, match[2] !== undefined] as const
      );
    }).filter(([flag]) => flag !== "--" && flag !== "--ignore_rest" && flag !== "-");
    strictEqual(found.length > 40, true, `${found.length} flags found`);
    deepStrictEqual(
      found.filter(([flag, takesValue]) => ENVOY_FLAGS[flag]?.takesValue !== takesValue),
      [],
    );
  });

  Deno.test(`EnvoyProcesses, Envoy ${version}: hands over with the flags and the environment that it gives`, async () => {
    const userArgs = ["-l", "error", "--service-node", "node-a"];
    strictEqual(checkEnvoyArgs(userArgs), undefined);
    await using envoy = new RealEnvoy(version, { flags: { userArgs } });
    const parent = await envoy.startLive(0);
    const child = await envoy.startLive(1);
    strictEqual(argvOf(child.pid).includes("--skip-hot-restart-on-no-parent"), true);
    strictEqual(environmentOf(child.pid)["RESTART_EPOCH"], "1");
    const { headers } = await fetchOnce({ port: envoy.listenPort }, { path: "/direct" });
    strictEqual(headers.get("x-epoch"), "1");
    deepStrictEqual(await parent.exit, { code: 0 });
  });

  Deno.test(`EnvoyProcesses, Envoy ${version}: the same binary again after its file was replaced and removed`, async () => {
    await using envoy = new RealEnvoy(version);
    const path = envoy.dir.at("envoy");
    const plan = { binaryPath: path };
    Deno.copyFileSync(envoyPath(version), path);
    const inode = Deno.statSync(path).ino;
    const parent = await envoy.startLive(0, { plan });
    envoy.isStill = false;
    Deno.renameSync(envoy.dir.write("new", "#!/bin/sh\nexit 3\n"), path);
    const second = await envoy.startLive(1, { plan, sameBinaryAsPid: parent.pid });
    strictEqual(Deno.statSync(`/proc/${second.pid}/exe`).ino, inode);
    deepStrictEqual(await parent.exit, { code: 0 });
    Deno.removeSync(path);
    const third = await envoy.startLive(2, { plan, sameBinaryAsPid: second.pid });
    strictEqual(Deno.statSync(`/proc/${third.pid}/exe`).ino, inode);
    deepStrictEqual(await second.exit, { code: 0 });
  });

  Deno.test(`EnvoyProcesses, Envoy ${version}: an epoch whose parent is gone starts as one without parent`, async () => {
    await using envoy = new RealEnvoy(version);
    const first = await envoy.startLive(0);
    first.signal("SIGKILL");
    deepStrictEqual(await first.exit, { code: 137, signal: "SIGKILL" });
    await envoy.startLive(1);
  });
}

Deno.test("EnvoyProcesses: a truncated Envoy is refused, not handed to a shell", async () => {
  await using envoy = new RealEnvoy("1.40.0");
  const bytes = new Uint8Array(1_000_000);
  {
    using file = Deno.openSync(envoyPath("1.40.0"));
    file.readSync(bytes);
  }
  const path = envoy.dir.at("envoy");
  Deno.writeFileSync(path, bytes, { mode: 0o755 });
  const digests = new BinaryDigests();
  const look = await digests.look(path);
  strictEqual(look.kind === "unusable" && look.why, "not_executable");
  bytes.set([183, 0], 18);
  Deno.writeFileSync(path, bytes, { mode: 0o755 });
  const spawned = new EnvoyProcesses({ flagsOf: () => envoy.flags, isStill: () => true })
    .spawn({ epoch: 0, plan: { ...envoy.plan, binaryPath: path } });
  deepStrictEqual(spawned.kind === "failed" && spawned.refusal, {
    name: "binary_wrong_architecture",
    detail: `run ${path}: built for aarch64, this machine is x86_64`,
  });
});
