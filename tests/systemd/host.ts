// Owns: a real systemd as PID 1 of its own namespaces, with epochd's unit installed as docs/operations.md says.
// Must not: judge, or touch this machine's own systemd. Network and /dev/shm are shared with the test.

import { copyFile, mkdir } from "node:fs/promises";
import { join } from "node:path";
import { compile, distDir } from "../../tools/compile.ts";
import { projectDir } from "../../tools/toolchain.ts";
import { domainSockets, freeBaseId, removeSegment } from "../support/base_ids.ts";
import { type BootstrapOptions, bootstrapText } from "../support/bootstrap.ts";
import { envoyPath } from "../support/envoys.ts";
import type { CommandResult } from "../support/epochd.ts";
import { childrenOf, isAlive } from "../support/procfs.ts";
import { type TempDir, tempDir } from "../support/tempdir.ts";
import { until } from "../support/until.ts";

const NAMESPACES = ["--pid", "--mount", "--cgroup", "--ipc", "--uts"];
const SYSTEMD = "/lib/systemd/systemd";
export const unitDir: string = join(projectDir, "deploy/systemd");

/** Why there can be no systemd of one's own here; undefined where there can. */
export function whyNoSystemd(): string | undefined {
  if (Deno.uid() !== 0) return "needs root";
  try {
    Deno.statSync(SYSTEMD);
    const { success } = new Deno.Command("unshare", { args: [...NAMESPACES, "--fork", "true"], stderr: "null" })
      .outputSync();
    return success ? undefined : "no namespaces here";
  } catch {
    return "no systemd on this machine";
  }
}

export interface HostOptions {
  /** Lines of a drop-in, as an operator adds them. */
  readonly dropIn?: string;
  /** Envoy outlives epochd: the field of epochd.yaml, and deploy/systemd's drop-in for it. */
  readonly outlives?: boolean;
  readonly bootstrap: BootstrapOptions;
}

export interface Host extends AsyncDisposable {
  readonly directory: TempDir;
  /** Of the host, seen from inside and outside alike. */
  readonly bootstrapPath: string;
  run(...command: readonly string[]): Promise<CommandResult>;
  /** One property of the unit. */
  show(property: string): Promise<string>;
  /** What epochd and its Envoys wrote. */
  log(): string;
  /** A pid of inside, as this side has it. */
  pids(name: string): number[];
}

export async function startHost({ dropIn = "", outlives = false, bootstrap }: HostOptions): Promise<Host> {
  await compile();
  const directory = tempDir();
  // The unit's user looks for its executables there.
  await Deno.chmod(directory.path, 0o755);
  const baseId = freeBaseId();
  await layOut(directory, baseId, dropIn, outlives, bootstrap);
  const script = join(projectDir, "tests/systemd/host.sh");
  const child = new Deno.Command("unshare", {
    args: [...NAMESPACES, "--fork", "--kill-child=SIGKILL", script, directory.path],
    stdin: "null",
    stdout: "null",
    stderr: "piped",
  }).spawn();
  let said = "";
  const read = (async () => {
    for await (const text of child.stderr.pipeThrough(new TextDecoderStream())) said += text;
  })();
  const init = () => childrenOf(child.pid)[0]?.pid;
  const run = async (...command: readonly string[]) => {
    const args = ["--target", String(init()), ...NAMESPACES, "--", ...command];
    const { code, stdout, stderr } = await new Deno.Command("nsenter", { args, stdin: "null" }).output();
    const decoder = new TextDecoder();
    return { code, stdout: decoder.decode(stdout), stderr: decoder.decode(stderr) };
  };
  const host: Host = {
    directory,
    bootstrapPath: directory.at("etc-copy/envoy/envoy.yaml"),
    run,
    show: async (property) => (await run("systemctl", "show", "epochd", "--value", "-p", property)).stdout.trim(),
    log: () => Deno.readTextFileSync(directory.at("epochd.log")),
    pids: (name) => descendants(init()).filter((pid) => nameOf(pid) === name),
    async [Symbol.asyncDispose]() {
      await run("systemctl", "stop", "epochd").catch(() => {});
      const pid = init();
      // Its PID 1: the namespace goes with it.
      if (pid !== undefined) Deno.kill(pid, "SIGKILL");
      await child.status;
      await read;
      await until(`the sockets of base id ${baseId} are gone`, () => domainSockets(baseId).length === 0);
      removeSegment(baseId);
      await directory[Symbol.asyncDispose]();
    },
  };
  try {
    await until("systemd answers", async () => (await run("systemctl", "is-active", "idle.target")).code === 0);
  } catch (error) {
    await host[Symbol.asyncDispose]();
    throw new Error(`systemd did not come up: ${said}`, { cause: error });
  }
  return host;
}

async function layOut(
  dir: TempDir,
  baseId: number,
  dropIn: string,
  outlives: boolean,
  bootstrap: BootstrapOptions,
): Promise<void> {
  for (const path of ["units/epochd.service.d", "bin", "new", "etc/epochd", "etc/envoy", "etc/sysusers.d"]) {
    await mkdir(dir.at(path), { recursive: true, mode: 0o755 });
  }
  await copyFile(join(unitDir, "epochd.service"), dir.at("units/epochd.service"));
  await copyFile(join(unitDir, "epochd.sysusers.conf"), dir.at("etc/sysusers.d/epochd.conf"));
  for (const name of ["epochd", "epochd-launch", "libgcc_s.so.1"]) {
    await copyFile(join(distDir, name), dir.at("bin", name));
  }
  await copyFile(envoyPath(), dir.at("bin/envoy"));
  dir.write("units/idle.target", "[Unit]\nDefaultDependencies=no\n");
  // No other unit comes up here, the journal neither.
  const here = ["[Unit]", "DefaultDependencies=no", "Wants=", "After=", "[Service]"];
  const output = ["Output", "Error"].map((stream) => `Standard${stream}=append:${dir.at("epochd.log")}`);
  dir.write("units/epochd.service.d/10-host.conf", `${[...here, ...output].join("\n")}\n`);
  dir.write("units/epochd.service.d/20-operator.conf", `[Service]\n${dropIn}\n`);
  const example = await Deno.readTextFile(join(unitDir, "epochd.yaml"));
  if (outlives) {
    await copyFile(join(unitDir, "epochd.service.d/outlive.conf"), dir.at("units/epochd.service.d/outlive.conf"));
  }
  const death = `on_supervisor_death: ${outlives ? "serve" : "end"}`;
  const times = "drain_time: 2s\n    parent_shutdown_time: 4s\n    concurrency: 1\n    watch_config: false\n    ";
  dir.write(
    "etc/epochd/epochd.yaml",
    example.replace("base_id: 1", `base_id: ${baseId}`).replace("watch_binary: true", `${times}${death}`),
  );
  dir.write("etc/envoy/envoy.yaml", bootstrapText(bootstrap));
}

function descendants(pid: number | undefined): number[] {
  if (pid === undefined || !isAlive(pid)) return [];
  return childrenOf(pid).flatMap((child) => [child.pid, ...descendants(child.pid)]);
}

function nameOf(pid: number): string {
  try {
    return Deno.readTextFileSync(`/proc/${pid}/comm`).trim();
  } catch {
    return "";
  }
}
