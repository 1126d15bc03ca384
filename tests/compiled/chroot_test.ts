/**
 * The executables start in a read-only root file system of glibc and Envoy alone, like Envoy's distroless image; the
 * probe needs nothing at all.
 */
import assert from "node:assert/strict";
import { dirname, join } from "node:path";
import { compile, distDir } from "../../tools/compile.ts";
import { envoyPath } from "../../tools/toolchain.ts";

interface Ended {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

const GLIBC = /\s(\/\S+\/(?:ld-linux-x86-64|lib(?:c|m|dl|rt|pthread))\.so\.\d)\s/g;
// The mounts go with their namespace, however its last process ends.
const ENTER = [
  'PATH="$PATH:/usr/sbin:/sbin"',
  'mount --bind "$0" "$0"',
  'mount -t proc proc "$0/proc"',
  'mount -o remount,bind,ro "$0"',
  'exec chroot "$0" "$@"',
].join(" && ");

const obstacle = await findObstacle();

Deno.test({
  name: `epochd and epochd-probe start beside glibc and Envoy alone${obstacle ? ` (${obstacle})` : ""}`,
  ignore: obstacle !== undefined,
  async fn(t) {
    await compile();
    const root = await Deno.makeTempDir({ prefix: "epochd-root-" });
    try {
      await fillRoot(root);

      await t.step("the root serves Envoy", async () => {
        const envoy = await runIn(root, "/usr/local/bin/envoy", "--version");
        assert.equal(envoy.code, 0, envoy.stderr);
      });

      await t.step("epochd --version", async () => {
        const { code, stdout, stderr } = await runIn(root, "/opt/epochd/epochd", "--version");
        assert.deepEqual({ code, stderr }, { code: 0, stderr: "" });
        assert.match(stdout, /^epochd 0\.1\.0\b[^\n]*\n$/);
      });

      for (const name of ["epochd-probe", "epochd-probe-portable"]) {
        await t.step(`${name} with a marker that is absent`, async () => {
          const ended = await runIn(root, `/opt/epochd/${name}`, "--ready-marker", "/x");
          assert.deepEqual(ended, { code: 1, stdout: "not ready: /x does not exist\n", stderr: "" });
        });
      }
    } finally {
      await Deno.remove(root, { recursive: true });
    }
  },
});

Deno.test({
  name: "epochd-probe answers in a root file system of itself and a marker alone",
  ignore: Deno.uid() !== 0,
  async fn() {
    await compile();
    const root = await Deno.makeTempDir({ prefix: "epochd-root-" });
    try {
      await Deno.copyFile(join(distDir, "epochd-probe"), join(root, "probe"));
      await Deno.writeTextFile(join(root, "ready"), "");
      const ready = await run("chroot", root, "/probe", "--ready-marker", "/ready");
      assert.deepEqual(ready, { code: 0, stdout: "", stderr: "" });
      const absent = await run("chroot", root, "/probe", "--ready-marker", "/none");
      assert.deepEqual(absent, { code: 1, stdout: "not ready: /none does not exist\n", stderr: "" });
    } finally {
      await Deno.remove(root, { recursive: true });
    }
  },
});

async function findObstacle(): Promise<string | undefined> {
  if (Deno.uid() !== 0) return "chroot needs root";
  const { code, stderr } = await run("unshare", "--mount", "true");
  return code === 0 ? undefined : `mount namespaces are out of reach: ${stderr.trim()}`;
}

async function fillRoot(root: string): Promise<void> {
  const libraries = Array.from((await run("ldd", envoyPath())).stdout.matchAll(GLIBC), (match) => match[1]!);
  const files: [from: string, to: string][] = [
    ...libraries.map((path): [string, string] => [path, path]),
    [envoyPath(), "/usr/local/bin/envoy"],
    ...["epochd", "epochd-probe", "epochd-probe-portable", "epochd-launch", "libgcc_s.so.1"].map((
      name,
    ): [string, string] => [join(distDir, name), `/opt/epochd/${name}`]),
  ];
  await Deno.mkdir(join(root, "proc"));
  for (const [from, to] of files) {
    await Deno.mkdir(join(root, dirname(to)), { recursive: true });
    await Deno.copyFile(from, join(root, to));
  }
}

async function runIn(root: string, ...command: string[]): Promise<Ended> {
  return await run("unshare", "--mount", "sh", "-c", ENTER, root, ...command);
}

async function run(command: string, ...args: string[]): Promise<Ended> {
  const { code, stdout, stderr } = await new Deno.Command(command, { args, stdin: "null" }).output();
  return { code, stdout: new TextDecoder().decode(stdout), stderr: new TextDecoder().decode(stderr) };
}
