/** The Dockerfile, built and used as in a cluster: epochd gets into Envoy's image and hands over there, with the least of rights. */
import assert from "node:assert/strict";
import { projectDir } from "../../tools/toolchain.ts";
import { imageHome } from "../../tools/image_root.ts";
import { domainSockets, freeBaseId } from "../support/base_ids.ts";
import { writeBootstrap } from "../support/bootstrap.ts";
import { envoyImage, IMAGE_USER, writeImages } from "../support/images.ts";
import { freePorts } from "../support/ports.ts";
import { tempDir } from "../support/tempdir.ts";
import { startTraffic } from "../support/traffic.ts";
import { until } from "../support/until.ts";
import { startUpstream } from "../support/upstream.ts";
import { makeBuildImage } from "./build_image.ts";
import { Docker, dockerObstacle } from "./docker.ts";

const obstacle = await dockerObstacle();
const BUILD = "localhost/epochd-build";
const IMAGE = "localhost/epochd";
const ENVOY = "localhost/envoy:1.40.0";
const LEAST = ["--read-only", "--cap-drop", "ALL", "--security-opt", "no-new-privileges", "--user", IMAGE_USER];

Deno.test({
  name: `the image of the Dockerfile brings epochd into Envoy's${obstacle === undefined ? "" : ` (${obstacle})`}`,
  ignore: obstacle !== undefined,
  async fn(t) {
    await using directory = tempDir();
    await using docker = await Docker.start();
    const step = async (name: string, act: () => Promise<void>) => {
      if (!await t.step(name, act)) throw new Error(`${name}: failed, and the rest builds on it`);
    };
    // kubelet's emptyDir is open to every user of the pod.
    for (const name of ["programs", "run", "shm"]) {
      Deno.mkdirSync(directory.at(name));
      Deno.chmodSync(directory.at(name), 0o777);
    }
    Deno.chmodSync(directory.path, 0o755);

    await step("it builds without a network, from images made here", async () => {
      await makeBuildImage(docker, BUILD);
      await docker.must(
        "build",
        "--build-arg",
        `BUILD_IMAGE=${BUILD}`,
        "--network",
        "none",
        "--tag",
        IMAGE,
        projectDir,
      );
    });

    await step("it holds epochd, glibc and nothing else, and no shell starts in it", async () => {
      const container = (await docker.must("create", IMAGE)).trim();
      await docker.must("export", "--output", directory.at("image.tar"), container);
      const { stdout } = await new Deno.Command("tar", { args: ["tf", directory.at("image.tar")] }).output();
      const files = new TextDecoder().decode(stdout).split("\n").filter((name) => /[^/]$/.test(name));
      const own = files.filter((name) => !/^(dev|etc|proc|sys|\.dockerenv)/.test(name));
      const isExpected = (name: string) =>
        `/${name}`.startsWith(`${imageHome}/`) || /^lib(64)?\/\S*\.so\.\d$/.test(name);
      assert.deepEqual(own.filter((name) => !isExpected(name)), []);
      const shell = await docker.try(
        "run",
        "--rm",
        "--network",
        "none",
        "--entrypoint",
        "/bin/sh",
        IMAGE,
        "-c",
        "true",
      );
      assert.notEqual(shell.code, 0);
      const bytes = Number(await docker.must("image", "inspect", "--format", "{{.Size}}", IMAGE));
      // What a node pulls is a third of it.
      assert.ok(bytes < 110_000_000, `the image has ${bytes} bytes`);
    });

    await step("it builds on a base of one's own as well, which then brings the C library", async () => {
      await docker.must(
        "load",
        "--input",
        (await writeImages([await envoyImage("1.40.0", ENVOY)], directory.path))[0]!,
      );
      const bases = ["--build-arg", `BUILD_IMAGE=${BUILD}`, "--build-arg", `BASE_IMAGE=${ENVOY}`];
      await docker.must("build", ...bases, "--network", "none", "--tag", `${IMAGE}:based`, projectDir);
      assert.match(
        await docker.must("run", "--rm", "--network", "none", ...LEAST, `${IMAGE}:based`, "--version"),
        /^epochd \d/,
      );
    });

    await step("its installation is complete, and a second one changes nothing", async () => {
      const mount = ["--volume", `${directory.at("programs")}:/opt/epochd`];
      const install = [
        "run",
        "--rm",
        "--network",
        "none",
        ...LEAST,
        ...mount,
        IMAGE,
        "install",
        "--to",
        "/opt/epochd",
        "--json",
      ];
      const actions = async () =>
        JSON.parse(await docker.must(...install)).files.map(({ action }: { action: string }) => action);
      assert.deepEqual(new Set(await actions()), new Set(["installed"]));
      assert.deepEqual(new Set(await actions()), new Set(["current"]));
    });

    await step("Envoy hot restarts in its own image, read-only, without rights, without a failed request", async () => {
      await docker.must(
        "load",
        "--input",
        (await writeImages([await envoyImage("1.40.0", ENVOY)], directory.path))[0]!,
      );
      const [adminPort, listenPort, upstreamPort] = freePorts(3) as [number, number, number];
      const bootstrapOf = (generation: string) => ({ adminPort, listenPort, upstreamPort, generation });
      Deno.mkdirSync(directory.at("etc"));
      const bootstrap = writeBootstrap(directory.at("etc/envoy.yaml"), bootstrapOf("first"));
      const baseId = freeBaseId();
      await docker.must(
        ...["run", "--detach", "--name", "envoy", "--network", "host", ...LEAST],
        ...[
          "--volume",
          `${directory.at("programs")}:/opt/epochd:ro`,
          "--volume",
          `${directory.at("etc")}:/etc/envoy:ro`,
        ],
        ...["--volume", `${directory.at("run")}:/run/epochd`, "--volume", `${directory.at("shm")}:/dev/shm`],
        ...["--env", "EPOCHD_API_SOCKET=/run/epochd/api/api.sock", "--entrypoint", "/opt/epochd/epochd", ENVOY, "run"],
        ...["--envoy-path", "/usr/local/bin/envoy", "--envoy-config", "/etc/envoy/envoy.yaml", "--concurrency", "1"],
        ...["--ready-marker", "/run/epochd/ready", "--base-id", String(baseId)],
        ...["--drain-time", "2s", "--parent-shutdown-time", "4s"],
      );
      const exec = (...command: string[]) => docker.try("exec", "envoy", ...command);
      const probe = ["/opt/epochd/epochd-probe", "--ready-marker", "/run/epochd/ready"];
      await until("the container is ready", async () => (await exec(...probe)).code === 0).catch(async (error) => {
        throw new Error(`${error}\n${JSON.stringify(await docker.try("logs", "envoy"))}`);
      });

      await using _upstream = startUpstream(upstreamPort);
      await using traffic = startTraffic({ port: listenPort, requestsPerSecond: 200 });
      const held = traffic.hold({ chunks: 20, everyMs: 100 });
      await held.opened;
      writeBootstrap(bootstrap, bootstrapOf("second"));
      const epochs = async () => {
        const { stdout } = await exec("/opt/epochd/epochd", "status", "--json");
        return JSON.parse(stdout).services.envoy.epochs.map(({ epoch }: { epoch: number }) => epoch).join();
      };
      await until("the second epoch serves alone", async () => await epochs() === "1");
      const report = await traffic.stop();
      assert.equal((await held.outcome).kind, "complete");
      assert.deepEqual([report.failed, report.generations], [0, ["first", "second"]], JSON.stringify(report.failures));

      await docker.must("stop", "--time", "20", "envoy");
      const state = JSON.parse(await docker.must("inspect", "--format", "{{json .State}}", "envoy"));
      const log = await docker.try("logs", "--tail", "20", "envoy");
      assert.deepEqual([state.ExitCode, state.OOMKilled], [0, false], log.stderr);
      await until("nothing of it is left", () => domainSockets(baseId).length === 0);
    });
  },
});
